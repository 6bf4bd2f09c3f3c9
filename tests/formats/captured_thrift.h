// Takes Parquet files apart into pages and Thrift trees that can be changed, and puts them together again. Used by
// tests and by the fuzzer's mutator; shares no code with the reader.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headscope::test {

// Thrift's compact protocol, as much of it as Parquet's footers and page headers use, as a tree that can be changed.
struct ThriftField;
struct Thrift {
  enum Type { yes = 1, no = 2, byte = 3, i16 = 4, i32 = 5, i64 = 6, real = 7, text = 8, list = 9, object = 12 };
  int type = object;
  std::int64_t number = 0;
  std::string bytes;                // text, real
  std::vector<Thrift> items;        // list
  int item_type = 0;                // list
  std::vector<ThriftField> fields;  // object, by field number

  Thrift& operator[](int field);  // an object's field; adds it
  [[nodiscard]] bool has(int field) const;
  // Reads one object from the front of `from` and removes it there.
  static Thrift parse(std::string_view& from);
  [[nodiscard]] std::string serialise() const;
};
struct ThriftField {
  int number;
  Thrift value;
};

// Field numbers of parquet.thrift.
namespace footer {
inline constexpr int schema = 2, num_rows = 3, row_groups = 4;                               // FileMetaData
inline constexpr int columns = 1, group_rows = 3;                                            // RowGroup
inline constexpr int file_path = 1, meta_data = 3;                                           // ColumnChunk
inline constexpr int codec = 4, num_values = 5, uncompressed_size = 6, compressed_size = 7;  // ColumnMetaData
inline constexpr int data_page_offset = 9, dictionary_page_offset = 11;
}  // namespace footer
namespace page {
inline constexpr int type = 1, uncompressed_size = 2, compressed_size = 3, crc = 4, data = 5, dictionary = 7,
                     data_v2 = 8;
inline constexpr int num_values = 1, encoding = 2, definition_encoding = 3;  // DataPageHeader
}  // namespace page

Thrift footer_of(std::string_view file);
std::string with_footer(std::string_view file, const Thrift& footer);
// The file with its footer changed by `change`.
std::string with_footer(std::string_view file, const std::function<void(Thrift&)>& change);
// ColumnMetaData of the only row group by the name of the column's first path component.
Thrift& column_of(Thrift& footer, std::string_view column);

struct Page {
  Thrift header;
  std::string body;  // as stored
};
std::vector<Page> pages_of(std::string_view file, std::string_view column);
std::vector<Page> pages_of(std::string_view file, Thrift& meta_data);
// Adds pages to the data of a file and tells its ColumnMetaData where they are.
void append_pages(std::string& data, Thrift& meta_data, const std::vector<Page>& pages);
// The file with the pages of a column replaced (they are put at the end of the data; the footer is told).
std::string with_pages(std::string_view file, std::string_view column, const std::vector<Page>& pages);

}  // namespace headscope::test
