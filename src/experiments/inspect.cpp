#include "experiments/inspect.h"

#include "core/atomic_file.h"
#include "core/bounds.h"
#include "core/interrupt.h"
#include "core/json_text.h"
#include "core/missing.h"
#include "data/text_tokenizer.h"
#include "experiments/device_facts.h"
#include "experiments/inspect_attention.h"
#include "formats/model_files.h"
#include "heads/run_tables.h"
#include "model/checkpoint_files.h"
#include "model/load.h"
#include "ops/device.h"
#include "ops/large_tensors.h"
#include "ops/torch_errors.h"
#include "probe/probe.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// The setup with other data or batches. Other text stands for itself: what training held out beside its own text does
// not belong to it.
void change(Setup& setup, const std::vector<ConfigEntry>& changes) {
  if (std::ranges::find(changes, "data.path", &ConfigEntry::key) != changes.end()) setup.data.validation.clear();
  for (const ConfigEntry& entry : changes) {
    if (std::ranges::find(changeable_keys, entry.key) == changeable_keys.end())
      fail_input("{}: '{}' belongs to the checkpoint; what can be changed is {}", entry.where, entry.key,
                 fmt::join(changeable_keys, ", "));
    apply(setup, entry);
  }
  validate(setup.train);
  validate(setup.data);
}

// A model that is to be measured. Of one alone the moment is known when it is loaded.
struct Revision {
  std::string place;
  Moment moment;
};

std::vector<Revision> several_in_order(const InspectOptions& options) {
  const std::vector<std::string>& places = options.checkpoints;
  if (!options.steps.empty() && options.steps.size() != places.size())
    fail_input("--steps: {} for {} models; give one for each, in their order", options.steps.size(), places.size());
  std::vector<Revision> revisions;
  std::optional<RevisionName> before;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto said = trained_for(places[i]);
    if (!options.steps.empty()) {
      revisions.push_back({places[i], {options.steps[i], said && said->step == options.steps[i] ? said->tokens : 0}});
      continue;
    }
    if (!said) fail_input("{}: its name says no step; give the step of each model with --steps", places[i]);
    if (before && before->stage != said->stage)
      fail_input("{}: is of another stage than {}, and each counts its steps anew; give --steps", places[i],
                 places[i - 1]);
    before = said;
    revisions.push_back({places[i], {said->step, said->tokens}});
  }
  std::ranges::sort(revisions, {}, [](const Revision& one) { return one.moment.step; });
  for (const Revision& one : revisions)
    if (one.moment.step < 0 || one.moment.step > most_steps_or_tokens)
      fail_input("--steps: {} is no step; expected 0 to 2^53", one.moment.step);
  for (std::size_t i = 1; i < revisions.size(); ++i)
    if (revisions[i].moment.step == revisions[i - 1].moment.step)
      fail_input("{} and {}: both are of step {}; leave one out, or give --steps", revisions[i - 1].place,
                 revisions[i].place, revisions[i].moment.step);
  // A count of tokens that some say and others do not is none.
  if (std::ranges::any_of(revisions, [](const Revision& one) { return one.moment.step > 0 && one.moment.tokens == 0; }))
    for (Revision& one : revisions) one.moment.tokens = 0;
  return revisions;
}

std::vector<Revision> in_order(const InspectOptions& options) {
  if (options.checkpoints.size() > 1) return several_in_order(options);
  if (!options.steps.empty()) fail_input("--steps: is for several models; one alone is measured as it is");
  return {{options.checkpoints.at(0), {}}};
}

std::string tokenizer_of(const LoadedModel& saved) {
  return has_tokenizer(saved) ? TextTokenizer(saved.checkpoint.string()).name() : "";
}

