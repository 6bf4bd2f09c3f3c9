#include "formats/gguf.h"

#include <array>
#include <limits>
#include <unordered_set>

#include "core/config.h"
#include "core/error.h"
#include "formats/byte_reader.h"
#include "formats/content_hash.h"

namespace headscope {
namespace {

constexpr std::string_view gguf_magic = "GGUF";
constexpr std::uint32_t most_gguf_dimensions = 4;  // the format's limit
constexpr std::uint64_t default_gguf_alignment = 32;
constexpr std::string_view alignment_key = "general.alignment", parts_key = "split.count", part_key = "split.no",
                           all_tensors_key = "split.tensors.count";
constexpr std::int64_t most_gguf_parts = 99999;  // the name of a file has five digits for it

struct GgufKindFacts {
  std::string_view name;
  std::size_t bytes;  // 0: text or list
};

// In the order of their numbers.
constexpr std::array<GgufKindFacts, 13> gguf_kinds = {{{"an 8-bit integer", 1},
                                                       {"an 8-bit integer", 1},
                                                       {"a 16-bit integer", 2},
                                                       {"a 16-bit integer", 2},
                                                       {"a 32-bit integer", 4},
                                                       {"a 32-bit integer", 4},
                                                       {"a 32-bit number", 4},
                                                       {"true or false", 1},
                                                       {"a text", 0},
                                                       {"a list", 0},
                                                       {"a 64-bit integer", 8},
                                                       {"a 64-bit integer", 8},
                                                       {"a 64-bit number", 8}}};

const GgufKindFacts& kind_facts(GgufKind kind) {
  return gguf_kinds.at(static_cast<std::size_t>(kind));
}

struct GgufType {
  std::uint32_t number;
  std::string_view name;
  std::optional<TensorType> type;  // nothing: the type has a name, but we cannot read it
};

constexpr std::array<GgufType, 36> gguf_types = {{
    {0, "F32", TensorType::f32},
    {1, "F16", TensorType::f16},
    {2, "Q4_0", TensorType::q4_0},
    {3, "Q4_1", TensorType::q4_1},
    {4, "Q4_2", {}},
    {5, "Q4_3", {}},
    {6, "Q5_0", TensorType::q5_0},
    {7, "Q5_1", TensorType::q5_1},
    {8, "Q8_0", TensorType::q8_0},
    {9, "Q8_1", {}},
    {10, "Q2_K", TensorType::q2_k},
    {11, "Q3_K", TensorType::q3_k},
    {12, "Q4_K", TensorType::q4_k},
    {13, "Q5_K", TensorType::q5_k},
    {14, "Q6_K", TensorType::q6_k},
    {15, "Q8_K", {}},
    {16, "IQ2_XXS", {}},
    {17, "IQ2_XS", {}},
    {18, "IQ3_XXS", {}},
    {19, "IQ1_S", {}},
    {20, "IQ4_NL", TensorType::iq4_nl},
    {21, "IQ3_S", {}},
    {22, "IQ2_S", {}},
    {23, "IQ4_XS", TensorType::iq4_xs},
    {24, "I8", TensorType::i8},
    {25, "I16", TensorType::i16},
    {26, "I32", TensorType::i32},
    {27, "I64", TensorType::i64},
    {28, "F64", TensorType::f64},
    {29, "IQ1_M", {}},
    {30, "BF16", TensorType::bf16},
    {34, "TQ1_0", {}},
    {35, "TQ2_0", {}},
    {39, "MXFP4", {}},
    {40, "NVFP4", {}},
    {41, "Q1_0", {}},
}};

TensorType gguf_tensor_type(std::uint32_t number, std::string_view tensor, const std::string& origin) {
  std::vector<std::string_view> readable;
  for (const GgufType& known : gguf_types) {
    if (known.number == number && known.type) return *known.type;
    if (known.type) readable.push_back(known.name);
  }
  const auto named =
      std::find_if(gguf_types.begin(), gguf_types.end(), [&](const GgufType& known) { return known.number == number; });
  const std::string type =
      named != gguf_types.end() ? std::string(named->name) : fmt::format("with the unknown number {}", number);
  fail_input("{}: tensor '{}' has the type {}, which cannot be read; known are {}", origin, excerpt(tensor), type,
             fmt::join(readable, ", "));
}

template <class Number>
Number number_at(std::span<const std::byte> bytes, std::uint64_t index = 0) {
  Number value;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

// Nothing when the kind is not an integer, or when the value does not fit.
std::optional<std::int64_t> integer_at(GgufKind kind, std::span<const std::byte> bytes, std::uint64_t index) {
  switch (kind) {
    case GgufKind::u8:
      return number_at<std::uint8_t>(bytes, index);
    case GgufKind::i8:
      return number_at<std::int8_t>(bytes, index);
    case GgufKind::u16:
      return number_at<std::uint16_t>(bytes, index);
    case GgufKind::i16:
      return number_at<std::int16_t>(bytes, index);
    case GgufKind::u32:
      return number_at<std::uint32_t>(bytes, index);
    case GgufKind::i32:
      return number_at<std::int32_t>(bytes, index);
    case GgufKind::i64:
      return number_at<std::int64_t>(bytes, index);
    case GgufKind::u64: {
      const auto value = number_at<std::uint64_t>(bytes, index);
      if (!std::in_range<std::int64_t>(value)) return {};
      return static_cast<std::int64_t>(value);
    }
    default:
      return {};
  }
}

std::optional<double> double_at(GgufKind kind, std::span<const std::byte> bytes, std::uint64_t index) {
  if (kind == GgufKind::f32) return number_at<float>(bytes, index);
  if (kind == GgufKind::f64) return number_at<double>(bytes, index);
  if (kind == GgufKind::u64) return static_cast<double>(number_at<std::uint64_t>(bytes, index));
  if (const auto integer = integer_at(kind, bytes, index)) return static_cast<double>(*integer);
  return {};
}

}  // namespace

class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, const std::string& origin)
      : bytes_(bytes), origin_(origin), reader_(bytes, origin) {}

