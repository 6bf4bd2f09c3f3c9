#include "formats/parquet_table.h"

#include <arrow/io/memory.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>

#include "core/atomic_file.h"
#include "core/error.h"
#include "formats/arrow_input.h"
#include "formats/arrow_table.h"
#include "formats/atomic_sink.h"
#include "formats/part_table.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using Tables = std::vector<std::shared_ptr<arrow::Table>>;

// Rows of one row group: large enough to compress well, small enough to be joined in memory.
constexpr std::int64_t group_rows = 1 << 20;

std::unique_ptr<parquet::arrow::FileWriter> open_writer(const std::shared_ptr<arrow::Schema>& schema,
                                                        std::shared_ptr<arrow::io::OutputStream> sink) {
  const auto properties = parquet::WriterProperties::Builder()
                              .compression(arrow::Compression::ZSTD)
                              ->max_row_group_length(group_rows)
                              ->enable_page_checksum()
                              ->build();
  return value_of(parquet::arrow::FileWriter::Open(*schema, arrow::default_memory_pool(), std::move(sink), properties));
}

// A column that a Table can hold, and its index in libparquet.
struct Leaf {
  std::string name;
  int index = 0;
  std::size_t value_bytes = 0;
};

struct OpenFile {
  std::string origin;
  std::size_t size = 0;
  std::unique_ptr<parquet::arrow::FileReader> reader = {};
  std::shared_ptr<arrow::Schema> schema = {};
  std::vector<Leaf> leaves = {};

  [[nodiscard]] const parquet::FileMetaData& metadata() const { return *reader->parquet_reader()->metadata(); }
};

std::vector<Leaf> leaves_of(const parquet::arrow::SchemaManifest& manifest) {
  std::vector<Leaf> leaves;
  for (const parquet::arrow::SchemaField& field : manifest.schema_fields) {
    const std::size_t bytes = value_bytes(*field.field->type());
    if (bytes == 0) continue;
    const parquet::arrow::SchemaField* leaf = &field;
    while (!leaf->is_leaf() && !leaf->children.empty()) leaf = &leaf->children[0];
    leaves.push_back({field.field->name(), leaf->column_index, bytes});
  }
  return leaves;
}

OpenFile open_table(const std::string& origin, ArrowInput source, ReadLimits& limits) {
  return reading_parquet(origin, [&] {
    OpenFile file{.origin = origin, .size = source.size};
    parquet::arrow::FileReaderBuilder builder;
    check(builder.Open(std::move(source.file), limits.add_file(source.size)));
    parquet::ArrowReaderProperties properties(/*use_threads=*/false);
    properties.set_pre_buffer(false);  // it reads in other threads, and the pool is for one
    file.reader = value_of(builder.memory_pool(&limits.pool)->properties(properties)->Build());
    check(file.reader->GetSchema(&file.schema));
    file.leaves = leaves_of(file.reader->manifest());
    checked_rows(file.metadata(), file.size, origin);
    return file;
  });
}

OpenFile open_table(const fs::path& file, ReadLimits& limits) {
  return open_table(file.string(), open_input(file, limits.pool), limits);
}

// Checks what the footer says of these columns before they are read. Returns their indices in libparquet.
std::vector<int> checked_places(const OpenFile& file, const std::vector<Leaf>& leaves, ReadLimits& limits) {
  return reading_parquet(file.origin, [&] {
    ChunkCheck chunks(file.metadata(), file.size, file.origin, limits);
    std::vector<int> places;
    for (const Leaf& leaf : leaves) {
      for (int group = 0; group < file.metadata().num_row_groups(); ++group)
        if (file.metadata().RowGroup(group)->num_rows() > 0)
          chunks.place(leaf.name, leaf.index, group, leaf.value_bytes);
      places.push_back(leaf.index);
    }
    return places;
  });
}

std::shared_ptr<arrow::Table> read_arrow(const OpenFile& file, ReadLimits& limits) {
  const std::vector<int> places = checked_places(file, file.leaves, limits);
  return reading_parquet(file.origin, [&] {
    std::shared_ptr<arrow::Table> table;
    check(file.reader->ReadTable(places, &table));
    check(table->ValidateFull());  // libparquet does not check the indices of dictionaries
    return table;
  });
}

// Reads one file after another and checks that all have the columns of the first.
class PartReader {
 public:
  std::shared_ptr<arrow::Table> read(const fs::path& name) {
    const OpenFile file = open_table(name, limits_);
    if (schema_ == nullptr) schema_ = file.schema;
    if (!file.schema->Equals(*schema_, /*check_metadata=*/false))
      fail_input("{}: its columns are not those of the first part", file.origin);
    return read_arrow(file, limits_);
  }
  // Of what was read so far.
  [[nodiscard]] std::int64_t limit() const { return limits_.pool.limit(); }

 private:
  ReadLimits limits_;
  std::shared_ptr<arrow::Schema> schema_;
};

