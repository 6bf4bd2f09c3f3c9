// The documents of text files, one after another: memory holds one document at a time.
//   .txt      documents are separated by lines that are exactly <|endoftext|>; without any, the file is one document
//   .jsonl    one JSON object a line, with the text in the field `text_column`
//   .parquet  the text in the column `text_column`
// .txt and .jsonl may be packed (.gz, .zst).
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

// Where a document stands.
struct DocumentPlace {
  enum class Unit { lines, line, document };
  std::filesystem::path file;
  std::size_t number = 0;  // of its first line, of its only line, or of the document; from 1
  Unit unit = Unit::lines;

  // "x.txt: line 17", where this byte of the document stands.
  [[nodiscard]] std::string of(std::string_view document, std::size_t byte) const;
};

// Returns false to stop.
using OnDocument = std::function<bool(std::string_view document, const DocumentPlace& place)>;

// The files that the paths name, in order; a folder stands for those files in it that have one of the endings above,
// sorted by name. Throws Error(Fault::input) when a path is not there, has another ending or holds none.
std::vector<std::filesystem::path> document_files(std::span<const std::filesystem::path> paths);

// Documents without any byte are left out, unless their number counts.
enum class EmptyDocuments { left_out, visited };

// Throws Error(Fault::input) with file and line (or row) when the file is not as described. False if it was stopped.
bool for_each_document(const std::filesystem::path& file, const std::string& text_column, const OnDocument& on_document,
                       EmptyDocuments empty = EmptyDocuments::left_out);

// The text of one line of .jsonl. `place` ("file.jsonl: line 3") starts the error.
std::string parse_json_line(std::string_view line, const std::string& text_column, const std::string& place);

}  // namespace headscope
