#include "experiments/capture.h"

#include <algorithm>
#include <numeric>

#include "capture/parts.h"
#include "capture/texts.h"
#include "core/atomic_file.h"
#include "core/interrupt.h"
#include "core/json_text.h"
#include "core/lists.h"
#include "core/parallel.h"
#include "core/text.h"
#include "experiments/device_facts.h"
#include "formats/content_hash.h"
#include "formats/model_files.h"
#include "model/load.h"
#include "model/rope.h"
#include "ops/device.h"
#include "ops/large_tensors.h"
#include "ops/torch_errors.h"
#include "run/names.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* parts_name = "parts";
constexpr const char* state_file_name = "_saver_state.json";

// Tokens of a batch, padding included, and of the texts of a part.
struct Sizes {
  std::int64_t batch_tokens, part_tokens;
};
Sizes sizes_of(const CaptureOptions& options, const ComputeDevice& device) {
  const bool cpu = device.device.is_cpu();
  return {options.batch_tokens.value_or(cpu ? 2048 : 65536), options.part_tokens.value_or(cpu ? 16384 : 1 << 20)};
}

std::string rope_text(const CaptureOptions& options) {
  return options.pre_rope ? "before" : "after";
}

// Of `count` members, those in the list; all where it is empty.
std::vector<std::int64_t> chosen(const std::string& list, std::int64_t count) {
  std::vector<std::int64_t> members(static_cast<std::size_t>(count));
  std::iota(members.begin(), members.end(), 0);
  if (list.empty()) return members;
  const std::vector<std::int64_t> wanted = parse_index_list(list, "");
  std::erase_if(members, [&](std::int64_t member) { return !std::ranges::binary_search(wanted, member); });
  return members;
}

void check_chosen(const std::string& list, const char* flag, std::int64_t count, const char* what) {
  if (list.empty()) return;
  const std::int64_t last = parse_index_list(list, flag).back();
  if (last >= count)
    fail_input("{} {}: there is no {} {}; the model has {}, counted from 0", flag, list, what, last, count);
}

// The sides that are captured, in the order in which a pass comes to them.
std::vector<CapturedSide> sides_of(const DecoderConfig& model, const CaptureOptions& options) {
  check_chosen(options.layers, "--layers", model.layers, "layer");
  check_chosen(options.heads, "--heads", model.heads, "query head");
  std::vector<CapturedSide> sides;
  for (const std::int64_t layer : chosen(options.layers, model.layers)) {
    std::optional<std::int64_t> window;
    if (model.window(layer) > 0) window = model.window(layer);
    sides.push_back({layer, 'q', chosen(options.heads, model.heads), window});
    std::vector<std::int64_t> keys = chosen(options.heads, model.kv_heads);
    if (!keys.empty()) sides.push_back({layer, 'k', std::move(keys), window});
  }
  return sides;
}

TextSource source_of(const CaptureInputs& inputs, const CaptureOptions& options, const LoadedModel& loaded) {
  if (!inputs.data.empty()) {
    std::vector<fs::path> paths(inputs.data.begin(), inputs.data.end());
    return {document_files(paths), options.text_column};
  }
  if (!loaded.architecture.empty())
    fail_input("{}: a published model has no data of its own; give text with --data", loaded.checkpoint.string());
  const DataOptions& data = loaded.setup.data;
  if (data.path.empty()) {
    if (!options.max_documents)
      fail_input("the embedded language never ends: say how many texts with --max-documents, or give text with --data");
    return {{}, "", data.language_seed, data.validation_share};
  }
  const fs::path path = data.validation.empty() ? data.path : data.validation;
  if (path.extension() == ".bin")
    fail_input("{}: was trained on tokens ({}), and texts are captured; give text with --data",
               loaded.checkpoint.string(), path.string());
  TextSource source{document_files(std::array{path}), data.text_column};
  if (data.validation.empty()) source.validation_share = data.validation_share;
  return source;
}

std::string tokenizer_of(const CaptureOptions& options, const LoadedModel& loaded) {
  if (!options.tokenizer.empty()) return options.tokenizer;
  if (loaded.architecture.empty()) return loaded.setup.data.tokenizer;
  if (!has_tokenizer(loaded))
    fail_input("{}: has no tokenizer of its own; name one with --tokenizer", loaded.checkpoint.string());
  return absolute_folder(loaded.checkpoint).string();
}

