#include "formats/text_column.h"

#include <arrow/io/file.h>
#include <parquet/column_reader.h>
#include <parquet/file_reader.h>

#include <array>

#include "core/error.h"
#include "formats/captured_footer.h"
#include "formats/parquet_pages.h"

namespace headscope {
namespace {

// Pages of text are about a megabyte; a header that claims much more than any real one is damaged.
constexpr std::int64_t page_memory = std::int64_t{2} << 30;

std::string column_names(const parquet::SchemaDescriptor& schema) {
  std::string names;
  for (int i = 0; i < schema.num_columns(); ++i) names += (i > 0 ? ", " : "") + schema.Column(i)->path()->ToDotString();
  return one_line(names);
}

int find_column(const parquet::SchemaDescriptor& schema, const std::string& column, const std::string& origin) {
  for (int i = 0; i < schema.num_columns(); ++i) {
    const parquet::ColumnDescriptor& found = *schema.Column(i);
    if (found.path()->ToDotString() != column) continue;
    const auto& logical = found.logical_type();
    const bool text = found.physical_type() == parquet::Type::BYTE_ARRAY && found.max_repetition_level() == 0 &&
                      (!logical || logical->is_none() || logical->is_string());
    if (!text)
      fail_input("{}: column '{}' is {}; expected text", origin, column,
                 one_line(parquet::TypeToString(found.physical_type())));
    return i;
  }
  fail_input("{}: no column '{}'; name another (--text-column); the file has: {}", origin, column,
             column_names(schema));
}

// Reads the texts of one row group; `row` counts rows of the file.
bool read_group(parquet::ByteArrayReader& reader, bool nullable, std::int64_t rows, std::int64_t& row,
                const std::string& place, const std::function<bool(std::string_view)>& on_text) {
  constexpr std::int64_t batch = 256;
  std::array<parquet::ByteArray, batch> values;
  std::array<std::int16_t, batch> levels{};
  for (std::int64_t done = 0; done < rows;) {
    std::int64_t got = 0;
    const std::int64_t read = reader.ReadBatch(batch, nullable ? levels.data() : nullptr, nullptr, values.data(), &got);
    if (read == 0) fail_input("{}: damaged: {} rows where the footer promises {}", place, done, rows);
    for (std::int64_t i = 0; got != read && i < read; ++i)
      if (levels[static_cast<std::size_t>(i)] < reader.descr()->max_definition_level())
        fail_input("{}: row {} is null; expected a text", place, row + i);
    for (std::int64_t i = 0; i < got; ++i) {
      const parquet::ByteArray& value = values[static_cast<std::size_t>(i)];
      const std::string_view text(reinterpret_cast<const char*>(value.ptr), value.len);
      if (!text.empty() && !on_text(text)) return false;
    }
    row += read;
    done += read;
  }
  return true;
}

bool read_column(const std::filesystem::path& file, const std::string& column,
                 const std::function<bool(std::string_view)>& on_text) {
  const std::string origin = file.string();
  CappedPool pool(page_memory);
  parquet::ReaderProperties properties(&pool);
  properties.enable_buffered_stream();
  properties.set_page_checksum_verification(true);
  const auto reader = parquet::ParquetFileReader::OpenFile(origin, /*memory_map=*/false, properties);
  const auto metadata = reader->metadata();
  const int index = find_column(*metadata->schema(), column, origin);
  const std::string place = fmt::format("{}: column '{}'", origin, column);
  std::int64_t row = 0;
  for (int g = 0; g < metadata->num_row_groups(); ++g) {
    const auto group = reader->RowGroup(g);
    const auto values = std::static_pointer_cast<parquet::ByteArrayReader>(group->Column(index));
    const bool nullable = metadata->schema()->Column(index)->max_definition_level() > 0;
    if (!read_group(*values, nullable, group->metadata()->num_rows(), row, place, on_text)) return false;
  }
  return true;
}

}  // namespace

bool for_each_text(const std::filesystem::path& file, const std::string& column,
                   const std::function<bool(std::string_view)>& on_text) {
  try {
    return read_column(file, column, on_text);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    fail_runtime("{}: not enough memory to read it", file.string());
  } catch (const std::exception& error) {
    fail_input("{}: cannot be read as Parquet: {}", file.string(), one_line(error.what()));
  }
}

}  // namespace headscope
