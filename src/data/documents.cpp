#include "data/documents.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "core/regular_file.h"
#include "formats/text_input.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view separator = "<|endoftext|>";
constexpr std::array<std::string_view, 7> endings = {".txt",      ".txt.gz",    ".txt.zst", ".jsonl",
                                                     ".jsonl.gz", ".jsonl.zst", ".parquet"};

bool is_document_file(const fs::path& file) {
  const std::string name = file.filename().string();
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return name.ends_with(ending); });
}

// ".jsonl" of "x.jsonl.gz".
std::string kind_of(const fs::path& file) {
  const bool packed = file.extension() == ".gz" || file.extension() == ".zst";
  return (packed ? file.stem() : file).extension().string();
}

// Keeps the text of one field of the outermost object and skips all other values, at any depth.
class TextField : public nlohmann::json_sax<json> {
 public:
  TextField(const std::string& name, const std::string& place) : name_(name), place_(place) {}
  std::optional<std::string> text;

  bool null() override { return other("null"); }
  bool boolean(bool value) override { return other(value ? "true" : "false"); }
  bool number_integer(number_integer_t) override { return other("a number"); }
  bool number_unsigned(number_unsigned_t) override { return other("a number"); }
  bool number_float(number_float_t, const string_t&) override { return other("a number"); }
  bool binary(binary_t&) override { return other("binary data"); }
  bool string(string_t& value) override {
    if (!wanted_ && depth_ > 0) return true;
    if (depth_ == 0) return other("a text");
    text = std::move(value);
    wanted_ = false;
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_ > 0) other("an object");
    return ++depth_, true;
  }
  bool end_object() override { return --depth_, true; }
  bool start_array(std::size_t) override {
    other("a list");
    return ++depth_, true;
  }
  bool end_array() override { return --depth_, true; }
  bool key(string_t& value) override {
    wanted_ = depth_ == 1 && value == name_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int number_overflow = 406;
    if (error.id == number_overflow) fail_input("{}: a number near byte {} is too large", place_, position);
    fail_input("{}: not valid JSON at byte {}; expected one object a line", place_, position);
  }

 private:
  // A value that is not text: an error where the field or the whole object is expected.
  bool other(const char* found) {
    if (depth_ == 0) fail_input("{}: is {}; expected an object with the field '{}'", place_, found, name_);
    if (wanted_) fail_input("{}: field '{}' is {}; expected a text", place_, name_, found);
    return true;
  }

  const std::string& name_;
  const std::string& place_;
  std::size_t depth_ = 0;
  bool wanted_ = false;  // the last key was the field's
};

bool for_each_in_jsonl(const fs::path& file, const std::string& text_column, const OnDocument& on_document) {
  LineReader lines(file);
  std::string line;
  while (lines.next(line)) {
    if (line.find_first_not_of(" \t\r\n") == std::string::npos) continue;
    const std::string place = fmt::format("{}: line {}", file.string(), lines.number());
    const std::string text = parse_json_line(line, text_column, place);
    if (!on_document(text, {file, lines.number(), DocumentPlace::Unit::line})) return false;
  }
  return true;
}

bool is_separator(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line == separator;
}

bool for_each_in_text(const fs::path& file, const OnDocument& on_document) {
  LineReader lines(file);
  std::string line, document;
  DocumentPlace place{file, 1, DocumentPlace::Unit::lines};
  while (lines.next(line)) {
    if (!is_separator(line)) {
      if (document.size() + line.size() > longest_document)
        fail_input("{}: line {}: a document of more than {} bytes; separate documents by lines {}", file.string(),
                   lines.number(), longest_document, separator);
      document += line;
      continue;
    }
    if (!on_document(document, place)) return false;
    document.clear();
    place.number = lines.number() + 1;
  }
  return document.empty() || on_document(document, place);
}

bool for_each_in_parquet(const fs::path& file, const std::string& text_column, const OnDocument& on_document) {
  DocumentPlace place{file, 0, DocumentPlace::Unit::document};
  return for_each_text(file, text_column, [&](std::string_view document) {
    ++place.number;
    return on_document(document, place);
  });
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (is_document_file(entry.path())) files.push_back(entry.path());
  if (error) fail_reading(folder, error.value());
  if (files.empty()) fail_input("{}: holds no file that ends in {}", folder.string(), fmt::join(endings, ", "));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string DocumentPlace::of(std::string_view document, std::size_t byte) const {
  const std::string_view before = document.substr(0, byte);
  const auto further = unit == Unit::lines ? std::count(before.begin(), before.end(), '\n') : 0;
  return fmt::format("{}: {} {}", file.string(), unit == Unit::document ? "document" : "line",
                     number + static_cast<std::size_t>(further));
}

std::vector<fs::path> document_files(std::span<const fs::path> paths) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
    std::error_code error;  // for example: the path is too long, or a folder cannot be entered
    const fs::file_status status = fs::status(path, error);
    if (fs::is_directory(status)) {
      const std::vector<fs::path> found = files_in(path);
      files.insert(files.end(), found.begin(), found.end());
    } else if (status.type() == fs::file_type::not_found) {
      fail_input("{}: is not there; expected a file or a folder of text", path.string());
    } else if (error) {
      fail_reading(path, error.value());
    } else if (!is_document_file(path)) {
      fail_input("{}: expected a name that ends in {}", path.string(), fmt::join(endings, ", "));
    } else {
      files.push_back(path);
    }
  }
  return files;
}

std::string parse_json_line(std::string_view line, const std::string& text_column, const std::string& place) {
  TextField field(text_column, place);
  json::sax_parse(line, &field);
  if (!field.text)
    fail_input("{}: there is no field '{}'; name another (--text-column, or data.text_column with --set)", place,
               text_column);
  return std::move(*field.text);
}

bool for_each_document(const fs::path& file, const std::string& text_column, const OnDocument& on_document,
                       EmptyDocuments empty) {
  const OnDocument visit = [&](std::string_view document, const DocumentPlace& place) {
    return (document.empty() && empty == EmptyDocuments::left_out) || on_document(document, place);
  };
  const std::string kind = kind_of(file);
  if (kind == ".jsonl") return for_each_in_jsonl(file, text_column, visit);
  if (kind == ".parquet") return for_each_in_parquet(file, text_column, visit);
  return for_each_in_text(file, visit);
}

}  // namespace headscope
