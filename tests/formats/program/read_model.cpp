// read_model MODEL OUT.npz: for test_models.py. Writes the weights of a model in float32, row by row, into OUT.npz, and
// prints what else its files say as one JSON object: types of tensors, metadata of a GGUF file, unlisted tensors.
#include <cstdio>
#include <vector>

#include "core/error.h"
#include "core/json_text.h"
#include "formats/model_files.h"
#include "formats/npz.h"

namespace {

using namespace headscope;
using nlohmann::ordered_json;

ordered_json value_of(const GgufMetadata& metadata, const std::string& key) {
  const GgufValue& value = metadata.get(key);
  const bool fraction = value.kind == GgufKind::f32 || value.kind == GgufKind::f64;
  if (value.is_list) {
    if (value.kind == GgufKind::text) return metadata.texts(key);
    if (value.kind == GgufKind::boolean) return metadata.booleans(key);
    return fraction ? ordered_json(metadata.numbers(key)) : ordered_json(metadata.integers(key));
  }
  if (value.kind == GgufKind::text) return metadata.text(key);
  if (value.kind == GgufKind::boolean) return metadata.boolean(key);
  return fraction ? ordered_json(metadata.number(key)) : ordered_json(metadata.integer(key));
}

void read_model(const std::filesystem::path& file, const std::filesystem::path& out) {
  const ModelFiles model(file);
  ordered_json said = {{"types", ordered_json::object()}, {"metadata", ordered_json::object()}};
  std::vector<std::vector<float>> values;
  std::vector<TensorView> arrays;
  for (const TensorView& tensor : model.tensors()) {
    said["types"][tensor.name] = type_name(tensor.type);
    values.emplace_back(value_count(tensor));
    read_floats(tensor, 0, values.back());
    arrays.push_back({tensor.name, TensorType::f32, tensor.shape, std::as_bytes(std::span(values.back()))});
  }
  write_npz(out, arrays);
  if (const Gguf* gguf = model.gguf())
    for (const std::string& key : gguf->metadata().keys()) said["metadata"][key] = value_of(gguf->metadata(), key);
  said["unlisted"] = model.unlisted();
  said["hash"] = model.weights_hash();
  std::puts(json_line(said).c_str());
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count != 3) fail_input("usage: read_model MODEL OUT.npz");
    read_model(arguments[1], arguments[2]);
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  }
}
