#include "data/token_file.h"

#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "token files are mapped as they are");

// Reads the fields of the object.
class InfoReader {
 public:
  InfoReader(const json& object, const std::string& origin) : object_(object), origin_(origin) {}

  [[nodiscard]] std::optional<std::int64_t> number(const char* key, std::int64_t least, std::int64_t most) const {
    const auto found = object_.find(key);
    if (found == object_.end() || found->is_null()) return std::nullopt;
    const bool fits = found->is_number_unsigned() && found->get<std::uint64_t>() <= static_cast<std::uint64_t>(most) &&
                      found->get<std::int64_t>() >= least;
    if (!fits)
      fail_input("{}: '{}' is {}; expected a whole number from {} to {}", origin_, key, shown(*found), least, most);
    return found->get<std::int64_t>();
  }

  [[nodiscard]] std::int64_t needed_number(const char* key, std::int64_t least, std::int64_t most) const {
    const auto value = number(key, least, most);
    if (!value) fail_missing(key);
    return *value;
  }

  [[nodiscard]] std::string needed_text(const char* key, const char* expected) const {
    const auto found = object_.find(key);
    if (found == object_.end()) fail_missing(key);
    if (!found->is_string()) fail_input("{}: '{}' is {}; expected {}", origin_, key, shown(*found), expected);
    return found->get<std::string>();
  }

  [[nodiscard]] static std::string shown(const json& value) {
    return excerpt(value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace), 40);
  }

 private:
  [[noreturn]] void fail_missing(const char* key) const {
    fail_input(
        R"({}: '{}' is missing; expected {{"type": "u16", "vocabulary": N, "tokenizer": "...", "end_of_text": N}})",
        origin_, key);
  }

  const json& object_;
  const std::string& origin_;
};

template <class Id>
std::span<const Id> as_ids(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const Id*>(bytes.data()), bytes.size() / sizeof(Id)};
}

fs::path checked_output(const fs::path& file, bool overwrite) {
  if (file.extension() != ".bin") fail_input("{}: expected a name that ends in .bin", file.string());
  std::error_code ignored;  // writing will say why
  for (const fs::path& there : {file, token_info_file(file)})
    if (!overwrite && fs::exists(there, ignored)) fail_input("{}: is there already; give --overwrite", there.string());
  for (const fs::path& there : {file, token_info_file(file)})
    if (fs::exists(there, ignored) && !fs::is_regular_file(there, ignored))
      fail_input("{}: is no file that can be replaced; choose another name", there.string());
  // A tokenizer.json or config.json has other things to say than what tokens these are.
  if (const fs::path info = token_info_file(file); fs::exists(info, ignored)) {
    const json object = json::parse(read_file(info), nullptr, /*allow_exceptions=*/false);
    if (!object.is_object() || !object.contains("end_of_text") || !object.contains("vocabulary"))
      fail_input("{}: does not describe a token file and is not replaced; choose another name than {}", info.string(),
                 file.filename().string());
  }
  return file;
}

}  // namespace

TokenFileInfo parse_token_info(std::string_view text, const std::string& origin) {
  constexpr std::size_t longest = 1 << 20;  // ours have a few hundred bytes
  if (text.size() > longest) fail_input("{}: has {} bytes; expected a small JSON object", origin, text.size());
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) fail_input("{}: not a JSON object: the file is damaged or incomplete", origin);
  const InfoReader reader(object, origin);
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
  TokenFileInfo info;
  const std::string type = reader.needed_text("type", "\"u16\" or \"u32\"");
  if (type != "u16" && type != "u32")
    fail_input("{}: 'type' is {}; expected \"u16\" or \"u32\"", origin, InfoReader::shown(type));
  info.wide = type == "u32";
  info.vocabulary = reader.needed_number("vocabulary", 1, std::int64_t{1} << (info.wide ? 32 : 16));
  info.tokenizer = reader.needed_text("tokenizer", "a name");
  info.end_of_text = static_cast<std::uint32_t>(reader.needed_number("end_of_text", 0, info.vocabulary - 1));
  if (const auto begin = reader.number("begin_of_text", 0, info.vocabulary - 1))
    info.begin_of_text = static_cast<std::uint32_t>(*begin);
  info.tokens = reader.number("tokens", 0, any);
  info.documents = reader.number("documents", 0, any);
  return info;
}

