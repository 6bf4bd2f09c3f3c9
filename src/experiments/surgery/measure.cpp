#include "experiments/surgery/measure.h"

#include "core/interrupt.h"
#include "core/missing.h"
#include "core/random.h"
#include "experiments/surgery/key_edits.h"
#include "formats/table.h"

namespace headscope {
namespace {

struct Operation {
  SurgeryBy by{};
  std::int64_t dimensions = 0;  // removed of each head
  std::int64_t bits = 0;        // 0: not rounded
  std::int64_t repeat = 0;
};

// The dimensions to remove. Shares of a small head can be the same number of them, which is measured once.
std::vector<std::int64_t> counts_of(const SurgeryOptions& options, std::int64_t d) {
  std::vector<std::int64_t> counts;
  for (const double share : shares_of(options)) {
    const std::int64_t count = removed_dimensions(share, d);
    if (counts.empty() || counts.back() != count) counts.push_back(count);
  }
  return counts;
}

std::int64_t repeats_of(SurgeryBy by, const SurgeryOptions& options) {
  return by == SurgeryBy::random ? options.repeats : 1;
}

std::vector<Operation> operations_of(const SurgeryOptions& options, std::int64_t d) {
  std::vector<Operation> operations;
  for (const SurgeryBy by : bys_of(options)) {
    if (!removes(by))
      for (const std::int64_t bits : bits_of(options)) operations.push_back({by, 0, bits, 0});
    else
      for (std::int64_t repeat = 0; repeat < repeats_of(by, options); ++repeat)
        for (const std::int64_t count : counts_of(options, d)) operations.push_back({by, count, 0, repeat});
  }
  return operations;
}

// The edits of operations, which come in order: the directions of the last one are kept.
class KeyEdits {
 public:
  KeyEdits(const Decoder& model, const at::Tensor& tokens_bt, const SurgeryOptions& options)
      : model_(model), tokens_bt_(tokens_bt), options_(options), layers_(layers_of(options, model.config.layers)) {}

  EditKeys edit(const Operation& operation) {
    if (operation.by == SurgeryBy::tensor) return quantisation(operation.bits, ScaleOf::tensor, layers_);
    if (operation.by == SurgeryBy::channel) return quantisation(operation.bits, ScaleOf::channel, layers_);
    if (operation.by != by_ || operation.repeat != repeat_) {
      directions_ = directions(operation.by, operation.repeat);
      by_ = operation.by;
      repeat_ = operation.repeat;
    }
    return removal(directions_, operation.dimensions, layers_);
  }

  [[nodiscard]] EditKeys zero_keys() const {
    return in_layers(layers_, [](const at::Tensor& k_bthd) { return at::zeros_like(k_bthd); });
  }

 private:
  [[nodiscard]] Directions directions(SurgeryBy by, std::int64_t repeat) const {
    if (by == SurgeryBy::gain) return gain_directions(model_, options_.order);
    if (by == SurgeryBy::singular) return singular_directions(model_, tokens_bt_, options_.order);
    return random_directions(model_, mixed_seed(options_.seed, static_cast<std::uint64_t>(repeat)));
  }

  const Decoder& model_;
  const at::Tensor& tokens_bt_;
  const SurgeryOptions& options_;
  std::vector<std::int64_t> layers_;
  Directions directions_;
  std::optional<SurgeryBy> by_;  // of the directions
  std::int64_t repeat_ = 0;
};

std::string order_name(SurgeryBy by, const SurgeryOptions& options) {
  if (!removes(by)) return "";
  return by == SurgeryBy::random ? "random" : json_value(options.order).get<std::string>();
}

Table table_of(const std::vector<Operation>& operations, const Numbers& losses, double unmodified,
               const SurgeryOptions& options, std::int64_t d) {
  Rows<std::string, std::string, std::string, double, std::int64_t, std::int64_t, std::int64_t, double, double> rows(
      {"method", "by", "order", "share_removed", "dimensions", "bits", "repeat", "loss", "loss_change"});
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const auto& [by, dimensions, bits, repeat] = operations[i];
    const double share = removes(by) ? static_cast<double>(dimensions) / static_cast<double>(d) : missing;
    rows.add(removes(by) ? "remove" : "quantise", json_value(by).get<std::string>(), order_name(by, options), share,
             dimensions, bits, repeat, losses[i], losses[i] - unmodified);
  }
  return rows.take();
}

}  // namespace

SurgeryLosses measure_surgery(const Decoder& model, const std::vector<Batch>& batches, at::ScalarType type,
                              const SurgeryOptions& options, Console& console) {
  const at::NoGradGuard no_gradients;
  const std::int64_t d = model.config.d_k;
  const std::vector<Operation> operations = operations_of(options, d);
  KeyEdits edits(model, batches.front().tokens_bt, options);
  SurgeryLosses result;
  result.unmodified = validation_loss(model, batches, type);
  result.uniform = validation_loss(model, batches, type, edits.zero_keys());
  Progress progress(console, "surgery", "operations", operations.size());
  Numbers losses;
  for (const Operation& operation : operations) {
    if (interrupt_requested()) throw Error(Fault::interrupted, "interrupted between operations; start again");
    const EditKeys edit = edits.edit(operation);
    losses.push_back(edit ? validation_loss(model, batches, type, edit) : result.unmodified);
    progress.step(fmt::format("loss {:.3f}", losses.back()));
  }
  result.rows = table_of(operations, losses, result.unmodified, options, d);
  return result;
}

}  // namespace headscope
