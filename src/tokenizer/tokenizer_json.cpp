#include "tokenizer/tokenizer_json.h"

#include <algorithm>
#include <array>

#include "core/atomic_file.h"
#include "core/config.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/regular_file.h"
#include "formats/content_hash.h"
#include "formats/model_files.h"
#include "tokenizer/gguf_tokenizer.h"
#include "tokenizer/json_components.h"
#include "tokenizer/json_document.h"
#include "tokenizer/json_view.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view gguf_extension = ".gguf";

// Byte pair encoding is told by its merges where an old file has no "type".
void check_model_kind(const JsonView& model, const TokenizerDocument& document) {
  const auto type = model.find("type");
  std::string kind = type ? type->text() : document.has_merges ? "BPE" : document.vocabulary_is_list ? "Unigram" : "";
  if (kind.empty()) fail_input("{}: 'type' is missing; expected BPE", model.place());
  if (kind != "BPE")
    fail_input("{}: a tokenizer of the kind {} is not supported; expected BPE", model.place(), excerpt(kind, 60));
}

BpeParts read_model(const JsonView& model, TokenizerDocument& document) {
  check_model_kind(model, document);
  if (!document.has_pieces) fail_input("{}: 'vocab' is missing; expected an object of pieces and ids", model.place());
  if (!document.has_merges) fail_input("{}: 'merges' is missing; expected a list of pairs", model.place());
  if (const auto dropout = model.find("dropout"))
    if (!dropout->value().is_number() || dropout->value().get<double>() != 0)
      dropout->fail("null: with dropout a text has no fixed tokens");
  BpeParts bpe;
  bpe.pieces = std::move(document.pieces);
  bpe.merges = std::move(document.merges);
  if (const auto unknown = model.find("unk_token")) bpe.unknown = unknown->text();
  bpe.fuse_unknown = model.flag("fuse_unk", false);
  bpe.byte_fallback = model.flag("byte_fallback", false);
  bpe.ignore_merges = model.flag("ignore_merges", false);
  if (const auto prefix = model.find("continuing_subword_prefix")) bpe.continuing_prefix = prefix->text();
  if (const auto suffix = model.find("end_of_word_suffix")) bpe.end_suffix = suffix->text();
  return bpe;
}

AddedToken read_added_token(const JsonView& token) {
  const bool special = token.flag("special", false);
  return {.content = token.text("content"),
          .id = token.number("id", most_ids - 1),
          .special = special,
          .single_word = token.flag("single_word", false),
          .strip_left = token.flag("lstrip", false),
          .strip_right = token.flag("rstrip", false),
          .normalized = token.flag("normalized", !special)};
}

// eos_token is a text, or an object with its content.
std::string token_content(const JsonView& config, std::string_view key) {
  const auto token = config.find(key);
  if (!token) return "";
  return token->value().is_object() ? token->text("content") : token->text();
}

// The ends of text of published tokenizers, for a tokenizer.json that stands alone.
constexpr auto usual_ends = std::to_array<const char*>({"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eos|>",
                                                        "<\xEF\xBD\x9C"
                                                        "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"});

// Says which tokens begin and end a text, by tokenizer_config.json beside the file.
void name_borders(const fs::path& file, TokenizerParts& parts) {
  const fs::path config = file.parent_path() / "tokenizer_config.json";
  std::error_code ignored;
  if (fs::exists(config, ignored)) {
    const TextBorders borders = parse_tokenizer_config(read_file(config), config.string());
    parts.begin_of_text = borders.begin;
    parts.end_of_text = borders.end;
  }
  for (const char* usual : usual_ends) {
    if (!parts.end_of_text.empty()) return;
    const auto is_usual = [&](const auto& text) { return text == usual; };
    if (std::ranges::any_of(parts.added, is_usual, &AddedToken::content) ||
        std::ranges::any_of(parts.bpe.pieces, is_usual, &BpePiece::text))
      parts.end_of_text = usual;
  }
}

fs::path tokenizer_file(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    if (!fs::exists(path, ignored))
      fail_input("{}: is not there; expected bytes, a tokenizer.json, a folder that holds one, or a GGUF file",
                 path.string());
    return path;
  }
  const fs::path file = find_model_folder(path) / "tokenizer.json";
  if (!fs::exists(file, ignored))
    for (const auto& entry : fs::directory_iterator(file.parent_path(), ignored))
      if (entry.path().extension() == gguf_extension)
        fail_input("{}: is not there, but {} is; give that file itself", file.string(),
                   entry.path().filename().string());
  if (!fs::exists(file, ignored))
    fail_input("{}: is not there; expected a folder with a tokenizer.json", file.string());
  return file;
}

}  // namespace

TokenizerParts parse_tokenizer_json(std::string_view text, const std::string& origin) {
  TokenizerDocument document = parse_tokenizer_document(text, origin);
  const JsonView root(document.rest, origin);
  if (const auto version = root.find("version"))
    if (version->text() != "1.0") version->fail("\"1.0\"");
  TokenizerParts parts;
  parts.bpe = read_model(root.at("model"), document);
  if (const auto added = root.find("added_tokens"))
    for (const JsonView& token : added->elements()) parts.added.push_back(read_added_token(token));
  if (const auto component = root.find("normalizer")) read_normalizer(*component, parts.normalizer);
  if (const auto component = root.find("pre_tokenizer")) read_pre_tokenizer(*component, parts.pre_tokenizer);
  if (const auto component = root.find("post_processor")) read_post_processor(*component, parts.templates);
  if (const auto component = root.find("decoder")) read_decoder(*component, parts.decoder.emplace());
  for (const char* key : {"truncation", "padding"})
    if (root.find(key)) parts.warnings.push_back(fmt::format("'{}' of the file is not applied: texts stay whole", key));
  return parts;
}

TextBorders parse_tokenizer_config(std::string_view text, const std::string& origin) {
  const nlohmann::json config = parse_json(text);
  if (!config.is_object()) fail_input("{}: not a JSON object: the file is damaged or incomplete", origin);
  const JsonView root(config, origin);
  return {token_content(root, "bos_token"), token_content(root, "eos_token")};
}

Tokenizer open_tokenizer(const fs::path& path) {
  const fs::path file = tokenizer_file(path);
  if (is_gguf(file) || file.extension() == gguf_extension) return open_gguf_tokenizer(file);
  const MappedFile mapped(file);
  const std::string_view text(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
  TokenizerParts parts = parse_tokenizer_json(text, file.string());
  name_borders(file, parts);
  return at_place(file.string(), [&] { return Tokenizer(std::move(parts), "tokenizer.json " + content_hash(text)); });
}

}  // namespace headscope