std::string to_text(const TokenFileInfo& info) {
  nlohmann::ordered_json object = {{"type", info.wide ? "u32" : "u16"},
                                   {"vocabulary", info.vocabulary},
                                   {"tokenizer", info.tokenizer},
                                   {"end_of_text", info.end_of_text}};
  if (info.begin_of_text) object["begin_of_text"] = *info.begin_of_text;
  if (info.tokens) object["tokens"] = *info.tokens;
  if (info.documents) object["documents"] = *info.documents;
  return json_text(object);
}

fs::path token_info_file(const fs::path& file) {
  return fs::path(file).replace_extension(".json");
}

TokenFile open_token_file(const fs::path& file) {
  TokenFile opened;
  opened.origin = file.string();
  const fs::path info_file = token_info_file(file);
  opened.mapped = std::make_shared<MappedFile>(file);
  std::error_code ignored;
  if (!fs::exists(info_file, ignored))
    fail_input("{}: {} is not there; it says type, vocabulary, tokenizer and end_of_text of the tokens", opened.origin,
               info_file.filename().string());
  opened.info = parse_token_info(read_file(info_file), info_file.string());
  const auto bytes = opened.mapped->bytes();
  const std::size_t width = opened.info.wide ? 4 : 2;
  if (bytes.empty()) fail_input("{}: is empty; expected tokens", opened.origin);
  if (bytes.size() % width != 0)
    fail_input("{}: {} bytes are not a multiple of {}, the size of a token: the file is cut short", opened.origin,
               bytes.size(), width);
  const auto tokens = static_cast<std::int64_t>(bytes.size() / width);
  if (opened.info.tokens && *opened.info.tokens != tokens)
    fail_input("{}: holds {} tokens; {} says {}", opened.origin, tokens, info_file.filename().string(),
               *opened.info.tokens);
  if (opened.info.wide)
    opened.tokens = as_ids<std::uint32_t>(bytes);
  else
    opened.tokens = as_ids<std::uint16_t>(bytes);
  return opened;
}

void check_token_ids(const TokenFile& file, TokenRange range) {
  std::visit(
      [&](auto tokens) {
        for (std::int64_t i = range.first; i < range.first + range.count; ++i)
          if (tokens[static_cast<std::size_t>(i)] >= file.info.vocabulary)
            fail_input("{}: token {} (byte {}) is {}; expected less than the vocabulary, {}", file.origin, i,
                       i * static_cast<std::int64_t>(sizeof tokens[0]), tokens[static_cast<std::size_t>(i)],
                       file.info.vocabulary);
      },
      file.tokens);
}

TokenFileWriter::TokenFileWriter(const fs::path& file, bool overwrite, TextTokenizer& tokenizer)
    : file_(checked_output(file, overwrite)),
      tokenizer_(tokenizer),
      info_{.wide = needs_four_bytes(tokenizer.vocabulary()),
            .vocabulary = tokenizer.vocabulary(),
            .tokenizer = tokenizer.name(),
            .end_of_text = tokenizer.end_of_text(),
            .begin_of_text = tokenizer.begin_of_text(),
            .tokens = {},
            .documents = {}},
      written_(file) {}

void TokenFileWriter::add(std::string_view document, const DocumentPlace& place) {
  constexpr std::size_t enough = 1 << 16;
  const std::size_t before = pending_.size();
  tokenizer_.encode_document(document, place, pending_);
  tokens_ += static_cast<std::int64_t>(pending_.size() - before);
  bytes_ += static_cast<std::int64_t>(document.size());
  ++documents_;
  if (pending_.size() >= enough) flush();
}

void TokenFileWriter::flush() {
  const auto write = [&](const auto& ids) {
    written_.write({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof ids[0]});
  };
  if (info_.wide)
    write(pending_);
  else
    write(std::vector<std::uint16_t>(pending_.begin(), pending_.end()));
  pending_.clear();
}

void TokenFileWriter::finish() {
  flush();
  info_.tokens = tokens_;
  info_.documents = documents_;
  std::error_code ignored;
  fs::remove(token_info_file(file_), ignored);  // the old one does not describe the new tokens
  written_.commit();
  write_file(token_info_file(file_), to_text(info_));
}

}  // namespace headscope
