// write_files FOLDER: files for test_files.py, which reads them with other programs' readers.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "core/atomic_file.h"
#include "core/error.h"
#include "formats/npz.h"
#include "formats/part_table.h"
#include "formats/safetensors.h"

namespace {

using namespace headscope;
namespace fs = std::filesystem;

Table gamma(std::int64_t begin, std::int64_t end) {
  Integers step, layer;
  Texts kind;
  Numbers loss;
  Vectors vector;
  for (std::int64_t row = begin; row < end; ++row) {
    step.push_back(row << 33);
    layer.push_back(-row);
    kind.emplace_back(row % 2 == 0 ? "q" : "kü");
    loss.push_back(row % 4 == 1 ? std::numeric_limits<double>::quiet_NaN() : 0.1 * static_cast<double>(row));
    vector.push_back({0.5 + static_cast<double>(row), std::numeric_limits<double>::quiet_NaN(), 1e-300});
  }
  Table table;
  table.add("step", step).add("layer", layer).add("kind", kind).add("loss", loss).add("vector", vector);
  return table;
}

void write_tables(const fs::path& folder) {
  PartTable growing(folder / "growing.parquet"), merged(folder / "merged.parquet");
  for (const std::int64_t begin : {0, 3, 4}) {
    const std::int64_t end = begin == 0 ? 3 : begin == 3 ? 4 : 10;
    growing.append(gamma(begin, end));
    merged.append(gamma(begin, end));
  }
  merged.merge();
  write_file(folder / "growing.parquet" / ".part-00003.parquet.1.0.tmp", "half");  // as a killed writer leaves it
}

void write_tensors(const fs::path& folder) {
  const std::vector<float> weights = {0.5F, -1.25F, 3e-38F, std::numeric_limits<float>::infinity(), 5, 6};
  const std::vector<std::int64_t> tokens = {1, -2, std::int64_t{1} << 62};
  const std::vector<TensorView> tensors = {
      {"a.weight", TensorType::f32, {2, 3}, std::as_bytes(std::span(weights))},
      {"tokens", TensorType::i64, {3}, std::as_bytes(std::span(tokens))},
      {"scalar", TensorType::f32, {}, std::as_bytes(std::span(weights).first(1))},
      {"none", TensorType::bf16, {0, 4}, {}},
  };
  const std::string hash = write_safetensors(folder / "model.safetensors", tensors, {{"format", "pt"}, {"ü", "\"\n"}});
  if (Safetensors(folder / "model.safetensors").hash() != hash) fail_runtime("the hash changed");
}

void write_arrays(const fs::path& folder) {
  const std::vector<double> numbers = {0.5, -1e300, std::numeric_limits<double>::infinity(), 0, 5, 6};
  const std::vector<std::uint16_t> halves = {0x3c00, 0xc000};  // 1 and -2
  const std::vector<std::uint8_t> bits = {1, 0, 1};
  std::vector<std::int64_t> many(100'000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int64_t>(i) - 7;
  const std::vector<TensorView> arrays = {
      {"numbers", TensorType::f64, {2, 3}, std::as_bytes(std::span(numbers))},
      {"halves", TensorType::f16, {2}, std::as_bytes(std::span(halves))},
      {"bits", TensorType::boolean, {1, 3}, std::as_bytes(std::span(bits))},
      {"one", TensorType::u8, {}, std::as_bytes(std::span(bits).first(1))},
      {"none", TensorType::u32, {0, 4}, {}},
      {"ü/many", TensorType::i64, {10, 10'000}, std::as_bytes(std::span(many))},
  };
  write_npz(folder / "stored.npz", arrays);
  write_npz(folder / "deflated.npz", arrays, NpzPacking::deflated);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count != 2) fail_input("usage: write_files FOLDER");
    write_tables(arguments[1]);
    write_tensors(arguments[1]);
    write_arrays(arguments[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