// Tokens of a text: as asked, in the range of the model.
std::int64_t length_limit(const CaptureOptions& options, const LoadedModel& loaded) {
  const std::int64_t range = loaded.architecture.empty() ? loaded.setup.train.seq_len : loaded.model.config.longest;
  return range == 0 ? options.max_length : std::min(options.max_length, range);
}

std::string source_name(const CaptureInputs& inputs, const TextSource& source) {
  if (source.language) return fmt::format("embedded language, seed {}", *source.language);
  std::vector<std::string> names;  // the same from every folder
  for (const std::string& path : inputs.data) names.push_back(absolute_folder(path).string());
  if (!names.empty()) return fmt::format("{}", fmt::join(names, ", "));
  return source.files.front().string();
}

// The file that says what the weights mean; of a GGUF file it is the same one.
std::string configuration_of(const LoadedModel& loaded) {
  const fs::path file = loaded.checkpoint / (loaded.architecture.empty() ? "state.json" : "config.json");
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) ? read_file(file) : "";
}

ordered_json config_of(const CaptureInputs& inputs, const CaptureOptions& options, const std::string& device) {
  ordered_json config = {{"model", absolute_folder(inputs.model).string()}, {"data", ordered_json::array()}};
  for (const std::string& path : inputs.data) config["data"].push_back(absolute_folder(path).string());
  config.update(to_json(options));
  config["device"] = device;
  return config;
}

// What auto means here. Another one is not looked for yet: a capture that is complete needs none.
std::string device_name(const CaptureOptions& options) {
  return options.device == "auto" ? choose_device("auto").name() : options.device;
}

// "8 MB", "1.61 GB"
std::string bytes_text(double bytes) {
  return bytes < 1e9 ? fmt::format("{:.0f} MB", std::ceil(bytes / 1e6)) : fmt::format("{:.2f} GB", bytes / 1e9);
}

// A batch: places of texts in the part.
using Batch = std::vector<std::size_t>;

// Texts of similar length together, the longest first, so that little is padding. The frequencies of RoPE may depend on
// the length of a text: only texts with the same ones share a batch, whose length decides.
std::vector<Batch> batches_of(const std::vector<CapturedText>& texts, std::int64_t batch_tokens,
                              const DecoderConfig& model) {
  std::vector<std::size_t> order(texts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return texts[i].tokens.size(); });
  const auto frequencies = [&](std::size_t i) {
    const std::int64_t length = std::ssize(texts[i].tokens);
    return std::pair(frequency_set(model, model.rope, length),
                     model.sliding_rope ? frequency_set(model, *model.sliding_rope, length) : 0);
  };
  const auto fits = [&](const Batch& batch, std::size_t i) {
    const auto padded = static_cast<std::int64_t>(texts[batch.front()].tokens.size() * (batch.size() + 1));
    return padded <= batch_tokens && frequencies(batch.front()) == frequencies(i);
  };
  std::vector<Batch> batches;
  for (const std::size_t i : order) {
    if (batches.empty() || !fits(batches.back(), i)) batches.emplace_back();
    batches.back().push_back(i);
  }
  return batches;
}

// Memory that a capture takes at most, in bytes.
struct MemoryPlan {
  double weights = 0, batch = 0, rest = 0;
  [[nodiscard]] double total() const { return weights + batch + rest; }
};

class Capture {
 public:
  Capture(const CaptureInputs& inputs, const CaptureOptions& options, Console& console)
      : inputs_(inputs),
        options_(options),
        console_(console),
        device_(choose_device(options.device)),
        type_(options.dtype == CaptureType::bfloat16 ? at::kBFloat16 : at::kFloat),
        loaded_(load_model(inputs.model, device_.device, type_)),
        sides_(sides_of(loaded_.model.config, options)),
        sampler_(options),
        source_(source_of(inputs, options, loaded_)),
        tokenizer_(tokenizer_of(options, loaded_)),
        limits_{length_limit(options, loaded_), options.max_documents},
        sizes_(sizes_of(options, device_)) {
    for (const std::string& warning : loaded_.warnings) console.warn(warning);
    if (limits_.tokens < options.max_length)
      console.detail(fmt::format("the model's range is {} tokens; longer texts are cut to it", limits_.tokens));
    survey_ = survey(source_, tokenizer_, limits_);
    tokenizer_.warn(console);
    const std::string name = source_name(inputs_, source_);
    if (survey_.texts == 0) fail_input("{}: holds no text", name);
    if (survey_.largest_id >= loaded_.model.config.vocabulary)
      fail_input("{}: its tokens go up to {}; the model's vocabulary is {}: give its own tokenizer", name,
                 survey_.largest_id, loaded_.model.config.vocabulary);
    weights_ = ModelFiles(loaded_.checkpoint).weights_hash();
    model_hash_ = content_hash(weights_ + configuration_of(loaded_));
    check_that_rows_are_kept(name);
    memory_ = memory_plan();
    pack_weights(loaded_.model, sizes_.batch_tokens);
  }