// The configuration in the manifest: what was measured, on what.
ordered_json config_of(const InspectOptions& options, const std::vector<Revision>& revisions, const LoadedModel& saved,
                       const Setup& setup) {
  ordered_json config = to_json(setup);
  if (!saved.architecture.empty()) {  // nothing is known of its training
    const ordered_json train = config["train"];
    config = {
        {"architecture", saved.architecture}, {"model", config["model"]}, {"train", {}}, {"data", config["data"]}};
    for (const char* key : {"batch", "seq_len", "validation_batches"}) config["train"][key] = train[key];
  }
  config["track"] = {{"metrics", options.metrics}};
  if (const AttentionOptions& attention = options.attention; !attention.text.empty())
    config["attention"] = {
        {"text", absolute_folder(attention.text).string()}, {"tokens", attention.tokens}, {"heads", attention.heads}};
  if (options.examples > 0) config["examples"] = options.examples;
  // Found from anywhere.
  if (revisions.size() == 1) {
    config["checkpoint"] = absolute_folder(saved.checkpoint).string();
    return config;
  }
  for (const Revision& one : revisions) {
    config["checkpoints"].push_back(absolute_folder(one.place).string());
    config["steps"].push_back(one.moment.step);
  }
  return config;
}

// The seed that the training of a checkpoint of ours began with; null where it says none.
ordered_json seed_of(const fs::path& checkpoint) {
  const CheckpointReader reader(checkpoint);
  for (const char* part : {"condition", "train"})  // a condition of a study has its own
    if (const ordered_json object = reader.object("config").value(part, ordered_json()); object.is_object())
      if (const ordered_json seed = object.value("seed", ordered_json()); seed.is_number_integer()) return seed;
  return nullptr;
}

// Of the layers that have one; 0: none has.
std::int64_t shortest_window(const DecoderConfig& model) {
  std::int64_t shortest = 0;
  for (const std::int64_t window : model.windows)
    if (window > 0 && (shortest == 0 || window < shortest)) shortest = window;
  return shortest;
}

// A pass that overflows measures nothing: a layer is named whose queries or keys are not finite.
void check_finite(const ProbeResult& result, const fs::path& model) {
  for (std::size_t layer = 0; layer < result.layers.size(); ++layer)
    for (const char* metric : {"k_norm", "q_norm"})
      if (const auto found = result.layers[layer].find(metric); found != result.layers[layer].end())
        for (const double value : found->second)
          if (!std::isfinite(value))
            fail_runtime("{}: queries or keys of layer {} are not finite: the pass overflows in float32",
                         model.string(), layer);
  if (!std::isfinite(*result.val_loss))
    fail_runtime("{}: the loss is not finite: the pass overflows in float32", model.string());
}

// models.json: the models that were measured, and the rows that tables had then.
ordered_json json_of(const std::vector<MeasuredModel>& models, const TableRows& rows, const std::string& data) {
  ordered_json list = ordered_json::array();
  for (const MeasuredModel& one : models) list.push_back(to_json(one));
  return {{"models", list}, {"rows", rows}, {"data_xxh3_128", data}};
}

// What the folder has of several models; nothing when none was measured.
struct KeptModels {
  std::vector<MeasuredModel> models;
  TableRows rows;
  std::string data;  // hash
};
KeptModels models_in(const fs::path& folder) {
  const fs::path file = folder / models_name;
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return {};
  KeptModels kept;
  try {
    const ordered_json object = ordered_json::parse(read_file(file));
    for (const ordered_json& one : object.at("models"))
      kept.models.push_back({one.at("checkpoint").get<std::string>(),
                             {one.at("step").get<std::int64_t>(), one.at("tokens").get<std::int64_t>()},
                             one.at("val_loss").get<double>(),
                             one.at("weights_xxh3_128").get<std::string>()});
    kept.rows = object.at("rows").get<TableRows>();
    kept.data = object.at("data_xxh3_128").get<std::string>();
  } catch (const nlohmann::json::exception&) {
    fail_input("{}: is damaged; start again with --overwrite", file.string());
  }
  return kept;
}

// What is gone on with was measured on the same data, of models that are as they were; those may be gone meanwhile.
void check_unchanged(const KeptModels& kept, const Corpus& corpus) {
  if (!kept.models.empty() && kept.data != corpus.hash)
    fail_input("{}: is not the data that models were measured on before; measure all again with --overwrite",
               corpus.source);
  std::error_code ignored;
  for (const MeasuredModel& one : kept.models)
    if (fs::exists(one.checkpoint, ignored) && ModelFiles(one.checkpoint).weights_hash() != one.weights)
      fail_input("{}: its weights changed since it was measured; measure all again with --overwrite", one.checkpoint);
}

