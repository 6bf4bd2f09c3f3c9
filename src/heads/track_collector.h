// The tracks of a run, put together while it goes on: what read_tracks would read from its tables at the end.
#pragma once

#include "heads/tracks.h"

namespace headscope {

// How many moments each source will have, and how many of them are kept: so many at equal distances, the first and the
// last among them. A run of any length fits into memory.
struct ExpectedMoments {
  std::size_t train = 0, probe = 0;
  std::size_t most = most_kept_moments;
};

class TrackCollector {
 public:
  explicit TrackCollector(const ExpectedMoments& expected);

  // The moments of a source come in order.
  void add(const Measured& when, const std::vector<HeadValues>& layers);
  void add_gains(const Moment& moment, const Gains& gains);

  [[nodiscard]] RunTracks tracks() const;
  [[nodiscard]] std::size_t most() const { return most_; }

 private:
  struct Kept {
    Moment moment;
    std::vector<HeadValues> layers;
  };
  struct Source {
    std::vector<std::size_t> places;  // of the moments to keep, ascending
    std::size_t seen = 0;
    std::vector<Kept> kept = {};
  };
  void keep_gains(const Moment& moment);

  std::size_t most_;
  Source train_, probe_;
  Moment last_gains_at_;  // a probe and a measurement of the training batch may share a moment and its gains
  Gains last_gains_;
  std::map<std::int64_t, std::pair<Moment, Gains>> gains_;  // by step
};

}  // namespace headscope
