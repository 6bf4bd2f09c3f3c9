#include "plasticity/dataset.h"

#include <algorithm>
#include <regex>
#include <set>

#include "core/atomic_file.h"
#include "core/json_text.h"
#include "core/lists.h"
#include "formats/capture_writer.h"
#include "run/names.h"
#include "run/run_folder.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// What the program that captured says beside its files (_saver_state.json). Nothing of it where there is no such file.
struct CaptureState {
  std::string rope = "unknown";
  std::optional<std::int64_t> layers, q_heads, k_heads;  // of the model: perhaps not all were captured
};

CaptureState read_capture_state(const fs::path& root) {
  CaptureState state;
  std::error_code ignored;
  if (!fs::is_regular_file(root / "_saver_state.json", ignored)) return state;
  const ordered_json content = parse_json(read_file(root / "_saver_state.json"));
  const ordered_json said = content.is_object() ? content.value("model_metadata", ordered_json()) : ordered_json();
  if (!said.is_object()) return state;
  const std::string rope = text_at(said, "rope");
  if (rope == "before" || rope == "after") state.rope = rope;
  const auto count = [&](const char* name) -> std::optional<std::int64_t> {
    const auto found = said.find(name);
    if (found == said.end() || !found->is_number_integer()) return std::nullopt;
    const auto value = found->get<std::int64_t>();
    return value > 0 ? std::optional(value) : std::nullopt;
  };
  state.layers = count("head_sampling_num_layers");
  state.q_heads = count("head_sampling_num_query_heads");
  state.k_heads = count("head_sampling_num_key_heads");
  return state;
}

// A capture of ours appears head by head at its end.
void refuse_unfinished(const fs::path& root) {
  if (!is_run(root)) return;
  const ordered_json manifest = read_manifest(root);
  const std::string command = text_at(manifest, "command");
  std::error_code ignored;
  if (fs::exists(root / replaced_name, ignored) || fs::exists(root / publishing_name, ignored))
    fail_input("{}: another run is taking its place, or a kill stopped that; {}", root.string(),
               resume_hint(command, root));
  if (command == "capture" && !is_complete(root))
    fail_input("{}: the capture is not finished (status {}); {}", root.string(), text_at(manifest, "status"),
               resume_hint(command, root));
}

struct FoundHeads {
  std::set<std::pair<std::int64_t, std::int64_t>> queries;  // (layer, head)
  std::int64_t num_layers = 0, num_q_heads = 0, num_k_heads = 0;
};

FoundHeads look(const fs::path& root) {
  static const std::regex folder_name("l([0-9]{2,5})h([0-9]{2,5})([qk])");
  FoundHeads found;
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    std::smatch parts;
    if (!std::regex_match(name, parts, folder_name)) continue;
    const std::int64_t layer = std::stoll(parts[1]), head = std::stoll(parts[2]);
    found.num_layers = std::max(found.num_layers, layer + 1);
    auto& heads = parts[3] == "q" ? found.num_q_heads : found.num_k_heads;
    heads = std::max(heads, head + 1);
    if (parts[3] == "q") found.queries.emplace(layer, head);
  }
  return found;
}

// " (but layer0h0, layer0h1, …)": what a folder without heads does hold.
std::string first_names(const fs::path& root) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(root)) names.push_back(entry.path().filename().string());
  if (names.empty()) return ", nor anything else";
  std::ranges::sort(names);
  constexpr std::size_t most = 3;
  const bool more = names.size() > most;
  names.resize(std::min(names.size(), most));
  return fmt::format(" but {}{}", fmt::join(names, ", "), more ? ", …" : "");
}

fs::path resolve_root(const fs::path& data, const PlasticityOptions& options) {
  if (data.empty() && options.dataset_local_root.empty())
    fail_input(
        "no data: name the folder that holds l00h00q/data.parquet, or set dataset_local_root (nothing is downloaded)");
  const fs::path root = data.empty() ? fs::path(options.dataset_local_root) / options.model_dir : data;
  if (!fs::is_directory(root))
    fail_input("{}: is not a folder; expected one that holds l00h00q/data.parquet", root.string());
  return root;
}