  GgufContent parse() {
    read_version();
    const auto tensors = reader_.number<std::uint64_t>("the number of tensors");
    const auto values = reader_.number<std::uint64_t>("the number of metadata");
    check_count(values, 8 + 4 + 1, "metadata");  // a key's length, a kind, a value
    content_.metadata.origin_ = origin_;
    for (std::uint64_t i = 0; i < values; ++i) read_value();
    read_tensors(tensors);
    return std::move(content_);
  }

 private:
  struct Placed {
    std::uint64_t begin, end;
    std::size_t tensor;
  };

  void read_version() {
    if (bytes_.size() < gguf_magic.size() || text_of(bytes_.first(gguf_magic.size())) != gguf_magic)
      fail_input("{}: is not a GGUF file: it does not begin with GGUF", origin_);
    reader_.take(gguf_magic.size(), "the magic bytes");
    const auto version = reader_.number<std::uint32_t>("the version");
    if ((version & 0xffff) == 0 && version != 0)
      fail_input("{}: is a big-endian GGUF file; convert it to little-endian, the usual order", origin_);
    if (version != 2 && version != 3)
      fail_input("{}: has version {} of the GGUF format; known are 2 and 3", origin_, version);
    content_.version = version;
  }

  void check_count(std::uint64_t count, std::uint64_t least_bytes, std::string_view what) const {
    if (count > reader_.left() / least_bytes)
      fail_input("{}: damaged: it claims {} {} and has {} bytes; copy or download the file again", origin_, count, what,
                 bytes_.size());
  }

  std::string_view read_text(std::string_view what) {
    return text_of(reader_.take(reader_.number<std::uint64_t>(what), what));
  }

  GgufKind read_kind(std::string_view key) {
    const auto number = reader_.number<std::uint32_t>("the kind of a value");
    if (number >= gguf_kinds.size())
      fail_input("{}: the value of '{}' has the unknown kind {}; known are 0 to {}", origin_, excerpt(key), number,
                 gguf_kinds.size() - 1);
    return static_cast<GgufKind>(number);
  }