void warn_of_same_weights(const std::vector<MeasuredModel>& models, Console& console) {
  const MeasuredModel& last = models.back();
  for (std::size_t i = 0; i + 1 < models.size(); ++i)
    if (models[i].weights == last.weights)
      return console.warn(
          fmt::format("{} and {}: have the same weights, to the last bit", models[i].checkpoint, last.checkpoint));
}

// Groups of models with the same weights.
ordered_json same_weights(const std::vector<MeasuredModel>& models) {
  std::map<std::string, std::vector<std::string>> by_hash;
  for (const MeasuredModel& one : models) by_hash[one.weights].push_back(one.checkpoint);
  ordered_json groups = ordered_json::array();
  for (const auto& [hash, names] : by_hash)
    if (names.size() > 1) groups.push_back(names);
  return groups;
}

// The models one after another, each read when its turn comes.
class Inspector {
 public:
  Inspector(const InspectJob& job, Console& console)
      : job_(job),
        console_(console),
        chosen_(job.options.metrics, "--track"),
        device_(choose_device(job.options.device)),
        revisions_(in_order(job.options)),
        loaded_(load(0)) {
    check_single_heads();
    change(loaded_.setup, job.options.changes);
    reads_texts_only_ = !loaded_.architecture.empty() && !job.options.attention.text.empty() &&
                        loaded_.setup.data.path.empty() && job.options.examples == 0;
    if (!reads_texts_only_)
      hold_out_all(loaded_, /*tokenizer_given=*/std::ranges::find(job.options.changes, "data.tokenizer",
                                                                  &ConfigEntry::key) != job.options.changes.end());
    say_warnings();
    setup_ = loaded_.setup;
    if (revisions_.size() == 1) revisions_[0].moment = {loaded_.step, loaded_.tokens};
    first_ = {loaded_.checkpoint, loaded_.setup.model, several() ? tokenizer_of(loaded_) : ""};
    add_seed(loaded_);
    for (std::size_t i = 1; i < revisions_.size(); ++i) {
      const LoadedModel next = load_model(revisions_[i].place, at::kMeta);
      check_same_model(next);
      add_seed(next);
    }
  }

  Inspection run(const WriteMore& write_more) {
    if (!job_.options.attention.text.empty())
      attention_ = prepare_attention(job_.options.attention, loaded_, setup_, console_);
    return reads_texts_only_ ? run_on_texts() : run_on_data(write_more);
  }

 private:
  // A published model without data: the attention of heads is all that is asked for.
  [[nodiscard]] Inspection run_on_texts() {
    Inspection inspection{.architecture = loaded_.architecture, .device = device_.description};
    RunFolder folder(job_.folder, {.command = inspect_command,
                                   .config = config_of(job_.options, revisions_, loaded_, setup_),
                                   .facts = facts_of(title_of(loaded_))});
    if (folder.already_complete()) return inspection;
    return folder.live([&] {
      write_single_heads(folder, {}, {}, {});
      folder.finish(RunStatus::complete, {{"weights_xxh3_128", ModelFiles(loaded_.checkpoint).weights_hash()}});
      return inspection;
    });
  }

  Inspection run_on_data(const WriteMore& write_more) {
    const Corpus corpus = load_held_out(setup_, console_);
    check_tokenizer(corpus);
    if (job_.options.examples > 0 && setup_.train.seq_len < 2)
      fail_input("--examples: sequences of one token have none; give --seq-len 2 or more");
    Inspection inspection{.architecture = loaded_.architecture, .device = device_.description, .source = corpus.source};
    const std::string title = revisions_.size() > 1 ? title_of_course(loaded_) : title_of(loaded_);
    RunFolder folder(job_.folder, {.command = inspect_command,
                                   .config = config_of(job_.options, revisions_, loaded_, setup_),
                                   .facts = facts_of(title),
                                   .writes = writes_of(job_.options)});
    const RunFacts facts{title, setup_.model.d_k};
    if (folder.already_complete()) return read_again(std::move(inspection), folder, facts);
    return folder.live([&] {
      const std::vector<Batch> batches = measure(inspection, folder, corpus);
      inspection.summary = summarise(inspection.tracks, facts);
      if (!several()) write_single_heads(folder, inspection.summary.roles, corpus, batches);
      write_summary(inspection.summary, facts, folder.writer());
      if (write_more) write_more(inspection, facts, folder.place());
      ordered_json results = {{"val_loss", inspection.models.back().val_loss},
                              {"weights_xxh3_128", inspection.models.back().weights},
                              {"inputs_xxh3_128", {{corpus.source, corpus.hash}}}};
      if (several()) results["same_weights"] = same_weights(inspection.models);
      folder.finish(RunStatus::complete, results);
      return inspection;
    });
  }