// Keeps the heads whose `member` is in the list `wanted`. A number that no head has is an error.
void select(std::vector<HeadId>& heads, std::int64_t HeadId::*member, const std::string& wanted, std::string_view flag,
            const fs::path& root) {
  if (wanted.empty()) return;
  const std::vector<std::int64_t> list = parse_index_list(wanted, flag);
  for (const std::int64_t index : list)
    if (std::none_of(heads.begin(), heads.end(), [&](const HeadId& head) { return head.*member == index; }))
      fail_input("{} {}: {} has none with number {}", flag, wanted, root.string(), index);
  std::erase_if(heads, [&](const HeadId& head) { return !std::binary_search(list.begin(), list.end(), head.*member); });
}

void select_heads(Dataset& dataset, const PlasticityOptions& options) {
  select(dataset.heads, &HeadId::layer, options.layers, "--layers", dataset.root);
  select(dataset.heads, &HeadId::q_head, options.heads, "--heads", dataset.root);
  if (dataset.heads.empty()) fail_input("{}: no head is left to analyse", dataset.root.string());
}

}  // namespace

std::string HeadId::name() const {
  return fmt::format("l{:02}h{:02}", layer, q_head);
}

fs::path Dataset::query_file(const HeadId& head) const {
  return captured_file(root, head.layer, head.q_head, 'q');
}
fs::path Dataset::key_file(const HeadId& head) const {
  return captured_file(root, head.layer, head.k_head, 'k');
}

Dataset dataset_of_model(const fs::path& root, std::int64_t layers, std::int64_t q_heads, std::int64_t k_heads,
                         const PlasticityOptions& options) {
  Dataset dataset{root, layers, q_heads, k_heads, {}};
  for (std::int64_t layer = 0; layer < layers; ++layer)
    for (std::int64_t head = 0; head < q_heads; ++head)
      dataset.heads.push_back({layer, head, head / (q_heads / k_heads)});
  select_heads(dataset, options);
  return dataset;
}

Dataset open_dataset(const fs::path& data, const PlasticityOptions& options) {
  Dataset dataset;
  dataset.root = resolve_root(data, options);
  refuse_unfinished(dataset.root);
  const FoundHeads found = look(dataset.root);
  const CaptureState state = read_capture_state(dataset.root);
  dataset.rope = state.rope;
  if (found.queries.empty())
    fail_input(
        "{}: holds no heads{}; expected folders such as l00h00q and l00h00k, each with data.parquet (of a model: give "
        "its "
        "text with --data, or run 'headscope capture')",
        dataset.root.string(), first_names(dataset.root));
  dataset.num_layers = options.num_layers.value_or(std::max(found.num_layers, state.layers.value_or(0)));
  dataset.num_q_heads = options.num_q_heads.value_or(std::max(found.num_q_heads, state.q_heads.value_or(0)));
  dataset.num_k_heads =
      found.num_k_heads == 0 ? 0 : options.num_k_heads.value_or(std::max(found.num_k_heads, state.k_heads.value_or(0)));
  if (dataset.num_k_heads == 0) fail_input("{}: holds queries but no keys (l00h00k)", dataset.root.string());
  if (dataset.num_q_heads % dataset.num_k_heads != 0)
    fail_input("{}: {} query heads are not a multiple of {} key heads; set num_q_heads and num_k_heads",
               dataset.root.string(), dataset.num_q_heads, dataset.num_k_heads);

  const std::int64_t group = dataset.num_q_heads / dataset.num_k_heads;
  const bool described = options.num_layers && options.num_q_heads;
  for (std::int64_t layer = 0; layer < dataset.num_layers; ++layer)
    for (std::int64_t head = 0; head < dataset.num_q_heads; ++head)
      if (described || found.queries.contains({layer, head}))
        dataset.heads.push_back({layer, head, head / group});
      else
        dataset.missing.push_back(fmt::format("l{:02}h{:02}q", layer, head));
  select_heads(dataset, options);
  return dataset;
}

}  // namespace headscope