  void read_value() {
    const std::string_view key = read_text("a key");
    GgufValue value;
    value.kind = read_kind(key);
    if (value.kind == GgufKind::list) {
      value.is_list = true;
      value.kind = read_kind(key);
      value.count = reader_.number<std::uint64_t>("the length of a list");
      if (value.kind == GgufKind::list)
        fail_input("{}: the value of '{}' is a list of lists, which is not supported", origin_, excerpt(key));
    }
    const std::size_t begin = reader_.position();
    const std::size_t size = kind_facts(value.kind).bytes;
    if (value.count > reader_.left() / std::max<std::size_t>(size, 1))
      fail_input("{}: damaged: '{}' claims {} values and the file has {} bytes; copy or download the file again",
                 origin_, excerpt(key), value.count, bytes_.size());
    if (size != 0)
      reader_.take(value.count * size, "a value");
    else
      for (std::uint64_t i = 0; i < value.count; ++i) read_text("a text");
    value.bytes = bytes_.subspan(begin, reader_.position() - begin);
    if (!content_.metadata.values_.emplace(key, value).second)
      fail_input("{}: the key '{}' comes twice", origin_, excerpt(key));
  }

  std::uint64_t alignment() const {
    const std::int64_t value = content_.metadata.integer(alignment_key, default_gguf_alignment);
    if (value <= 0 || value > std::numeric_limits<std::uint32_t>::max() || !std::has_single_bit(std::uint64_t(value)))
      fail_input("{}: {} is {}; expected a power of two", origin_, alignment_key, value);
    return static_cast<std::uint64_t>(value);
  }

  void read_tensors(std::uint64_t count) {
    check_count(count, 8 + 4 + 4 + 8, "tensors");  // a name's length, the number of dimensions, a type, an offset
    content_.tensors.reserve(count);
    std::vector<std::uint64_t> offsets;
    offsets.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      TensorView& tensor = content_.tensors.emplace_back();
      tensor.name = read_text("the name of a tensor");
      read_shape(tensor);
      tensor.type = gguf_tensor_type(reader_.number<std::uint32_t>("the type of a tensor"), tensor.name, origin_);
      offsets.push_back(reader_.number<std::uint64_t>("the offset of a tensor"));
    }
    std::unordered_set<std::string_view> names;
    for (const TensorView& tensor : content_.tensors)
      if (!names.insert(tensor.name).second) fail_input("{}: tensor '{}' comes twice", origin_, excerpt(tensor.name));
    place_tensors(offsets);
  }

  void read_shape(TensorView& tensor) {
    const auto dimensions = reader_.number<std::uint32_t>("the number of dimensions");
    if (dimensions > most_gguf_dimensions)
      fail_input("{}: tensor '{}' claims {} dimensions; at most {} are allowed", origin_, excerpt(tensor.name),
                 dimensions, most_gguf_dimensions);
    tensor.shape.resize(dimensions);
    for (std::uint32_t i = dimensions; i-- > 0;) {
      const auto size = reader_.number<std::uint64_t>("a dimension");
      if (!std::in_range<std::int64_t>(size))
        fail_input("{}: tensor '{}' has the dimension {}", origin_, excerpt(tensor.name), size);
      tensor.shape[i] = static_cast<std::int64_t>(size);
    }
  }

  // The values begin at the first aligned byte behind the list of tensors.
  void place_tensors(const std::vector<std::uint64_t>& offsets) {
    const std::uint64_t align = alignment();
    const std::uint64_t start = (reader_.position() + align - 1) / align * align;
    const std::uint64_t available = bytes_.size() - std::min<std::uint64_t>(start, bytes_.size());
    std::vector<Placed> places;
    places.reserve(offsets.size());
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      TensorView& tensor = content_.tensors[i];
      const auto fail = [&](const std::string& what) {
        fail_input("{}: tensor '{}' {}; copy or download the file again", origin_, excerpt(tensor.name), what);
      };
      const auto size = byte_size(tensor.type, tensor.shape);
      if (!size)
        fail(fmt::format("of {} cannot have the shape {}: a row is a multiple of {} values, and all fit the file",
                         type_name(tensor.type), shape_text(tensor.shape), values_per_block(tensor.type)));
      if (offsets[i] % align != 0) fail(fmt::format("starts at {}, which is not a multiple of {}", offsets[i], align));
      if (offsets[i] > available || *size > available - offsets[i])
        fail(fmt::format("of {} bytes starts at {}; the file has {} behind its header", *size, offsets[i], available));
      if (*size == 0) continue;
      tensor.bytes = bytes_.subspan(start + offsets[i], *size);
      places.push_back({offsets[i], offsets[i] + *size, i});
    }
    std::sort(places.begin(), places.end(), [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < places.size(); ++i)
      if (places[i].begin < places[i - 1].end)
        fail_input("{}: the tensors '{}' and '{}' overlap; copy or download the file again", origin_,
                   excerpt(content_.tensors[places[i - 1].tensor].name),
                   excerpt(content_.tensors[places[i].tensor].name));
  }

  std::span<const std::byte> bytes_;
  const std::string& origin_;
  ByteReader reader_;
  GgufContent content_;
};