  [[nodiscard]] ordered_json facts() const {
    ordered_json facts = device_facts(device_);
    facts.update(
        {{"title", title_of(loaded_)},
         {rope_key, rope_text(options_)},
         {"longest_text", limits_.tokens},
         {"weights_xxh3_128", weights_},
         {"tokens_xxh3_128", survey_.hash},
         {"format", "l{layer}h{head}{q|k}/data.parquet: bucket, example_id, position, vector, sliding_window"}});
    return facts;
  }

  CaptureSummary run(const fs::path& folder, const std::string& hint) {
    const auto start = Clock::now();
    warn_of_missing_keys();
    const fs::path parts = folder / parts_name;
    PartState state = begin(parts);
    say_what_is_needed(state);
    const std::int64_t before = state.text_tokens;
    const auto computing = Clock::now();
    capture_parts(parts, state, hint);
    const double computed = seconds_since(computing);
    const JoinedHeads joined = join(parts, folder, hint);
    CaptureSummary summary{.texts = state.texts,
                           .tokens = state.text_tokens,
                           .rows = joined.rows,
                           .files = joined.heads,
                           .rope = rope_text(options_),
                           .title = title_of(loaded_),
                           .seconds = seconds_since(start),
                           .tokens_per_second = static_cast<double>(state.text_tokens - before) / computed,
                           .peak_memory_mb = peak_memory_mb(device_)};
    write_file(folder / state_file_name, json_text(saver_state(joined, summary)));
    return summary;
  }

 private:
  [[nodiscard]] const DecoderConfig& model() const { return loaded_.model.config; }

  // --heads chooses among queries and among keys: a query head may be there without the key head that it reads.
  void warn_of_missing_keys() {
    const std::int64_t group = model().heads / model().kv_heads;
    const std::vector<std::int64_t> keys = chosen(options_.heads, model().kv_heads);
    for (const std::int64_t head : chosen(options_.heads, model().heads))
      if (std::ranges::find(keys, head / group) == keys.end())
        return console_.warn(fmt::format(
            "query head {} reads key head {}, which --heads {} leaves out: plasticity cannot be computed of it", head,
            head / group, options_.heads));
  }

  // Before a folder is touched: the sampler knows what it will keep.
  void check_that_rows_are_kept(const std::string& name) {
    bool any = false;
    for_each_tokenized(source_, tokenizer_, limits_, [&](std::int64_t id, const std::vector<std::uint32_t>& tokens) {
      for (const CapturedSide& side : sides_)
        any = any || !sampler_.kept(id, side.layer, side.kind, std::ssize(tokens)).empty();
      return !any;
    });
    if (!any)
      fail_input(
          "{}: none of its {} tokens would be kept: sampler {} keeps about {:.2g} of a text; give more text, a larger "
          "--base-rate, or --sampler all",
          name, survey_.tokens, json_value(options_.sampler).get<std::string>(),
          sampler_.expected(survey_.tokens / survey_.texts));
  }

  // The state of the parts that are there, which must be of the same model and text.
  PartState begin(const fs::path& parts) {
    const PartsSoFar found = parts_in(parts);
    next_part_ = found.count;
    if (!found.state) return {.model_hash = model_hash_, .tokens_hash = survey_.hash, .options_hash = options_hash()};
    if (found.state->model_hash != model_hash_)
      fail_input("{}: its weights or its configuration changed since the capture began; start again with --overwrite",
                 loaded_.checkpoint.string());
    if (found.state->options_hash != options_hash())
      fail_input("{}: its parts are of a capture with other options; start again with --overwrite", parts.string());
    if (found.state->tokens_hash != survey_.hash)
      fail_input("{}: is not the text that the capture began with; start again with --overwrite",
                 source_name(inputs_, source_));
    return *found.state;
  }

  // Of what decides which vectors a part holds.
  [[nodiscard]] std::string options_hash() const {
    ordered_json options = to_json(options_);
    for (const char* key : {"tokenizer", "text_column", "max_documents", "token_str"}) options.erase(key);
    options["device"] = device_.name();
    options["longest"] = limits_.tokens;
    return content_hash(options.dump());
  }

