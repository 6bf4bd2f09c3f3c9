// Models on disk: tensors by name (safetensors), a trained model of ours with the setup that made it, and published
// ones.
#pragma once

#include <filesystem>
#include <string>

#include "formats/safetensors.h"
#include "model/decoder.h"
#include "model/revision.h"
#include "settings/setup.h"

namespace headscope {

// Writes the tensors in their order and returns the file's hash. From any device.
std::string save_tensors(const std::filesystem::path& file, const NamedTensors& tensors);

// Fills every parameter of the model from the file that `origin` names.
void load_weights(const Safetensors& weights, const Decoder& model, const std::string& origin);

// Copies what a file holds into `target`, converting its type. Throws Error(Fault::input) naming the file and the
// tensor when the shapes differ.
void load_tensor(const TensorView& view, const at::Tensor& target, const std::string& origin);

// A trained model: a checkpoint of ours, or a published one.
struct LoadedModel {
  std::filesystem::path checkpoint;        // its folder, or its GGUF file
  Decoder model;                           // without gradients
  Setup setup;                             // what it was trained with; of a published one, the model alone is known
  std::int64_t step = 0, tokens = 0;       // updates that it had, and the tokens of those; 0 where nothing says it
  std::string architecture = {};           // a published one's model_type; empty: ours
  std::vector<std::string> warnings = {};  // for the user: tensors that are not used, for example
};

// `place`: the folder of a checkpoint, or of a run, which stands for its newest one; or that of a published model
// (formats/model_files.h). Throws Error(Fault::input) naming the file: there is none (of a study's folder: with the
// names of its conditions), it is damaged, its architecture is not known (model/architectures.h), or its tensors have
// other shapes than its configuration says. On at::kMeta everything is checked but values, which are not read.
// `type`: of the matrices and embeddings.
LoadedModel load_model(const std::filesystem::path& place, at::Device device, at::ScalarType type = at::kFloat);

// When in its training such a model was saved, without reading its weights: as a checkpoint of ours or the name of a
// published revision says it.
std::optional<RevisionName> trained_for(const std::filesystem::path& place);

// The data that a published model is measured on: all of the text that was given is held out, and its own tokenizer
// reads it unless another was given. Sequences that would be longer than its range (config.longest) are cut to it,
// which adds a warning, as do tokens of another tokenizer. Nothing of a model of ours. Throws Error(Fault::input) when
// there is no text.
void hold_out_all(LoadedModel& saved, bool tokenizer_given);

// Whether a published model has a tokenizer of its own, in its folder or in its GGUF file.
bool has_tokenizer(const LoadedModel& saved);

// "first (tiny), step 150": the run that trained it, or the preset where its checkpoint lies elsewhere. A published
// model's is that of its folder, "org/name" in the cache of Hugging Face.
std::string title_of(const LoadedModel& saved);
// Of several revisions of the model: without the step.
std::string title_of_course(const LoadedModel& saved);

}  // namespace headscope
