// Random choices that sum up -log p of every choice: a text that is made from them has a known probability.
#pragma once

#include <cstddef>
#include <span>

#include "core/random.h"

namespace headscope {

class Choices {
 public:
  virtual ~Choices() = default;

  // An index, with probability proportional to its weight; weights are not negative and one of them is positive.
  std::size_t pick(std::span<const double> weights);
  std::size_t pick_uniform(std::size_t count);

  // -log of the probability of all choices so far, in nats.
  [[nodiscard]] double nats() const { return nats_; }

 protected:
  virtual std::size_t choose(std::span<const double> weights, double total) = 0;

 private:
  double nats_ = 0;
};

class RandomChoices final : public Choices {
 public:
  explicit RandomChoices(const NumpyGenerator& generator) : generator_(generator) {}

 private:
  std::size_t choose(std::span<const double> weights, double total) override;

  NumpyGenerator generator_;
};

}  // namespace headscope
