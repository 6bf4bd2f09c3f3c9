#include "page/texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "core/lists.h"
#include "heads/roles/choice.h"
#include "page/block.h"

namespace headscope {
namespace {

using Head = std::pair<std::int64_t, std::int64_t>;  // layer, query head

constexpr double growth_of_base64 = 4.0 / 3;  // what no block exceeds, but for some bytes

// About what the page has of an example: names and numbers of JSON, pieces, weights.
std::string raw_example(const ShownExample& one) {
  std::string text = R"({"head":0,"quantile":0.99999,"strength":0.99999,"document":99,"query":999,"key":999)";
  for (const std::string& piece : one.pieces) text += fmt::format("\"{}\",", piece);
  for (const char byte : one.bytes) text += fmt::format("{},", static_cast<unsigned char>(byte));
  return text;
}

// The bytes that texts have in the page. A few are packed to see how small they become.
double bytes_of_attention(const ReportRun& run) {
  constexpr std::size_t most_tried = 16;
  const std::vector<ShownAttention>& all = run.attention.heads;
  double raw = 0, tried = 0, packed = 0;
  for (const ShownAttention& one : all) raw += static_cast<double>(one.bytes.size());
  for (const std::size_t place : evenly_spaced(all.size(), most_tried)) {
    tried += static_cast<double>(all[place].bytes.size());
    packed += static_cast<double>(block_text(all[place].bytes).size());
  }
  return tried == 0 ? 0 : packed * raw / tried;
}

double bytes_of_examples(const ReportRun& run) {
  constexpr std::size_t most_tried = 256;  // one block, as those of a layer are
  const std::vector<std::size_t> places = evenly_spaced(run.examples.size(), most_tried);
  std::string tried;
  for (const std::size_t place : places) tried += raw_example(run.examples[place]);
  return places.empty() ? 0
                        : static_cast<double>(block_text(tried).size()) * static_cast<double>(run.examples.size()) /
                              static_cast<double>(places.size());
}

// An upper bound that packs nothing.
double most_bytes(const ReportRun& run) {
  double sum = 0;
  for (const ShownAttention& one : run.attention.heads) sum += static_cast<double>(one.bytes.size());
  for (const ShownExample& one : run.examples) sum += static_cast<double>(raw_example(one).size());
  return growth_of_base64 * sum;
}

// At most so many heads of a run's attention.
void keep_heads(ReportRun& run, std::size_t most) {
  std::set<Head> all;
  for (const ShownAttention& one : run.attention.heads) all.emplace(one.layer, one.head);
  const std::int64_t width = std::max<std::int64_t>(run.counts().query_heads, 1);
  std::vector<std::size_t> places;
  for (const auto& [layer, head] : all) places.push_back(static_cast<std::size_t>(layer * width + head));
  const bool has_roles = run.roles && std::ranges::all_of(places, [&](std::size_t place) {
                           return place < run.roles->roles.heads.size();
                         });
  const std::vector<std::size_t> kept =
      has_roles ? choose_heads(run.roles->roles, places, most).heads : evenly_chosen(places, most);
  std::erase_if(run.attention.heads, [&](const ShownAttention& one) {
    return !std::ranges::binary_search(kept, static_cast<std::size_t>(one.layer * width + one.head));
  });
}

// At most so many examples of each head.
void keep_examples(ReportRun& run, std::size_t most) {
  std::map<Head, std::vector<std::size_t>> of_head;
  for (std::size_t i = 0; i < run.examples.size(); ++i)
    of_head[{run.examples[i].layer, run.examples[i].head}].push_back(i);
  std::set<std::size_t> kept;
  for (const auto& [head, places] : of_head) {
    if (most == 1) kept.insert(places.front());  // the strongest
    if (most < 2) continue;
    for (const std::size_t place : evenly_spaced(places.size(), most)) kept.insert(places[place]);
  }
  std::vector<ShownExample> examples;
  for (const std::size_t i : kept) examples.push_back(std::move(run.examples[i]));
  run.examples = std::move(examples);
}

std::size_t heads_of_attention(const ReportRun& run) {
  std::set<Head> heads;
  for (const ShownAttention& one : run.attention.heads) heads.emplace(one.layer, one.head);
  return heads.size();
}

std::size_t most_examples_of_a_head(const ReportRun& run) {
  std::map<Head, std::size_t> counts;
  std::size_t most = 0;
  for (const ShownExample& one : run.examples) most = std::max(most, ++counts[{one.layer, one.head}]);
  return most;
}

// Of `count` things that need `bytes`, as many as `room` holds; one that is not much larger, otherwise none.
std::size_t fitting(std::size_t count, double bytes, double room) {
  if (bytes <= room) return count;
  const double fit = static_cast<double>(count) * room / bytes;
  return fit >= 0.5 ? std::max<std::size_t>(static_cast<std::size_t>(fit), 1) : 0;
}

std::string megabytes_of_one(double bytes, std::size_t count) {
  return fmt::format("{:.2g} MB", bytes / static_cast<double>(count) / bytes_of_a_megabyte);
}

void thin(ReportRun& run, double room, std::vector<std::string>& left_out) {
  if (most_bytes(run) <= room) return;
  const double attention = bytes_of_attention(run), examples = bytes_of_examples(run);
  if (attention + examples <= room) return;
  // Each gets half, and what the other does not need.
  const double for_attention = std::max(room / 2, room - examples), for_examples = std::max(room / 2, room - attention);
  const std::size_t heads = heads_of_attention(run), of_a_head = most_examples_of_a_head(run);
  if (const std::size_t kept = fitting(heads, attention, for_attention); kept < heads) {
    keep_heads(run, kept);
    left_out.push_back(kept > 0 ? fmt::format("{}: attention of {} of {} heads is kept", run.name, kept, heads)
                                : fmt::format("{}: attention; that of one head has {}: inspect fewer --tokens, or "
                                              "give a larger --max-size",
                                              run.name, megabytes_of_one(attention, heads)));
  }
  if (const std::size_t kept = fitting(of_a_head, examples, for_examples); kept < of_a_head) {
    keep_examples(run, kept);
    left_out.push_back(kept > 0
                           ? fmt::format("{}: {} of {} examples of each head are kept", run.name, kept, of_a_head)
                           : fmt::format("{}: examples; one of each head has {}: give --heads, or a larger --max-size",
                                         run.name, megabytes_of_one(examples, of_a_head)));
  }
}

}  // namespace

std::vector<std::string> thin_texts(ReportData& data, double bytes) {
  std::vector<std::string> left_out;
  const auto runs = std::ranges::count_if(data.runs, &ReportRun::has_attention);
  for (ReportRun& run : data.runs)
    if (run.has_attention()) thin(run, bytes / static_cast<double>(runs), left_out);
  return left_out;
}

}  // namespace headscope
