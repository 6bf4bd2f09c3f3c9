#include "command.h"
#include "torch_half.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

ordered_json json_of(const ParityRow& row) {
  return {{"name", row.name},
          {"layer", row.layer < 0 ? ordered_json() : ordered_json(row.layer)},
          {"difference", row.difference},
          {"tolerance", row.tolerance}};
}

ordered_json parity_json(const Parity& parity) {
  ordered_json rows = ordered_json::array();
  for (const ParityRow& row : parity.rows) {
    rows.push_back(json_of(row));
    rows.back()["within"] = row.within();
  }
  return {{"model", parity.model},
          {"title", parity.title},
          {"reference", parity.reference},
          {"within", parity.within()},
          {"worst", json_of(parity.worst())},
          {"rows", rows},
          {"not_in_reference", parity.not_there}};
}

std::string place_of(const ParityRow& row) {
  return row.layer < 0 ? row.name : fmt::format("{} of layer {}", row.name, row.layer);
}

// A line for each layer, a column for each array; what exceeds its tolerance is marked.
void print_parity(const Parity& parity) {
  std::vector<std::string> names;
  for (const ParityRow& row : parity.rows)
    if (row.layer >= 0 && std::ranges::find(names, row.name) == names.end()) names.push_back(row.name);
  fmt::print("{} against {}: largest differences (* above the tolerance)\n", parity.title, visible(parity.reference));
  if (!names.empty()) {
    fmt::print("  layer");
    for (const std::string& name : names) fmt::print("  {:>9}", name);
  }
  int layer = -1;
  for (const ParityRow& row : parity.rows) {
    if (row.layer < 0) continue;
    if (row.layer != layer) fmt::print("\n  {:>5}", layer = row.layer);
    fmt::print("  {:>8.1e}{}", row.difference, row.within() ? ' ' : '*');
  }
  fmt::print("\n");
  for (const ParityRow& row : parity.rows)
    if (row.layer < 0) fmt::print("  {}  {:.1e}{}\n", row.name, row.difference, row.within() ? "" : "*");
  if (!parity.not_there.empty()) fmt::print("  not in the reference: {}\n", fmt::join(parity.not_there, ", "));
  const ParityRow& worst = parity.worst();
  const auto wrong = std::ranges::count_if(parity.rows, [](const ParityRow& row) { return !row.within(); });
  fmt::print("{}; {} is {}: {:.2g}, allowed {:.2g}\n",
             wrong == 0 ? std::string("all within tolerance")
                        : fmt::format("{} of {} above the tolerance", wrong, parity.rows.size()),
             wrong == 0 ? "nearest to its limit" : "farthest beyond it", place_of(worst), worst.difference,
             worst.tolerance);
}

}  // namespace

void add_parity(CLI::App& app, CommonFlags& common, Command& chosen) {
  auto options = std::make_shared<ParityOptions>();
  auto* command = app.add_subcommand(
      "parity", "Compare a model's queries, keys, attention entropy and logits with those that another program saved");
  command
      ->add_option("model", options->model, "A published model's folder or GGUF file, or a checkpoint or run of ours")
      ->required()
      ->type_name("MODEL");
  command->add_option("--reference", options->reference, "Arrays of the other program (docs/models.md)")
      ->required()
      ->type_name("FILE.npz");
  command->add_option("--device", options->device, "auto, cpu or cuda (cuda:1: the second GPU) [cpu]")
      ->type_name("NAME");
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [options, &common] {
    Console console(common.console);
    const Parity parity = torch_half().parity(*options, console);
    if (common.json)
      fmt::print("{}", json_text(parity_json(parity)));
    else
      print_parity(parity);
    return parity.within() ? 0 : 1;
  });
}

}  // namespace headscope