// The file, or the parts of the folder.
std::vector<fs::path> files_of(const fs::path& file_or_folder) {
  const fs::path place = part_folder(file_or_folder);
  return fs::is_directory(place) ? part_files(place) : std::vector{place};
}

// The columns by name, as far as a Table can hold them.
std::vector<Leaf> named_leaves(const OpenFile& file, const std::vector<std::string>& columns) {
  std::vector<Leaf> named;
  for (const std::string& column : columns) {
    if (file.schema->GetFieldIndex(column) < 0) fail_input("{}: has no column '{}'", file.origin, column);
    for (const Leaf& leaf : file.leaves)
      if (leaf.name == column) named.push_back(leaf);
  }
  return named;
}

Table table_of(const std::string& origin, const Tables& parts, std::int64_t room) {
  return reading_parquet(origin, [&] {
    Table table(origin);
    add_columns(table, *value_of(arrow::ConcatenateTables(parts)), room);
    return table;
  });
}

// Collects rows and writes them when they fill a row group.
class Joined {
 public:
  Joined(AtomicFile& file, const std::shared_ptr<arrow::Schema>& schema)
      : writer_(open_writer(schema, std::make_shared<AtomicSink>(file))) {}

  void add(const std::shared_ptr<arrow::Table>& rows) {
    waiting_.push_back(rows);
    waiting_rows_ += rows->num_rows();
    if (waiting_rows_ >= group_rows) flush(waiting_rows_ / group_rows * group_rows);
  }

  void finish() {
    flush(waiting_rows_);
    check(writer_->Close());
  }

 private:
  // A column may have several chunks, and a page ends where a chunk does. They are joined, so that the bytes depend on
  // the rows alone.
  void flush(std::int64_t rows) {
    if (rows == 0) return;
    const auto all = value_of(arrow::ConcatenateTables(waiting_));
    check(writer_->WriteTable(*value_of(all->Slice(0, rows)->CombineChunks()), group_rows));
    waiting_ = {all->Slice(rows)};
    waiting_rows_ -= rows;
  }

  std::unique_ptr<parquet::arrow::FileWriter> writer_;
  Tables waiting_;
  std::int64_t waiting_rows_ = 0;
};

}  // namespace

std::string to_parquet(const Table& table) {
  return writing_parquet("a table as Parquet", [&] {
    const auto rows = arrow_table(table);
    const auto sink = value_of(arrow::io::BufferOutputStream::Create());
    const auto writer = open_writer(rows->schema(), sink);
    check(writer->WriteTable(*rows, group_rows));
    check(writer->Close());
    return value_of(sink->Finish())->ToString();
  });
}

void join_parquet(const fs::path& out, const std::vector<fs::path>& files, std::int64_t rows) {
  HEADSCOPE_CHECK(!files.empty(), "nothing to join in {}", out.string());
  PartReader reader;
  AtomicFile file(out);
  std::unique_ptr<Joined> joined;
  for (const fs::path& name : files) {
    auto part = reader.read(name);
    if (part->num_rows() > rows) part = part->Slice(0, rows);
    rows -= part->num_rows();
    writing_parquet(out.string(), [&] {
      if (joined == nullptr) joined = std::make_unique<Joined>(file, part->schema());
      joined->add(part);
    });
  }
  writing_parquet(out.string(), [&] { joined->finish(); });
  file.commit();
}

std::int64_t parquet_rows(const fs::path& file) {
  ReadLimits limits;
  return open_table(file, limits).metadata().num_rows();
}

Table read_parquet(const fs::path& file_or_folder) {
  const std::vector<fs::path> files = files_of(file_or_folder);
  if (files.empty()) return Table(file_or_folder.string());
  PartReader reader;
  Tables parts;
  for (const fs::path& file : files) parts.push_back(reader.read(file));
  return table_of(file_or_folder.string(), parts, reader.limit());
}

Table parse_parquet(std::span<const std::byte> bytes, const std::string& origin) {
  ReadLimits limits;
  const OpenFile file = open_table(origin, input_of(bytes), limits);
  return table_of(origin, {read_arrow(file, limits)}, limits.pool.limit());
}

void scan_parquet(const fs::path& file_or_folder, const std::vector<std::string>& columns,
                  const std::function<void(const Table&)>& visit) {
  ReadLimits limits;
  for (const fs::path& name : files_of(file_or_folder)) {
    const OpenFile file = open_table(name, limits);
    const std::vector<int> places = checked_places(file, named_leaves(file, columns), limits);
    for (int group = 0; group < file.reader->num_row_groups(); ++group) {
      Table table(file.origin);
      reading_parquet(file.origin, [&] {
        std::shared_ptr<arrow::Table> rows;
        check(file.reader->ReadRowGroup(group, places, &rows));
        check(rows->ValidateFull());
        add_columns(table, *rows, limits.pool.limit());
      });
      visit(table);
    }
  }
}

}  // namespace headscope