namespace {

struct GgufPart {
  std::int64_t number = 0, count = 1;  // the first is 0
};

GgufPart part_of(const GgufMetadata& metadata, const std::string& origin) {
  const GgufPart part{metadata.integer(part_key, 0), metadata.integer(parts_key, 1)};
  if (part.count < 0 || part.count > most_gguf_parts || part.number < 0 ||
      part.number >= std::max<std::int64_t>(part.count, 1))
    fail_input("{}: {} is {} and {} is {}; expected a number below a count of at most {}", origin, part_key,
               part.number, parts_key, part.count, most_gguf_parts);
  return {part.number, std::max<std::int64_t>(part.count, 1)};
}

// The files of a model, found by the name of one.
std::vector<std::filesystem::path> files_of_parts(const std::filesystem::path& file, const GgufPart& part) {
  if (part.count == 1) return {file};
  const auto ending = [&](std::int64_t number) { return fmt::format("-{:05}-of-{:05}.gguf", number + 1, part.count); };
  const std::string name = file.filename().string(), own = ending(part.number);
  if (!name.ends_with(own) || name.size() == own.size())
    fail_input("{}: is file {} of {} of a model; expected a name that ends with {}, by which the others are found",
               file.string(), part.number + 1, part.count, own);
  std::vector<std::filesystem::path> files;
  for (std::int64_t number = 0; number < part.count; ++number)
    files.push_back(file.parent_path() / (name.substr(0, name.size() - own.size()) + ending(number)));
  return files;
}

}  // namespace

GgufContent parse_gguf(std::span<const std::byte> bytes, const std::string& origin) {
  return GgufParser(bytes, origin).parse();
}

const GgufValue& GgufMetadata::get(std::string_view key) const {
  if (const auto found = values_.find(key); found != values_.end()) return found->second;
  const std::string nearest = nearest_name(key, keys());
  fail_input("{}: there is no '{}' in its metadata{}", origin_, excerpt(key),
             nearest.empty() ? "" : fmt::format("; did you mean '{}'?", excerpt(nearest)));
}

std::vector<std::string> GgufMetadata::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : values_) keys.push_back(key);
  return keys;
}

void GgufMetadata::fail_kind(std::string_view key, std::string_view expected) const {
  const GgufValue& value = get(key);
  fail_input("{}: '{}' is {}{}; expected {}", origin_, excerpt(key),
             value.is_list ? fmt::format("a list of {} values, each ", value.count) : "", kind_facts(value.kind).name,
             expected);
}

const GgufValue& GgufMetadata::one_value(std::string_view key) const {
  const GgufValue& value = get(key);
  if (value.is_list) fail_kind(key, "one value");
  return value;
}

const GgufValue& GgufMetadata::list_of(std::string_view key) const {
  const GgufValue& value = get(key);
  if (!value.is_list) fail_kind(key, "a list");
  return value;
}

std::string GgufMetadata::text(std::string_view key, std::optional<std::string> without) const {
  if (without && !contains(key)) return *std::move(without);
  const GgufValue& value = one_value(key);
  if (value.kind != GgufKind::text) fail_kind(key, "a text");
  return std::string(text_of(value.bytes.subspan(sizeof(std::uint64_t))));
}

std::int64_t GgufMetadata::integer(std::string_view key, std::optional<std::int64_t> without) const {
  if (without && !contains(key)) return *without;
  const GgufValue& value = one_value(key);
  const auto integer = integer_at(value.kind, value.bytes, 0);
  if (!integer) fail_kind(key, "an integer below 2^63");
  return *integer;
}