  void say_what_is_needed(const PartState& state) {
    double vectors = 0;
    const double rows = sampler_.expected(survey_.tokens / survey_.texts) * static_cast<double>(survey_.texts);
    for (const CapturedSide& side : sides_) vectors += rows * static_cast<double>(side.heads.size());
    const double disk = vectors * static_cast<double>(model().d_k) * sizeof(float);
    console_.info(fmt::format("{} texts, {}{}; memory: {}; disk: about {}, twice that at the end",
                              with_separators(survey_.texts), tokens_text(survey_.tokens),
                              survey_.at_limit > 0 ? fmt::format(" ({} texts have the most that is taken, {} tokens)",
                                                                 with_separators(survey_.at_limit), limits_.tokens)
                                                   : "",
                              memory_text(), bytes_text(disk)));
    if (state.texts > 0) console_.info(fmt::format("{} texts are captured already", with_separators(state.texts)));
  }

  // A pass keeps a few tensors of the residual stream and of the queries, keys and values, and up to four of the
  // feed-forward. Freed ones are kept for the next (LargeTensors). Of the rest, most is torch; writing the files of
  // heads takes some megabytes a core.
  [[nodiscard]] MemoryPlan memory_plan() const {
    const DecoderConfig& c = model();
    MemoryPlan plan;
    for_each_parameter(loaded_.model, [&](const std::string&, ParameterKind, const at::Tensor& value) {
      plan.weights += static_cast<double>(value.numel() * value.element_size());
    });
    const auto tokens = static_cast<double>(std::min(std::max(sizes_.batch_tokens, survey_.longest), survey_.tokens));
    const double width = 6 * static_cast<double>(c.d_model) +
                         6 * static_cast<double>(c.query_rows() + 2 * c.key_rows()) + 4 * static_cast<double>(c.d_ff);
    plan.batch = tokens * width * sizeof(float) + static_cast<double>(LargeTensors::most_kept);
    plan.rest = 0.5e9 + static_cast<double>(available_cores()) * 100e6 + 20 * static_cast<double>(sizes_.part_tokens);
    return plan;
  }

  // "at most 1.6 GB (weights 539 MB, batches 395 MB, program 700 MB)", or what of it is on the GPU.
  [[nodiscard]] std::string memory_text() const {
    if (!device_.device.is_cpu())
      return fmt::format("at most {} on the GPU and {} beside it", bytes_text(memory_.weights + memory_.batch),
                         bytes_text(memory_.weights + memory_.rest + 1.5e9));  // the libraries of CUDA
    return fmt::format("at most {} (weights {}, batches {}, program {})", bytes_text(memory_.total()),
                       bytes_text(memory_.weights), bytes_text(memory_.batch), bytes_text(memory_.rest));
  }

  void capture_parts(const fs::path& parts, PartState& state, const std::string& hint) {
    Progress progress(console_, "capturing", "texts", static_cast<std::size_t>(survey_.texts),
                      static_cast<std::size_t>(state.texts));
    std::vector<CapturedText> texts;
    std::int64_t tokens = 0;
    const auto flush = [&] {
      if (texts.empty()) return;
      state.part = static_cast<std::int64_t>(next_part_);
      state.first_example = std::exchange(state.next_example, texts.back().example_id + 1);
      state.texts += std::ssize(texts);
      state.text_tokens += tokens;
      capture_part(part_file(parts, next_part_++), texts, state, hint, progress);
      texts.clear();
      tokens = 0;
    };
    const std::int64_t first = state.next_example;
    for_each_tokenized(source_, tokenizer_, limits_, [&](std::int64_t id, const std::vector<std::uint32_t>& of_text) {
      if (id < first) return true;
      texts.push_back({id, of_text});
      tokens += std::ssize(of_text);
      if (tokens >= sizes_.part_tokens) flush();
      return true;
    });
    flush();
  }

  void capture_part(const fs::path& file, const std::vector<CapturedText>& texts, const PartState& state,
                    const std::string& hint, Progress& progress) {
    PartWriter part(file, sides_, model().d_k, sampler_, texts, state);
    for (const Batch& batch : batches_of(texts, sizes_.batch_tokens, model())) {
      capture_batch(part, texts, batch, [&] {
        if (interrupt_requested())
          throw Error(Fault::interrupted, fmt::format("interrupted, {} of {} texts are kept; {}",
                                                      with_separators(state.texts - std::ssize(texts)),
                                                      with_separators(survey_.texts), hint));
      });
      for (std::size_t i = 0; i < batch.size(); ++i) progress.step();
    }
    part.commit();
  }

