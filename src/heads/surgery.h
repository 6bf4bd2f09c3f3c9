// Surgery: what is done to the keys of a model, on what data its loss is measured, the losses, and their tables and
// figures in the run folder.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.h"
#include "core/console.h"
#include "formats/table.h"
#include "run/run_folder.h"

namespace headscope {

// What orders the dimensions that are removed, or what shares a scale where keys are rounded.
enum class SurgeryBy { gain, singular, random, tensor, channel };
template <>
struct EnumNames<SurgeryBy> {
  static constexpr std::array<std::string_view, 5> names = {"gain", "singular", "random", "tensor", "channel"};
};

enum class RemovalOrder { smallest, largest };
template <>
struct EnumNames<RemovalOrder> {
  static constexpr std::array<std::string_view, 2> names = {"smallest", "largest"};
};

constexpr std::int64_t most_measurements = 1000;  // passes over the batches; more shares than dimensions are the same

struct SurgeryOptions {
  std::string checkpoint;  // the folder of a checkpoint, or of a run
  std::string by;          // empty: all that the model allows
  std::string shares = "0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1";
  RemovalOrder order = RemovalOrder::smallest;  // what pruning wants
  std::int64_t repeats = 5;                     // random orders: enough to see their range
  std::uint64_t seed = 0;
  std::string bits = "8,6,4,3";  // from what costs nothing to what hurts
  std::string layers;            // empty: all
  std::string data;              // empty: what the model was trained with
  std::string device = "auto";

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("checkpoint", self.checkpoint, "Folder of a checkpoint, or of a run, which stands for its newest one");
    visit(
        "by", self.by,
        "What to do: remove by gain, singular, random; round by tensor, channel (default: all that the model allows)");
    visit("shares", self.shares, "Shares of a head's dimensions to remove");
    visit("order", self.order, "Which gain or singular value goes first: smallest or largest");
    visit("repeats", self.repeats, "Random orders", SizeRange{1, most_measurements, "orders"});
    visit("seed", self.seed, "Seed of the random orders");
    visit("bits", self.bits, "Bits to round keys to, 2 to 16");
    visit("layers", self.layers, "Layers to operate on, such as 0-3,7 (default: all)");
    visit("data", self.data, "Text or token file, or a folder (default: what the model was trained with)");
    visit("device", self.device, "auto, cpu or cuda (cuda:1: the second GPU)");
  }
};

struct SurgeryLosses {
  double unmodified = 0;
  double uniform = 0;  // all keys of the chosen layers zero: every row of their attention is uniform
  Table rows;          // docs/surgery.md
};

// Throws Error(Fault::input) naming the flag on values that make no sense.
void validate(const SurgeryOptions& options);

constexpr bool removes(SurgeryBy by) {
  return by == SurgeryBy::gain || by == SurgeryBy::singular || by == SurgeryBy::random;
}

// The lists, each member once: `by` in the order of the enum, shares ascending, bits descending.
std::vector<SurgeryBy> bys_of(const SurgeryOptions& options);  // all of them when none is named
std::vector<double> shares_of(const SurgeryOptions& options);
std::vector<std::int64_t> bits_of(const SurgeryOptions& options);
// Ascending. Throws Error(Fault::input) when the model has not so many.
std::vector<std::int64_t> layers_of(const SurgeryOptions& options, std::int64_t n_layers);

inline constexpr const char* surgery_command = "surgery";

struct SurgeryOutcome {
  std::filesystem::path out;
  std::string title;  // "tiny QK, step 150"
  std::int64_t d_k = 0;
  std::vector<std::int64_t> layers;  // that were operated on
  RemovalOrder order = RemovalOrder::smallest;
  SurgeryLosses losses;
};

// The losses of it: unmodified_loss, uniform_attention_loss, and curves by operation, remove and quantise.
nlohmann::ordered_json to_json(const SurgeryLosses& losses);

// summary.json, which --json prints, too.
nlohmann::ordered_json to_json(const SurgeryOutcome& outcome);

// Writes the tables and summary.json, and draws. Without gnuplot there is a warning instead of figures.
void write_outcome(const SurgeryOutcome& outcome, const RunFolder& folder, const std::string& theme, Console& console);

// The losses of a run that is complete. Throws Error(Fault::input) when its files are damaged.
SurgeryLosses read_losses_of_surgery(const std::filesystem::path& run);

// Draws the figures of a run again, into `out`/plots; returns every file written.
std::vector<std::filesystem::path> draw_surgery_run(const std::filesystem::path& run, const std::filesystem::path& out,
                                                    const std::string& theme);

}  // namespace headscope