double GgufMetadata::number(std::string_view key, std::optional<double> without) const {
  if (without && !contains(key)) return *without;
  const GgufValue& value = one_value(key);
  const auto number = double_at(value.kind, value.bytes, 0);
  if (!number) fail_kind(key, "a number");
  return *number;
}

bool GgufMetadata::boolean(std::string_view key, std::optional<bool> without) const {
  if (without && !contains(key)) return *without;
  const GgufValue& value = one_value(key);
  if (value.kind != GgufKind::boolean) fail_kind(key, "true or false");
  return value.bytes.front() != std::byte{0};
}

std::vector<std::string_view> GgufMetadata::texts(std::string_view key) const {
  const GgufValue& list = list_of(key);
  if (list.kind != GgufKind::text) fail_kind(key, "texts");
  std::vector<std::string_view> texts;
  texts.reserve(list.count);
  ByteReader reader(list.bytes, origin_);
  for (std::uint64_t i = 0; i < list.count; ++i)
    texts.push_back(text_of(reader.take(reader.number<std::uint64_t>("a text"), "a text")));
  return texts;
}

std::vector<std::int64_t> GgufMetadata::integers(std::string_view key) const {
  const GgufValue& list = list_of(key);
  std::vector<std::int64_t> integers;
  integers.reserve(list.count);
  for (std::uint64_t i = 0; i < list.count; ++i) {
    const auto integer = integer_at(list.kind, list.bytes, i);
    if (!integer) fail_kind(key, "integers below 2^63");
    integers.push_back(*integer);
  }
  return integers;
}

std::vector<double> GgufMetadata::numbers(std::string_view key) const {
  const GgufValue& list = list_of(key);
  std::vector<double> numbers;
  numbers.reserve(list.count);
  for (std::uint64_t i = 0; i < list.count; ++i) {
    const auto number = double_at(list.kind, list.bytes, i);
    if (!number) fail_kind(key, "numbers");
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<bool> GgufMetadata::booleans(std::string_view key) const {
  const GgufValue& list = list_of(key);
  if (list.kind != GgufKind::boolean) fail_kind(key, "values that are true or false");
  std::vector<bool> booleans;
  for (const std::byte byte : list.bytes) booleans.push_back(byte != std::byte{0});
  return booleans;
}

Gguf::Gguf(std::filesystem::path file) {
  files_.emplace_back(file);
  content_ = parse_gguf(files_.front().bytes(), file.string());
  const GgufPart given = part_of(content_.metadata, file.string());
  paths_ = files_of_parts(file, given);
  if (given.count == 1) return;
  files_.clear();
  std::unordered_set<std::string> names;  // of all tensors
  for (std::int64_t number = 0; number < given.count; ++number) {
    const std::filesystem::path& path = paths_[static_cast<std::size_t>(number)];
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
      fail_input("{}: is not there; {} is one of {} files of a model: download all of them", path.string(),
                 file.filename().string(), given.count);
    GgufContent content = parse_gguf(files_.emplace_back(path).bytes(), path.string());
    const GgufPart part = part_of(content.metadata, path.string());
    if (part.number != number || part.count != given.count)
      fail_input("{}: is file {} of {} of a model; its name says {} of {}", path.string(), part.number + 1, part.count,
                 number + 1, given.count);
    for (const TensorView& tensor : content.tensors)
      if (!names.insert(tensor.name).second)
        fail_input("{}: tensor '{}' is in another file of the model, too", path.string(), excerpt(tensor.name));
    if (number == 0)
      content_ = std::move(content);
    else
      content_.tensors.insert(content_.tensors.end(), content.tensors.begin(), content.tensors.end());
  }
  const auto tensors = static_cast<std::int64_t>(content_.tensors.size());
  const std::int64_t expected = content_.metadata.integer(all_tensors_key, tensors);
  if (tensors != expected)
    fail_input("{}: the {} files of the model have {} tensors; {} says {}; download them again", path().string(),
               given.count, tensors, all_tensors_key, expected);
}

std::string Gguf::hash() const {
  ContentHash hash;
  for (const MappedFile& file : files_) hash.add(file.bytes());
  return hash.hex();
}

bool is_gguf(const std::filesystem::path& file) {
  try {
    std::array<std::byte, gguf_magic.size()> start{};
    return open_regular_file(file).read(start) == start.size() && text_of(start) == gguf_magic;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace headscope