  void capture_batch(PartWriter& part, const std::vector<CapturedText>& texts, const Batch& batch,
                     const std::function<void()>& before_layer) {
    const std::int64_t rows = std::ssize(batch), time = std::ssize(texts[batch.front()].tokens);
    at::Tensor tokens_bt = at::zeros({rows, time}, at::kLong);
    for (std::int64_t b = 0; b < rows; ++b)
      std::ranges::copy(texts[batch[static_cast<std::size_t>(b)]].tokens,
                        tokens_bt[b].mutable_data_ptr<std::int64_t>());
    tokens_bt = tokens_bt.to(device_.device);
    std::size_t side = 0;
    observe_heads(loaded_.model, tokens_bt, type_, sides_.back().layer,
                  [&](std::int64_t layer, const HeadVectors& vectors) {
                    before_layer();
                    for (; side < sides_.size() && sides_[side].layer == layer; ++side)
                      write_kept(part, side, texts, batch, vectors_of(sides_[side].kind, vectors));
                  });
  }

  [[nodiscard]] const at::Tensor& vectors_of(char kind, const HeadVectors& vectors) const {
    if (options_.pre_rope) return kind == 'q' ? vectors.q_bthd : vectors.k_bthd;
    return kind == 'q' ? vectors.q_rotated_bthd : vectors.k_rotated_bthd;
  }

  // Writes the vectors of the positions that are kept. They come to the host in one copy for all texts of the batch.
  void write_kept(PartWriter& part, std::size_t side, const std::vector<CapturedText>& texts, const Batch& batch,
                  const at::Tensor& x_bthd) const {
    const std::vector<std::int64_t>& heads = sides_[side].heads;
    std::vector<std::int64_t> places;  // rows of [b·t]
    for (std::size_t b = 0; b < batch.size(); ++b) {
      const CapturedText& text = texts[batch[b]];
      for (const std::int32_t position :
           sampler_.kept(text.example_id, sides_[side].layer, sides_[side].kind, std::ssize(text.tokens)))
        places.push_back(static_cast<std::int64_t>(b) * x_bthd.size(1) + position);
    }
    if (places.empty()) return;
    const auto on_device = [&](const std::vector<std::int64_t>& numbers) {
      return at::tensor(numbers, at::kLong).to(x_bthd.device());
    };
    at::Tensor kept_nhd = x_bthd.flatten(0, 1).index_select(0, on_device(places));
    if (std::ssize(heads) != x_bthd.size(2)) kept_nhd = kept_nhd.index_select(1, on_device(heads));
    const at::Tensor kept_hnd = kept_nhd.transpose(0, 1).to(at::kFloat).contiguous().cpu();
    if (!at::isfinite(kept_hnd).all().item<bool>())
      fail_runtime("{}: {} of layer {} are not finite: the pass overflows in {}", loaded_.checkpoint.string(),
                   sides_[side].kind == 'q' ? "queries" : "keys", sides_[side].layer,
                   json_value(options_.dtype).get<std::string>());
    const auto d = static_cast<std::size_t>(model().d_k);
    for (std::size_t head = 0; head < heads.size(); ++head) {
      std::size_t row = head * places.size();
      for (const std::size_t text : batch) {
        const std::size_t count = part.rows(side, text);
        if (count > 0) part.write(side, text, head, {kept_hnd.const_data_ptr<float>() + row * d, count * d});
        row += count;
      }
    }
  }

  JoinedHeads join(const fs::path& parts, const fs::path& folder, const std::string& hint) {
    const auto piece = [&](std::uint32_t token) { return tokenizer_.piece(token); };
    const JoinedHeads joined =
        join_parts(parts, folder, sides_, model().d_k, sampler_,
                   options_.token_str ? std::function<std::string(std::uint32_t)>(piece) : nullptr, [&] {
                     if (interrupt_requested()) throw Error(Fault::interrupted, "interrupted; " + hint);
                   });
    if (!joined.without_rows.empty())
      console_.warn(fmt::format("{} of {} heads have no row and no file (first: {}): of so little text none was kept",
                                joined.without_rows.size(), joined.heads + std::ssize(joined.without_rows),
                                joined.without_rows.front()));
    return joined;
  }

