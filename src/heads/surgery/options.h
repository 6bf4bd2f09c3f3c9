// What is done to the keys of a model, on what data its loss is measured, and the losses.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.h"
#include "formats/table.h"

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
    visit("repeats", self.repeats, "Random orders");
    visit("seed", self.seed, "Seed of the random orders");
    visit("bits", self.bits, "Bits to round keys to, 2 to 16");
    visit("layers", self.layers, "Layers to operate on, such as 0-3,7 (default: all)");
    visit("data", self.data, "Text or token file, or a folder (default: what the model was trained with)");
    visit("device", self.device, "auto, cpu or cuda");
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

}  // namespace headscope
