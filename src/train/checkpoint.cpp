#include "train/checkpoint.h"

#include <cstring>

#include "core/atomic_file.h"
#include "formats/content_hash.h"
#include "model/checkpoint_files.h"
#include "model/load.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* partial_prefix = ".partial-";

// Under another name first: a folder that is half removed must not look like a checkpoint. One in which the user keeps
// a file stays.
void remove_checkpoint(const fs::path& checkpoint) {
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    const fs::path name = entry.path().filename();
    if (name != model_name && name != optimizer_name && name != state_name) return;
  }
  const fs::path aside = checkpoint.parent_path() / (partial_prefix + checkpoint.filename().string());
  fs::rename(checkpoint, aside);
  fs::remove_all(aside);
}

void write_folder(const fs::path& folder, const Trainer& trainer, const NamedTensors& optimizer,
                  const CheckpointState& state) {
  NamedTensors weights;
  for_each_parameter(trainer.model(), [&](const std::string& name, ParameterKind, const at::Tensor& value) {
    weights.emplace_back(name, value);
  });
  const ordered_json hashes = {{model_name, save_tensors(folder / model_name, weights)},
                               {optimizer_name, save_tensors(folder / optimizer_name, optimizer)}};
  write_file(folder / state_name, sealed({{"step", state.step},
                                          {"loss_sum", state.loss_sum},
                                          {"loss_count", state.loss_count},
                                          {"rows", state.rows},
                                          {"data_hash", state.data_hash},
                                          {"config", state.config},
                                          {"hashes", hashes}}));
}

TableRows rows_of(const CheckpointReader& reader) {
  TableRows rows;
  for (const auto& [table, value] : reader.object("rows").items()) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t{1} << 62)
      fail_damaged(reader.file(), "'rows' holds what is not a whole number");
    rows[table] = value.get<std::int64_t>();
  }
  return rows;
}

// Throws AgreedError(Fault::runtime) where a rank has other weights than rank 0.
void check_equal_weights(const Trainer& trainer) {
  const Ranks& ranks = trainer.ranks();
  if (!ranks.several()) return;
  ContentHash hash;
  for_each_parameter(trainer.model(), [&](const std::string&, ParameterKind, const at::Tensor& value) {
    const at::Tensor bytes = value.detach().cpu().contiguous();
    hash.add({static_cast<const std::byte*>(bytes.const_data_ptr()), bytes.nbytes()});
  });
  const std::string hex = hash.hex();
  const at::Tensor own = at::empty({static_cast<std::int64_t>(hex.size())}, at::kByte);
  std::memcpy(own.mutable_data_ptr(), hex.data(), hex.size());
  const at::Tensor all = ranks.all_gather(own);
  std::vector<int> other;
  for (int rank = 1; rank < ranks.size(); ++rank)
    if (!all[rank].equal(all[0])) other.push_back(rank);
  if (!other.empty())
    throw AgreedError(Fault::runtime,
                      fmt::format("step {}: rank {} of {} has other weights than rank 0; nothing was saved: go on from "
                                  "the checkpoint before with --resume, and look at the memory of that machine",
                                  trainer.steps_done(), fmt::join(other, ", rank "), ranks.size()));
}

}  // namespace

void save_checkpoint(const fs::path& checkpoints, const Trainer& trainer, const CheckpointState& state,
                     std::int64_t keep, const std::function<void()>& before_writing) {
  const Ranks& ranks = trainer.ranks();
  const fs::path target = checkpoints / checkpoint_name(state.step);
  const bool is_there = ranks.first() && fs::exists(target);  // the same step of the same run is the same state
  if (ranks.all_reduce(at::full({}, is_there ? 1 : 0, at::kLong)).item<bool>()) return;
  check_equal_weights(trainer);
  const NamedTensors optimizer = trainer.optimizers().whole_state(trainer.model(), ranks);
  if (!ranks.first()) return;
  const fs::path partial = checkpoints / (partial_prefix + checkpoint_name(state.step));
  std::error_code ignored;
  before_writing();
  fs::remove_all(partial, ignored);
  try {
    fs::create_directories(partial);
    write_folder(partial, trainer, optimizer, state);
    before_writing();  // the folder may be another process's by now
    fs::rename(partial, target);
    sync_folder(checkpoints);
  } catch (const fs::filesystem_error& error) {
    before_writing();
    fs::remove_all(partial, ignored);
    fail_runtime("{}: {}", target.string(), error.code().message());
  } catch (const Error&) {
    before_writing();
    fs::remove_all(partial, ignored);
    throw;
  }
  std::vector<fs::path> complete = complete_checkpoints(checkpoints);
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < complete.size(); ++i) remove_checkpoint(complete[i]);
}

std::optional<fs::path> latest_checkpoint(const fs::path& checkpoints) {
  const std::vector<fs::path> complete = complete_checkpoints(checkpoints);
  if (complete.empty()) return std::nullopt;
  return complete.back();
}

CheckpointState load_checkpoint(const fs::path& checkpoint, Trainer& trainer) {
  const CheckpointReader reader(checkpoint);
  const Safetensors moments = reader.tensors(optimizer_name);
  load_weights(reader.tensors(model_name), trainer.model(), (checkpoint / model_name).string());
  const std::int64_t steps = trainer.options().steps();
  CheckpointState state;
  state.step = reader.count("step", steps);
  state.loss_sum = reader.number("loss_sum");
  state.loss_count = reader.count("loss_count", steps);
  state.rows = rows_of(reader);
  state.data_hash = reader.text("data_hash");
  state.config = reader.object("config");
  trainer.optimizers().load_state([&](const std::string& name, const at::Tensor& value) {
    load_tensor(moments.get(name), value, (checkpoint / optimizer_name).string());
  });
  trainer.go_to(state.step);
  return state;
}

}  // namespace headscope
