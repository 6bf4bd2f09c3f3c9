#include "tokenizer/gguf_tokenizer.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "core/config.h"
#include "core/error.h"
#include "formats/content_hash.h"
#include "tokenizer/gguf_words.h"
#include "tokenizer/json_view.h"

namespace headscope {
namespace {

constexpr std::string_view gguf_prefix = "tokenizer.ggml.", gguf_kinds = "gpt2 (byte-level) and llama (sentencepiece)";
constexpr const char* gguf_space = "\xE2\x96\x81";  // what sentencepiece writes for a space

std::string gguf_key(std::string_view name) {
  return fmt::format("{}{}", gguf_prefix, name);
}

// What a token is, with the numbers of the file.
enum class GgufTokenKind { normal = 1, unknown, control, user_defined, unused, byte };

// The list of tokens, and ids that stand in it.
class GgufVocabulary {
 public:
  GgufVocabulary(const GgufMetadata& metadata, const std::string& origin) : metadata_(metadata), origin_(origin) {
    tokens_ = metadata.texts(gguf_key("tokens"));
    if (tokens_.empty() || tokens_.size() > most_ids)
      fail_input("{}: has {} tokens; expected 1 to {}", origin, tokens_.size(), most_ids);
    kinds_.assign(tokens_.size(), GgufTokenKind::normal);
    if (metadata.contains(gguf_key("token_type"))) read_kinds();
  }

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(tokens_.size()); }
  [[nodiscard]] std::string_view token(std::uint32_t id) const { return tokens_[id]; }
  [[nodiscard]] GgufTokenKind kind(std::uint32_t id) const { return kinds_[id]; }

  // Converters fill ids without a token, so that there are as many as rows of the embedding.
  [[nodiscard]] bool is_filler(std::uint32_t id) const {
    return tokens_[id].empty() || (tokens_[id].starts_with("[PAD") && tokens_[id] == fmt::format("[PAD{}]", id));
  }

  void check_length(std::string_view name, std::size_t count) const {
    if (count != tokens_.size())
      fail_input("{}: {} has {} values; expected {}, one for each token", origin_, gguf_key(name), count,
                 tokens_.size());
  }

  // Nothing when the file does not say it and `without` is no id either.
  [[nodiscard]] std::optional<std::uint32_t> id(std::string_view name, std::optional<std::uint32_t> without) const {
    const std::string key = gguf_key(name);
    if (!metadata_.contains(key)) return without && *without < size() ? without : std::nullopt;
    const std::int64_t value = metadata_.integer(key);
    if (value < 0 || value >= std::int64_t{size()})
      fail_input("{}: {} is {}; expected an id of the {} tokens", origin_, key, value, size());
    return static_cast<std::uint32_t>(value);
  }

 private:
  void read_kinds() {
    const std::vector<std::int64_t> kinds = metadata_.integers(gguf_key("token_type"));
    check_length("token_type", kinds.size());
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i] < 1 || kinds[i] > static_cast<std::int64_t>(GgufTokenKind::byte))
        fail_input("{}: token {} ('{}') is of the type {}; known are 1 to {}", origin_, i, excerpt(tokens_[i], 60),
                   kinds[i], static_cast<int>(GgufTokenKind::byte));
      kinds_[i] = static_cast<GgufTokenKind>(kinds[i]);
    }
  }

  const GgufMetadata& metadata_;
  const std::string& origin_;
  std::vector<std::string_view> tokens_;
  std::vector<GgufTokenKind> kinds_;
};

// Tokens that are found in the text first. What a published tokenizer says of the white space around them is not in the
// file.
std::vector<AddedToken> found_first(const GgufVocabulary& vocabulary) {
  std::vector<AddedToken> added;
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
    const GgufTokenKind kind = vocabulary.kind(id);
    const bool special = kind == GgufTokenKind::control || kind == GgufTokenKind::unknown;
    if ((special || kind == GgufTokenKind::user_defined) && !vocabulary.is_filler(id))
      added.push_back({.content = std::string(vocabulary.token(id)), .id = id, .special = special});
  }
  return added;
}

std::vector<BpePiece> all_pieces(const GgufVocabulary& vocabulary) {
  std::vector<BpePiece> pieces;
  pieces.reserve(vocabulary.size());
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id)
    if (!vocabulary.is_filler(id)) pieces.push_back({std::string(vocabulary.token(id)), id});
  return pieces;
}

