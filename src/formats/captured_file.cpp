#include "formats/captured_file.h"

#include <arrow/io/memory.h>
#include <parquet/column_page.h>
#include <parquet/schema.h>
#include <parquet/types.h>

#include <cmath>

#include "core/missing.h"

namespace headscope {
namespace {

namespace schema = parquet::schema;
using parquet::Repetition;

constexpr std::string_view magic = "PAR1";
constexpr std::string_view encrypted_magic = "PARE";
constexpr auto trailer_size = static_cast<std::size_t>(ChunkCheck::trailer_size);

std::string_view text(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::uint8_t> footer_bytes(std::span<const std::uint8_t> file, const std::string& origin) {
  if (file.empty()) fail_input("{}: the file is empty, expected a Parquet file", origin);
  const auto start = text(file.first(std::min(file.size(), magic.size())));
  if (start == encrypted_magic) fail_input("{}: the file is encrypted; write it without encryption", origin);
  if (start != magic) {
    fail_input("{}: not a Parquet file: it starts with '{}', expected '{}'", origin, excerpt(start), magic);
  }
  if (file.size() < magic.size() + trailer_size || text(file.last(magic.size())) != magic) {
    fail_input("{}: the file is cut short: {} bytes that do not end with '{}'; copy or write it again", origin,
               file.size(), magic);
  }
  std::uint32_t size = 0;
  std::memcpy(&size, file.data() + file.size() - trailer_size, sizeof(size));
  const std::size_t room = file.size() - magic.size() - trailer_size;
  if (size == 0 || size > room) {
    fail_input("{}: damaged: the footer claims {} bytes, the file has room for {}", origin, size, room);
  }
  return file.subspan(file.size() - trailer_size - size, size);
}

// Returns what `body` returns. An exception of libparquet becomes an Error.
template <class Body>
auto in_footer(const std::string& origin, Body&& body) {
  return reading_parquet(origin, body, "{}: damaged: the footer cannot be read: {}");
}

std::shared_ptr<parquet::FileMetaData> parse_footer(std::span<const std::uint8_t> footer, const std::string& origin,
                                                    const parquet::ReaderProperties& properties) {
  return in_footer(origin, [&] {
    auto size = static_cast<std::uint32_t>(footer.size());
    auto metadata = parquet::FileMetaData::Make(footer.data(), &size, properties);
    if (metadata->is_encryption_algorithm_set()) {
      fail_input("{}: the file is encrypted; write it without encryption", origin);
    }
    if (size != footer.size()) {
      fail_input("{}: damaged: the footer takes {} bytes, its length says {}", origin, size, footer.size());
    }
    return metadata;
  });
}

std::string names(const schema::GroupNode& root) {
  std::string all;
  for (int i = 0; i < root.field_count(); ++i) all += (i > 0 ? ", " : "") + root.field(i)->name();
  return excerpt(all);
}

const schema::Node* find_field(const schema::GroupNode& root, const std::string& name, const std::string& origin) {
  const schema::Node* found = nullptr;
  for (int i = 0; i < root.field_count(); ++i) {
    if (root.field(i)->name() != name) continue;
    if (found != nullptr) fail_input("{}: column '{}' appears more than once", origin, name);
    found = root.field(i).get();
  }
  return found;
}

const schema::Node& need_field(const schema::GroupNode& root, const std::string& name, const std::string& origin) {
  if (const auto* found = find_field(root, name, origin)) return *found;
  fail_input("{}: no column '{}', expected bucket, position and vector; the file has: {}", origin, name, names(root));
}

// "BYTE_ARRAY (String)", "nested: vector.list.element INT64".
std::string describe(const schema::Node& node) {
  const schema::Node* leaf = &node;
  while (leaf->is_group()) {
    const auto& group = static_cast<const schema::GroupNode&>(*leaf);
    if (group.field_count() != 1) return "a group of several fields";
    leaf = group.field(0).get();
  }
  std::string kind = leaf == &node ? "" : "nested: " + leaf->path()->ToDotString() + " ";
  kind += parquet::TypeToString(static_cast<const schema::PrimitiveNode&>(*leaf).physical_type());
  const auto& logical = leaf->logical_type();
  if (logical && !logical->is_none()) kind += " (" + logical->ToString() + ")";
  return excerpt(kind);
}

// Integers of any width and sign, and the all-null column that Arrow writes for its type null.
std::optional<CapturedType> integer_type(const schema::PrimitiveNode& leaf) {
  const auto& logical = leaf.logical_type();
  const bool plain = !logical || logical->is_none() || logical->is_null();
  if (!plain && !logical->is_int()) return std::nullopt;
  const bool is_signed = plain || static_cast<const parquet::IntLogicalType&>(*logical).is_signed();
  if (leaf.physical_type() == parquet::Type::INT32) return is_signed ? CapturedType::int32 : CapturedType::uint32;
  if (leaf.physical_type() == parquet::Type::INT64) return is_signed ? CapturedType::int64 : CapturedType::uint64;
  return std::nullopt;
}

std::optional<CapturedType> float_type(const schema::PrimitiveNode& leaf) {
  const auto& logical = leaf.logical_type();
  const bool plain = !logical || logical->is_none();
  if (leaf.physical_type() == parquet::Type::FLOAT && plain) return CapturedType::float32;
  if (leaf.physical_type() == parquet::Type::DOUBLE && plain) return CapturedType::float64;
  if (leaf.physical_type() == parquet::Type::FIXED_LEN_BYTE_ARRAY && leaf.type_length() == 2 && logical &&
      logical->is_float16()) {
    return CapturedType::float16;
  }
  return std::nullopt;
}

// bucket, position, example_id: integers; sliding_window: also floating point.
CapturedType flat_type(const schema::Node& node, bool floats, const std::string& origin) {
  if (node.is_primitive() && !node.is_repeated()) {
    const auto& leaf = static_cast<const schema::PrimitiveNode&>(node);
    auto type = integer_type(leaf);
    if (!type && floats) type = float_type(leaf);
    if (type) return *type;
  }
  fail_input("{}: column '{}' is {}, expected {}", origin, node.name(), describe(node),
             floats ? "an integer, a floating-point or a null type" : "an integer type");
}

// A list in any of the forms that writers have used: three levels (vector.list.element), two (vector.array), or a
// repeated field. Fixed-size and large lists are stored as lists.
const schema::PrimitiveNode* list_leaf(const schema::Node& node) {
  const schema::Node* inner = &node;
  bool repeated = node.is_repeated();
  for (int depth = 0; inner->is_group(); ++depth) {
    const auto& group = static_cast<const schema::GroupNode&>(*inner);
    if (group.field_count() != 1 || depth == (node.is_repeated() ? 1 : 2)) return nullptr;
    inner = group.field(0).get();
    if (inner->is_repeated() == repeated) return nullptr;  // no list (a struct), or a list of lists
    repeated = true;
  }
  return repeated ? static_cast<const schema::PrimitiveNode*>(inner) : nullptr;
}

CapturedType vector_type(const schema::Node& node, const std::string& origin) {
  const auto* leaf = list_leaf(node);
  const auto type = leaf != nullptr ? float_type(*leaf) : std::nullopt;
  if (type) return *type;
  fail_input("{}: column '{}' is {}, expected a list of float16, float32 or float64", origin, node.name(),
             describe(node));
}

std::size_t value_size(CapturedType type) {
  return type == CapturedType::float16 || type == CapturedType::float32 ? sizeof(float) : sizeof(std::int64_t);
}

CapturedColumn column_of(const schema::Node& field, CapturedType type, const parquet::SchemaDescriptor& descriptor,
                         const std::string& origin) {
  int leaf = 0;
  while (descriptor.GetColumnRoot(leaf) != &field) ++leaf;
  return {.name = field.name(),
          .place = fmt::format("{}: column '{}'", origin, field.name()),
          .type = type,
          .leaf = descriptor.Column(leaf),
          .list_definition = field.is_optional() ? 2 : 1};
}

// Finds the pages of the column.
void add_chunks(CapturedColumn& column, std::span<const std::uint8_t> file, const parquet::FileMetaData& metadata,
                ChunkCheck& check) {
  const int leaf = metadata.schema()->ColumnIndex(*column.leaf->schema_node());
  for (int group = 0; group < metadata.num_row_groups(); ++group) {
    const auto row_group = metadata.RowGroup(group);
    if (row_group->num_rows() == 0) continue;
    const ChunkPlace place = check.place(column.name, leaf, group, value_size(column.type));
    const auto said = row_group->ColumnChunk(leaf);
    column.chunks.push_back(
        {.bytes = file.subspan(static_cast<std::size_t>(place.start), static_cast<std::size_t>(place.bytes)),
         .uncompressed = said->total_uncompressed_size(),
         .levels = said->num_values(),
         .rows = row_group->num_rows(),
         .codec = said->compression(),
         .always_compressed =
             metadata.writer_version().VersionLt(parquet::ApplicationVersion::PARQUET_CPP_10353_FIXED_VERSION())});
  }
}

// Hands the pages of a chunk to libparquet's decoders, and compares them with what the footer promises.
class CheckedPages final : public parquet::PageReader {
 public:
  CheckedPages(const CapturedColumn& column, const ColumnChunk& chunk, const parquet::ReaderProperties& properties)
      : column_(column),
        chunk_(chunk),
        stream_(std::make_shared<arrow::io::BufferReader>(
            std::make_shared<arrow::Buffer>(chunk.bytes.data(), static_cast<std::int64_t>(chunk.bytes.size())))),
        reader_(Open(stream_, chunk.levels, chunk.codec, properties, chunk.always_compressed)),
        levels_left_(chunk.levels),
        bytes_left_(chunk.uncompressed) {
    // A header holds two statistics of one number each. libparquet tries to parse a damaged one with more and more
    // bytes.
    reader_->set_max_page_header_size(1 << 20);
  }

  std::shared_ptr<parquet::Page> NextPage() override {
    for (;;) {
      auto page = reader_->NextPage();
      if (page == nullptr) {
        check_end();
        return nullptr;
      }
      bytes_left_ -= page->size();
      if (bytes_left_ < 0)
        column_.fault("the pages hold more than the {} bytes that the footer promises", chunk_.uncompressed);
      if (page->type() == parquet::PageType::DICTIONARY_PAGE) return page;
      const auto& data = static_cast<const parquet::DataPage&>(*page);
      levels_left_ -= data.num_values();
      if (levels_left_ < 0)
        column_.fault("the pages hold more than the {} values that the footer promises", chunk_.levels);
      if (page->type() == parquet::PageType::DATA_PAGE) check_levels(static_cast<const parquet::DataPageV1&>(data));
      if (data.num_values() > 0) return page;  // libparquet takes an empty page for the end
    }
  }

  void set_max_page_header_size(std::uint32_t size) override { reader_->set_max_page_header_size(size); }

 private:
  void check_end() const {
    if (levels_left_ > 0)
      column_.fault("the pages end {} values short of the {} that the footer promises", levels_left_, chunk_.levels);
    const std::int64_t at = stream_->Tell().ValueOr(0);
    if (at != static_cast<std::int64_t>(chunk_.bytes.size()))
      column_.fault("the footer gives its pages {} bytes, they take {}", chunk_.bytes.size(), at);
  }

  // libparquet reads the bits of BIT_PACKED levels in the wrong order.
  void check_levels(const parquet::DataPageV1& page) const {
    const auto check = [&](int max_level, parquet::Encoding::type encoding) {
      if (max_level > 0 && encoding != parquet::Encoding::RLE)
        column_.fault(
            "the levels of a page are in encoding {}, expected RLE; write the file again with a current library",
            parquet::EncodingToString(encoding));
    };
    check(column_.leaf->max_repetition_level(), page.repetition_level_encoding());
    check(column_.leaf->max_definition_level(), page.definition_level_encoding());
  }

  const CapturedColumn& column_;
  const ColumnChunk& chunk_;
  std::shared_ptr<arrow::io::BufferReader> stream_;
  std::unique_ptr<parquet::PageReader> reader_;
  std::int64_t levels_left_;
  std::int64_t bytes_left_;
};

// Calls `take` with the number of each row, as the type that the file means; nothing stands for null. Parquet stores
// unsigned integers in signed types.
template <class Type, class Number, class Take>
void for_each_as(const CapturedColumn& column, const parquet::ReaderProperties& properties, Take take) {
  std::array<NumberOf<Type>, LevelBatch::most> values;
  for (const ColumnChunk& chunk : column.chunks) {
    for_each_batch<Type>(column, chunk, properties, values.data(), [&](const LevelBatch& levels) {
      const bool nulls = levels.values < levels.count;
      for (std::size_t i = 0, next = 0; i < levels.count; ++i) {
        const bool null = nulls && levels.definition[i] == 0;
        take(null ? std::optional<Number>() : static_cast<Number>(values[next++]));
      }
      return values.data();
    });
  }
}

template <class Take>
void for_each_number(const CapturedColumn& column, const parquet::ReaderProperties& properties, Take take) {
  switch (column.type) {
    case CapturedType::int32:
      return for_each_as<parquet::Int32Type, std::int32_t>(column, properties, take);
    case CapturedType::uint32:
      return for_each_as<parquet::Int32Type, std::uint32_t>(column, properties, take);
    case CapturedType::int64:
      return for_each_as<parquet::Int64Type, std::int64_t>(column, properties, take);
    case CapturedType::uint64:
      return for_each_as<parquet::Int64Type, std::uint64_t>(column, properties, take);
    case CapturedType::float16:
      return for_each_as<parquet::FLBAType, float>(column, properties, take);
    case CapturedType::float32:
      return for_each_as<parquet::FloatType, float>(column, properties, take);
    case CapturedType::float64:
      return for_each_as<parquet::DoubleType, double>(column, properties, take);
  }
}

}  // namespace

CapturedFile read_captured_footer(std::span<const std::uint8_t> file, const std::string& origin,
                                  const parquet::ReaderProperties& properties, ReadLimits& limits) {
  CapturedFile captured;
  captured.metadata = parse_footer(footer_bytes(file, origin), origin, properties);
  const parquet::SchemaDescriptor& descriptor = *captured.metadata->schema();
  const auto& root = *descriptor.group_node();
  const auto flat = [&](const schema::Node& field, bool floats) {
    return column_of(field, flat_type(field, floats, origin), descriptor, origin);
  };

  const auto& vector = need_field(root, "vector", origin);
  const auto& bucket = need_field(root, "bucket", origin);
  const auto& position = need_field(root, "position", origin);
  const auto* example_id = find_field(root, "example_id", origin);
  const auto* sliding_window = find_field(root, "sliding_window", origin);
  captured.vector = column_of(vector, vector_type(vector, origin), descriptor, origin);
  captured.bucket = flat(bucket, /*floats=*/false);
  captured.position = flat(position, /*floats=*/false);
  if (example_id != nullptr) captured.example_id = flat(*example_id, /*floats=*/false);
  if (sliding_window != nullptr) captured.sliding_window = flat(*sliding_window, /*floats=*/true);

  captured.rows = checked_rows(*captured.metadata, file.size(), origin);
  if (captured.rows == 0) fail_input("{}: no rows, expected at least one captured vector", origin);
  in_footer(origin, [&] {
    ChunkCheck check(*captured.metadata, file.size(), origin, limits);
    const auto add = [&](CapturedColumn& column) { add_chunks(column, file, *captured.metadata, check); };
    add(captured.vector);
    add(captured.bucket);
    add(captured.position);
    if (captured.example_id) add(*captured.example_id);
    if (captured.sliding_window) add(*captured.sliding_window);
  });
  return captured;
}

std::shared_ptr<parquet::ColumnReader> open_chunk(const CapturedColumn& column, const ColumnChunk& chunk,
                                                  const parquet::ReaderProperties& properties) {
  return parquet::ColumnReader::Make(column.leaf, std::make_unique<CheckedPages>(column, chunk, properties),
                                     properties.memory_pool());
}

std::vector<std::int64_t> read_integers(const CapturedColumn& column, const IntegerRange& range,
                                        const parquet::ReaderProperties& properties) {
  std::vector<std::int64_t> out;
  for_each_number(column, properties, [&]<class Number>(std::optional<Number> number) {
    if constexpr (std::is_integral_v<Number>) {  // the footer lets no other type through
      if (!number) column.fault("row {} is null, expected an integer", out.size());
      if (!std::in_range<std::int64_t>(*number))
        column.fault("row {} is {}, too large for a signed integer", out.size(), *number);
      const auto value = static_cast<std::int64_t>(*number);
      if (value < range.lowest || value > range.highest)
        column.fault("row {} is {}, expected {}", out.size(), value, range.expected);
      out.push_back(value);
    }
  });
  return out;
}

std::vector<double> read_windows(const CapturedColumn& column, const parquet::ReaderProperties& properties) {
  std::vector<double> out;
  for_each_number(column, properties, [&](auto number) {
    const double window = number ? static_cast<double>(*number) : missing;
    if (std::isinf(window)) column.fault("row {} is infinite; leave it null where there is no window", out.size());
    out.push_back(window);
  });
  return out;
}

}  // namespace headscope