  [[nodiscard]] bool several() const { return revisions_.size() > 1; }

  void check_single_heads() const {
    const InspectOptions& options = job_.options;
    check_size("--examples", options.examples, 0, most_examples);
    if (options.attention.text.empty() && !options.attention.heads.empty())
      fail_input("--attention-heads: names the heads of --text, which is not given");
    if (several() && (options.examples > 0 || !options.attention.text.empty()))
      fail_input("{}: is for one model; give it with each alone", options.examples > 0 ? "--examples" : "--text");
  }

  // Texts are read with the tokens that the model knows.
  void check_tokenizer(const Corpus& corpus) const {
    if (job_.options.attention.text.empty() || !loaded_.architecture.empty()) return;
    if (const std::string name = TextTokenizer(setup_.data.tokenizer).name(); name != corpus.tokenizer)
      fail_input("--text: its tokenizer would be '{}', and the data has tokens of '{}'; give that with --tokenizer",
                 name, corpus.tokenizer);
  }

  void write_single_heads(const RunFolder& folder, const std::optional<RolesResult>& roles, const Corpus& corpus,
                          const std::vector<Batch>& batches) {
    choose_heads(attention_, setup_.model, roles, console_);
    with_short_torch_errors([&] {
      if (!attention_.texts.empty()) write_attention(attention_, loaded_.model, folder.place());
      if (job_.options.examples > 0)
        write_examples(job_.options.examples, loaded_, setup_, corpus, batches, folder.place(), console_);
    });
  }

  [[nodiscard]] LoadedModel load(std::size_t i) const { return load_model(revisions_[i].place, device_.device); }
  void say_warnings() const {
    for (const std::string& warning : loaded_.warnings) console_.warn(warning);
  }

  void add_seed(const LoadedModel& model) {
    if (!model.architecture.empty()) return;
    const ordered_json seed = seed_of(model.checkpoint);
    if (!seed.is_null() && std::ranges::find(seeds_, seed) == seeds_.end()) seeds_.push_back(seed);
  }

  [[nodiscard]] ordered_json facts_of(const std::string& title) const {
    const Moment last = revisions_.back().moment;
    ordered_json facts = device_facts(device_);
    facts.update({{"title", title}, {"step", last.step}, {"tokens", last.tokens}});
    if (!seeds_.empty()) facts["seeds"] = seeds_;
    // Nothing says when in its training a published model was saved.
    if (!loaded_.architecture.empty() && !trained_for(loaded_.checkpoint) && !several()) facts["step"] = nullptr;
    if (!loaded_.architecture.empty() && last.tokens == 0) facts["tokens"] = nullptr;
    if (const std::int64_t window = shortest_window(setup_.model); window > 0) facts["shortest_window"] = window;
    return facts;
  }