// The tokens that begin and end a text, and whether they are added to it. `begin` and `end`: where the file does not
// say their ids.
void read_borders(const GgufMetadata& metadata, const std::string& origin, const GgufVocabulary& vocabulary,
                  bool add_begin, std::optional<std::uint32_t> begin, std::optional<std::uint32_t> end,
                  TokenizerParts& parts) {
  const auto read = [&](std::string_view which, bool usually, std::optional<std::uint32_t> without) {
    const auto id = vocabulary.id(fmt::format("{}_token_id", which), without);
    const std::string key = gguf_key(fmt::format("add_{}_token", which));
    const bool add = metadata.boolean(key, usually);
    if (add && !id && metadata.contains(key))
      fail_input("{}: {} is true, but {} is missing", origin, key, gguf_key(fmt::format("{}_token_id", which)));
    return std::pair(id, add && id.has_value());
  };
  const auto [begin_id, begins] = read("bos", add_begin, begin);
  const auto [end_id, ends] = read("eos", false, end);
  if (begin_id) parts.begin_of_text = vocabulary.token(*begin_id);
  if (end_id) parts.end_of_text = vocabulary.token(*end_id);
  if (!begins && !ends) return;
  Template& whole = parts.templates.emplace_back();
  if (begins) whole.emplace_back(std::vector{*begin_id});
  whole.emplace_back(TemplateText{});
  if (ends) whole.emplace_back(std::vector{*end_id});
}

// "Ġ t": pieces have no spaces, which they write as another character.
std::vector<std::pair<std::string, std::string>> read_merges(const GgufMetadata& metadata, const std::string& origin) {
  const std::vector<std::string_view> texts = metadata.texts(gguf_key("merges"));
  std::vector<std::pair<std::string, std::string>> merges;
  merges.reserve(texts.size());
  for (const std::string_view text : texts) {
    const std::size_t space = text.find(' ');
    if (space == text.npos || space == 0 || space + 1 == text.size() || text.find(' ', space + 1) != text.npos)
      fail_input("{}: {}: merge {} is '{}'; expected two pieces with a space between them", origin, gguf_key("merges"),
                 merges.size(), excerpt(text, 60));
    merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
  return merges;
}

void read_byte_level(const GgufMetadata& metadata, const std::string& origin, const GgufVocabulary& vocabulary,
                     TokenizerParts& parts) {
  const std::string name = metadata.text(gguf_key("pre"), "default");
  if (name == "default")
    parts.warnings.push_back(fmt::format(
        "the file does not say how text is cut into words ({}); it is done as llama.cpp does it, and ids may differ "
        "from those of the model's tokenizer.json",
        gguf_key("pre")));
  GgufWords words = gguf_words(name, origin);
  parts.normalizer = std::move(words.normalizer);
  parts.pre_tokenizer = std::move(words.pre_tokenizer);
  parts.decoder = {decoder::ByteLevel{}};
  parts.bpe.ignore_merges = words.ignore_merges;
  parts.bpe.merges = read_merges(metadata, origin);
  read_borders(metadata, origin, vocabulary, words.add_begin, {}, {}, parts);
}

std::string run_of_spaces(std::size_t length) {
  std::string run;
  for (std::size_t i = 0; i < length; ++i) run += gguf_space;
  return run;
}

// Gemma has tokens for runs of spaces. Published files have them as pieces like any other, with the highest score, the
// longest left part first: a run is cut from its left. Converters write them with spaces, as the user's. This takes
// that back, and returns their merges.
std::vector<std::pair<std::string, std::string>> restore_runs_of_spaces(TokenizerParts& parts) {
  constexpr std::size_t longest_run = 256;  // merges are as many as its square
  std::unordered_set<std::string_view> known;
  for (const BpePiece& piece : parts.bpe.pieces) known.insert(piece.text);
  const bool one_is_known = known.contains(gguf_space);
  std::map<std::uint32_t, std::string> runs;  // by id
  for (AddedToken& token : parts.added) {
    const bool spaces = token.content.find_first_not_of(' ') == std::string::npos;
    if (token.special || !spaces || token.content.size() > longest_run) continue;
    const std::string run = run_of_spaces(token.content.size());
    if (known.contains(run)) continue;
    runs.emplace(token.id, run);
    token.content = run;
  }
  std::set<std::size_t> lengths;
  for (BpePiece& piece : parts.bpe.pieces) {
    const auto run = runs.find(piece.id);
    if (run == runs.end()) continue;
    lengths.insert(piece.text.size());
    piece.text = run->second;
  }
  std::set<std::size_t> halves = lengths;
  if (one_is_known) halves.insert(1);
  std::vector<std::pair<std::string, std::string>> merges;
  for (auto left = halves.rbegin(); left != halves.rend(); ++left)
    for (auto right = halves.rbegin(); right != halves.rend(); ++right)
      if (lengths.contains(*left + *right)) merges.emplace_back(run_of_spaces(*left), run_of_spaces(*right));
  return merges;
}

// Pieces are merged in the order of their scores, as the `tokenizers` library does it after a conversion. Only pieces
// of text take part: the others are found first, or stand for bytes. Where scores are equal, the piece of the lower id
// comes first, and of one piece the cut whose parts have lower ids (bpe.h). Other conversions order the cuts of one
// piece by length, which makes no difference for the tokens of Llama 2, Gemma 2 and Gemma 3.
std::vector<std::pair<std::string, std::string>> merges_of_scores(const GgufMetadata& metadata,
                                                                  const std::string& origin,
                                                                  const GgufVocabulary& vocabulary,
                                                                  std::vector<std::string>& warnings) {
  const std::vector<double> scores = metadata.numbers(gguf_key("scores"));
  vocabulary.check_length("scores", scores.size());
  std::vector<BpePiece> pieces;
  std::vector<float> of_pieces;
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
    const GgufTokenKind kind = vocabulary.kind(id);
    if ((kind != GgufTokenKind::normal && kind != GgufTokenKind::unused) || vocabulary.is_filler(id)) continue;
    pieces.push_back({std::string(vocabulary.token(id)), id});
    of_pieces.push_back(static_cast<float>(scores[id]));
  }
  auto merges = at_place(origin, [&] { return merges_by_score(pieces, of_pieces); });
  if (merges.size() > 1 && std::ranges::adjacent_find(of_pieces, std::not_equal_to<>()) == of_pieces.end())
    warnings.push_back(fmt::format(
        "all tokens have the score {}: pieces are merged in the order of their ids, and ids may differ from "
        "those of the model's tokenizer.json",
        of_pieces.front()));
  return merges;
}