  // What the public program writes beside its files, and what it does not say.
  [[nodiscard]] ordered_json saver_state(const JoinedHeads& joined, const CaptureSummary& summary) const {
    ordered_json counts = ordered_json::object();
    for (const auto& [bucket, rows] : joined.rows_by_bucket) counts[std::to_string(bucket)] = rows;
    return {{"bucket_counts", counts},
            {"headscope",
             {{"texts", summary.texts},
              {"tokens", summary.tokens},
              {"rows", summary.rows},
              {"files", summary.files},
              {"weights_xxh3_128", weights_},
              {"tokens_xxh3_128", survey_.hash}}},
            {"model_metadata",
             {{"attention_scope", "all_attention"},
              {"dataset_name", ""},
              {"dataset_split", ""},
              {"head_sampling_num_key_heads", model().kv_heads},
              {"head_sampling_num_layers", model().layers},
              {"head_sampling_num_query_heads", model().heads},
              {rope_key, rope_text(options_)},
              {options_.sampler == Sampler::log ? "sampling_min_bucket_size" : "sampling_bucket_size",
               sampler_.bucket_size()},
              {"sampling_base_rate", options_.base_rate},
              {"sampling_strategy", json_value(options_.sampler)},
              {"source_dataset", source_name(inputs_, source_)}}},
            {"model_name", title_of(loaded_)}};
  }

  const CaptureInputs& inputs_;
  const CaptureOptions& options_;
  Console& console_;
  const ComputeDevice device_;
  const at::ScalarType type_;
  LoadedModel loaded_;
  const std::vector<CapturedSide> sides_;
  const PositionSampler sampler_;
  const TextSource source_;
  TextTokenizer tokenizer_;
  const TextLimits limits_;
  const Sizes sizes_;
  TextSurvey survey_;
  std::string weights_, model_hash_;
  MemoryPlan memory_;
  std::size_t next_part_ = 0;
};

void remove_parts(const fs::path& folder) {
  std::error_code ignored;  // the capture is complete with them, too
  const fs::path parts = folder / parts_name;
  std::size_t count = 0;
  while (fs::exists(part_file(parts, count), ignored)) ++count;
  for (; count > 0; --count) fs::remove(part_file(parts, count - 1), ignored);
  fs::remove(parts, ignored);
}

}  // namespace

CaptureOutcome run_capture(const CaptureJob& job, Console& console) {
  const InterruptGuard guard;
  const at::NoGradGuard no_gradients;
  const LargeTensors memory;
  validate(job.options);
  check_out(job.folder, capture_command, RunWrites::as_it_goes);
  CaptureOutcome outcome;
  outcome.out = job.folder.out;
  Capture capture(job.inputs, job.options, console);
  std::vector<fs::path> inputs(job.inputs.data.begin(), job.inputs.data.end());
  inputs.emplace_back(job.inputs.model);
  RunFolder folder(job.folder, {.command = capture_command,
                                .config = config_of(job.inputs, job.options, device_name(job.options)),
                                .facts = capture.facts(),
                                .writes = RunWrites::as_it_goes,
                                .inputs = inputs});
  outcome.already_complete = folder.already_complete();
  if (!outcome.already_complete)
    folder.live([&] {
      outcome.summary = capture.run(folder.place(), resume_hint(capture_command, folder.path()));
      folder.finish(RunStatus::complete, to_json(outcome.summary));
    });
  remove_parts(job.folder.out);
  return outcome;
}

CapturePlan plan_capture(const CaptureInputs& inputs, const CaptureOptions& options) {
  validate(options);
  const LoadedModel loaded = load_model(inputs.model, at::kMeta);
  const DecoderConfig& model = loaded.model.config;
  sides_of(model, options);
  return {model.layers,     model.heads,        model.kv_heads,
          title_of(loaded), rope_text(options), config_of(inputs, options, device_name(options))};
}

void capture_into(const CaptureInputs& inputs, const CaptureOptions& options, const fs::path& folder,
                  const std::string& hint, Console& console) {
  const InterruptGuard guard;
  const at::NoGradGuard no_gradients;
  const LargeTensors memory;
  std::error_code ignored;
  if (fs::exists(folder / state_file_name, ignored) && !fs::exists(folder / parts_name, ignored))
    return;  // all is there
  Capture(inputs, options, console).run(folder, hint);
  remove_parts(folder);
}

}  // namespace headscope
