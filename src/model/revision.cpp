#include "model/revision.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <vector>

#include "core/atomic_file.h"
#include "core/text.h"
#include "run/manifest.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view cache_prefix = "models--", snapshots = "snapshots", separators = "-_. /=";
constexpr std::string_view step_words[] = {"step", "checkpoint", "ckpt", "iteration", "iter"};
constexpr std::int64_t most = std::int64_t{1} << 53;  // what tables take

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_separator(char c) {
  return separators.find(c) != std::string_view::npos;
}

double unit_of(char letter) {
  constexpr std::string_view letters = "kmbt";
  const std::size_t place = letters.find(letter);
  double unit = 1;
  for (std::size_t i = 0; place != std::string_view::npos && i <= place; ++i) unit *= 1000;
  return unit;
}

// A count that stands behind the last of a word: "step1000", "tokens-4.2b". Where the word begins. Nothing where the
// number goes on in a way that is not understood: "step1e5", "step1_000".
struct Count {
  std::int64_t value = 0;
  std::size_t begin = 0;
};
std::optional<Count> count_behind(std::string_view name, std::string_view word) {
  std::optional<Count> found;
  for (std::size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    if (at > 0 && !is_separator(name[at - 1]) && !is_digit(name[at - 1])) continue;  // within another word: Jupiter-7b
    std::size_t begin = at + word.size();
    while (begin < name.size() && is_separator(name[begin])) ++begin;
    if (begin == name.size() || !is_digit(name[begin])) continue;
    double value = 0;
    const auto [behind, error] =
        std::from_chars(name.data() + begin, name.data() + name.size(), value, std::chars_format::fixed);
    auto end = static_cast<std::size_t>(behind - name.data());
    if (name[end - 1] == '.') --end;  // of an ending: step5.gguf
    const double unit = end < name.size() ? unit_of(name[end]) : 1;
    if (unit > 1) ++end;
    const bool goes_on = end < name.size() && (!is_separator(name[end]) ||
                                               (name[end] == '_' && end + 1 < name.size() && is_digit(name[end + 1])));
    if (error != std::errc() || goes_on || value * unit > static_cast<double>(most)) continue;
    found = {static_cast<std::int64_t>(std::llround(value * unit)), at};
  }
  return found;
}

// The folder that stands for all revisions in a cache of Hugging Face; empty elsewhere.
fs::path cache_of(const fs::path& whole_path) {
  const fs::path around = whole_path.parent_path();
  return around.filename() == snapshots ? around.parent_path() : fs::path();
}

// What the refs call the snapshot, in order. A ref holds the name of a snapshot.
std::vector<std::string> refs_to(const fs::path& cache, const std::string& snapshot) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(cache / "refs", error), end; !error && entry != end;
       entry.increment(error)) {
    constexpr std::uintmax_t longest = 200;
    if (!entry->is_regular_file(error) || entry->file_size(error) > longest || error) continue;
    const std::string points_to = read_file(entry->path());
    if (points_to.substr(0, points_to.find_last_not_of(" \r\n") + 1) == snapshot)
      names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

std::optional<RevisionName> parse_revision(std::string_view given) {
  const std::string name = lower_case(given);
  for (const std::string_view word : step_words) {
    const auto step = count_behind(name, word);
    if (!step) continue;
    RevisionName revision{.step = step->value};
    std::size_t first = step->begin;
    for (const std::string_view other : {"tokens", "stage"}) {
      const auto count = count_behind(name, other);
      if (!count) continue;
      first = std::min(first, count->begin);
      (other == "stage" ? revision.stage : revision.tokens) = count->value;
    }
    if (const std::size_t global = name.rfind("global", first); global != std::string::npos && global + 7 >= first)
      first = global;
    while (first > 0 && is_separator(name[first - 1])) --first;
    revision.of_model = given.substr(0, first);
    return revision;
  }
  return std::nullopt;
}

std::optional<RevisionName> revision_of(const fs::path& place) {
  const fs::path whole_path = absolute_folder(place);
  const std::string name = whole_path.filename().string();
  const fs::path cache = cache_of(whole_path);
  if (cache.empty()) return parse_revision(name);
  for (const std::string& ref : refs_to(cache, name))
    if (const auto revision = parse_revision(ref)) return revision;
  return std::nullopt;
}

std::string published_model_name(const fs::path& place) {
  const fs::path whole_path = absolute_folder(place);
  const fs::path cache = cache_of(whole_path);
  if (cache.empty()) {
    const auto revision = parse_revision(whole_path.filename().string());
    if (!revision) return whole_path.filename().string();
    return revision->of_model.empty() ? whole_path.parent_path().filename().string() : revision->of_model;
  }
  std::string name = cache.filename().string();
  if (name.starts_with(cache_prefix)) name.erase(0, cache_prefix.size());
  constexpr std::string_view between = "--";
  if (const std::size_t found = name.find(between); found != std::string::npos)
    name.replace(found, between.size(), "/");
  return name;
}

std::string published_name(const fs::path& place) {
  const fs::path whole_path = absolute_folder(place);
  const std::string model = published_model_name(place), name = whole_path.filename().string();
  if (!cache_of(whole_path).empty()) {
    const auto revision = revision_of(place);
    return revision ? fmt::format("{}, step {}", model, revision->step) : model;
  }
  const auto revision = parse_revision(name);
  return revision && revision->of_model.empty() && !model.empty() ? model + "/" + name : name;
}

}  // namespace headscope
