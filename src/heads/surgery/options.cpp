#include "heads/surgery/options.h"

#include <set>

#include "core/bounds.h"
#include "core/lists.h"

namespace headscope {
namespace {

constexpr std::int64_t most_measurements = 1000;  // passes over the batches; more shares than dimensions are the same

}  // namespace

void validate(const SurgeryOptions& options) {
  if (options.checkpoint.empty())
    fail_input("no checkpoint is named; give RUN/checkpoints/step-000120, or RUN for its newest one");
  bys_of(options);
  shares_of(options);
  bits_of(options);
  if (!options.layers.empty()) parse_index_list(options.layers, "--layers");
  check_size("--repeats", options.repeats, 1, most_measurements);
}

std::vector<SurgeryBy> bys_of(const SurgeryOptions& options) {
  std::set<SurgeryBy> chosen;
  if (options.by.empty())
    for (std::size_t i = 0; i < EnumNames<SurgeryBy>::names.size(); ++i) chosen.insert(static_cast<SurgeryBy>(i));
  else
    for (const std::string& part : comma_separated(options.by)) {
      SurgeryBy by{};
      if (!parse_value(part, by))
        fail_input("--by {}: {}", options.by, unknown_name("operation", part, EnumNames<SurgeryBy>::names));
      chosen.insert(by);
    }
  return {chosen.begin(), chosen.end()};
}

std::vector<double> shares_of(const SurgeryOptions& options) {
  std::set<double> shares;
  for (const std::string& part : comma_separated(options.shares)) {
    double share = 0;
    if (!parse_value(part, share) || !(share >= 0 && share <= 1))
      fail_input("--shares {}: '{}' is no share; expected numbers from 0 to 1, comma-separated", options.shares, part);
    shares.insert(share);
  }
  check_size("the number of --shares", static_cast<std::int64_t>(shares.size()), 1, most_measurements);
  return {shares.begin(), shares.end()};
}

std::vector<std::int64_t> bits_of(const SurgeryOptions& options) {
  std::set<std::int64_t, std::greater<>> bits;
  for (const std::string& part : comma_separated(options.bits)) {
    std::int64_t number = 0;
    if (!parse_value(part, number) || number < 2 || number > 16)
      fail_input("--bits {}: '{}' is refused; expected whole numbers from 2 to 16, comma-separated", options.bits,
                 part);
    bits.insert(number);
  }
  return {bits.begin(), bits.end()};
}

std::vector<std::int64_t> layers_of(const SurgeryOptions& options, std::int64_t n_layers) {
  const std::string all = fmt::format("0-{}", n_layers - 1);
  const std::vector<std::int64_t> layers = parse_index_list(options.layers.empty() ? all : options.layers, "--layers");
  if (layers.back() >= n_layers)
    fail_input("--layers {}: the model has no layer {}; expected {}", options.layers, layers.back(), all);
  return layers;
}

}  // namespace headscope