  // Returns the batches that were measured on.
  std::vector<Batch> measure(Inspection& inspection, const RunFolder& folder, const Corpus& corpus) {
    RunTables tables(folder.place(), {.probe = revisions_.size()});
    std::vector<MeasuredModel>& models = inspection.models;
    if (several()) {
      KeptModels kept = models_in(folder.place());
      check_unchanged(kept, corpus);
      tables.truncate(kept.rows);  // what a process that was killed wrote behind them
      models = std::move(kept.models);
    }
    std::optional<Progress> progress;
    if (several()) progress.emplace(console_, "measuring", "models", revisions_.size(), models.size());
    std::vector<Batch> batches =
        with_short_torch_errors([&] { return validation_batches(setup_.train, corpus, device_); });
    while (models.size() < revisions_.size()) {
      const std::size_t i = models.size();
      if (i > 0) {
        loaded_ = {};  // its memory is needed
        loaded_ = load(i);
        say_warnings();
      }
      const ProbeResult result = with_short_torch_errors(
          [&] { return probe_model(loaded_.model, batches, device_.type, chosen_, /*with_loss=*/true); });
      if (interrupt_requested())
        throw Error(Fault::interrupted, "interrupted; " + resume_hint(inspect_command, folder.path()));
      check_finite(result, loaded_.checkpoint);
      const Moment moment = revisions_[i].moment;
      const Measured now{moment, "probe"};
      tables.add_probe({moment, missing, *result.val_loss}, result.layers);
      tables.add_heads(now, result.layers);
      tables.add_gains(now, result.gains, /*with_vectors=*/true);
      models.push_back({absolute_folder(loaded_.checkpoint).string(), moment, *result.val_loss,
                        ModelFiles(loaded_.checkpoint).weights_hash()});
      const TableRows rows = tables.flush();
      if (!several()) break;
      warn_of_same_weights(models, console_);
      write_file(folder.place() / models_name, json_text(json_of(models, rows, corpus.hash)));
      progress->step(fmt::format("step {}, loss {:.3f}", moment.step, *result.val_loss));
    }
    tables.merge();
    inspection.tracks = tables.tracks();
    return batches;
  }

  Inspection read_again(Inspection inspection, const RunFolder& folder, const RunFacts& facts) const {
    inspection.tracks = read_tracks(folder.path());
    inspection.summary = summarise(inspection.tracks, facts);
    if (several()) {
      inspection.models = models_in(folder.path()).models;
    } else {
      const ordered_json manifest = read_manifest(folder.path()), loss = manifest.value("val_loss", ordered_json());
      inspection.models = {{loaded_.checkpoint.string(), revisions_[0].moment,
                            loss.is_number() ? loss.get<double>() : missing, text_at(manifest, "weights_xxh3_128")}};
    }
    return inspection;
  }

  // Revisions of one model have the same heads and read the same tokens. All are looked at before one is measured.
  void check_same_model(const LoadedModel& now) const {
    const std::string place = now.checkpoint.string();
    const auto check = [&](std::string_view what, std::int64_t is, std::int64_t was) {
      if (is != was)
        fail_input("{}: has {} {}, {} has {}; what is measured together must be one model", place, is, what,
                   first_.checkpoint.string(), was);
    };
    const DecoderConfig& model = now.setup.model;
    check("layers", model.layers, first_.model.layers);
    check("query heads a layer", model.heads, first_.model.heads);
    check("key heads a layer", model.kv_heads, first_.model.kv_heads);
    check("dimensions a head", model.d_k, first_.model.d_k);
    check("tokens in its vocabulary", model.vocabulary, first_.model.vocabulary);
    if (model.longest != 0 && setup_.train.seq_len > model.longest)
      fail_input("{}: its range is {} tokens, and sequences have {}; give --seq-len {}", place, model.longest,
                 setup_.train.seq_len, model.longest);
    const std::string tokenizer = tokenizer_of(now);
    if (!tokenizer.empty() && !first_.tokenizer.empty() && tokenizer != first_.tokenizer)
      fail_input("{}: has another tokenizer than {}; what is measured together must be one model", place,
                 first_.checkpoint.string());
  }

  // What the first model has, and all others must have.
  struct First {
    fs::path checkpoint;
    DecoderConfig model;
    std::string tokenizer;  // empty: none of its own
  };

  const InspectJob& job_;
  Console& console_;
  const MetricSelection chosen_;
  const ComputeDevice device_;
  std::vector<Revision> revisions_;
  LoadedModel loaded_;
  Setup setup_;
  First first_;
  std::vector<ordered_json> seeds_;  // of the trainings, each once; none of a published model
  AttentionJob attention_;           // empty: not asked for
  bool reads_texts_only_ = false;
};

}  // namespace

Inspection inspect(const InspectJob& job, Console& console, const WriteMore& write_more) {
  const InterruptGuard guard;
  const LargeTensors memory;
  return Inspector(job, console).run(write_more);
}

}  // namespace headscope