void read_sentencepiece(const GgufMetadata& metadata, const std::string& origin, const GgufVocabulary& vocabulary,
                        TokenizerParts& parts) {
  const bool prefix = metadata.boolean(gguf_key("add_space_prefix"), true);
  if (prefix) parts.normalizer.emplace_back(normalizer::Prepend{gguf_space});
  parts.normalizer.emplace_back(normalizer::Replace{TextPattern::literal(" "), gguf_space});
  parts.decoder = {decoder::Replace{TextPattern::literal(gguf_space), " "}, decoder::ByteFallback{}, decoder::Fuse{}};
  if (prefix) parts.decoder->emplace_back(decoder::Strip{" ", 1, 0});
  // Phi-3's take the white space behind them, but for these. llama.cpp has the same rule.
  if (metadata.text("general.architecture", "") == "phi3")
    for (AddedToken& token : parts.added)
      token.strip_right = token.content != "<unk>" && token.content != "<s>" && token.content != "<|endoftext|>";
  parts.bpe.byte_fallback = true;
  parts.bpe.fuse_unknown = true;
  if (const auto unknown = vocabulary.id("unknown_token_id", 0)) parts.bpe.unknown = vocabulary.token(*unknown);
  parts.bpe.merges = restore_runs_of_spaces(parts);
  const auto merges = merges_of_scores(metadata, origin, vocabulary, parts.warnings);
  parts.bpe.merges.insert(parts.bpe.merges.end(), merges.begin(), merges.end());
  read_borders(metadata, origin, vocabulary, /*add_begin=*/true, 1, 2, parts);
}

// Steps that no tokenizer of the known kinds has, so that a new one is not read wrongly.
void refuse_other_steps(const GgufMetadata& metadata, const std::string& origin) {
  for (const std::string_view name : {"add_sep_token", "remove_extra_whitespaces"})
    if (metadata.boolean(gguf_key(name), false))
      fail_input("{}: {} is true, which is not supported; give the model's tokenizer.json instead", origin,
                 gguf_key(name));
  if (metadata.contains(gguf_key("precompiled_charsmap")))
    fail_input("{}: {} is not supported; give the model's tokenizer.json instead", origin,
               gguf_key("precompiled_charsmap"));
}

// Of every value that belongs to the tokenizer; its bytes are the same in every file of the model.
std::string gguf_tokenizer_hash(const GgufMetadata& metadata) {
  ContentHash hash;
  for (const std::string& key : metadata.keys()) {
    if (!key.starts_with(gguf_prefix)) continue;
    const GgufValue& value = metadata.get(key);
    const std::string head = fmt::format("{} {} {};", key, static_cast<std::uint32_t>(value.kind), value.bytes.size());
    hash.add(std::as_bytes(std::span(head)));
    hash.add(value.bytes);
  }
  return hash.hex();
}

}  // namespace

TokenizerParts parse_gguf_tokenizer(const GgufMetadata& metadata, const std::string& origin) {
  const std::string kind = metadata.text(gguf_key("model"), "none");
  if (kind == "none" || kind == "no_vocab")
    fail_input("{}: holds no tokenizer; give the model's tokenizer.json with --tokenizer", origin);
  if (kind != "gpt2" && kind != "llama")
    fail_input("{}: a tokenizer of the kind {} (tokenizer.ggml.model) is not supported; known are {}", origin,
               excerpt(kind, 60), gguf_kinds);
  refuse_other_steps(metadata, origin);
  const GgufVocabulary vocabulary(metadata, origin);
  TokenizerParts parts;
  parts.bpe.pieces = all_pieces(vocabulary);
  parts.added = found_first(vocabulary);
  if (kind == "gpt2")
    read_byte_level(metadata, origin, vocabulary, parts);
  else
    read_sentencepiece(metadata, origin, vocabulary, parts);
  return parts;
}

Tokenizer open_gguf_tokenizer(const std::filesystem::path& file) {
  const Gguf gguf(file);
  TokenizerParts parts = parse_gguf_tokenizer(gguf.metadata(), file.string());
  return at_place(file.string(), [&] {
    return Tokenizer(std::move(parts), "GGUF tokenizer " + gguf_tokenizer_hash(gguf.metadata()));
  });
}

}  // namespace headscope
