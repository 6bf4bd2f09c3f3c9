// Weight decay of a parameter. Kernels read it, too: nothing of torch is here.
#pragma once

namespace headscope {

// An update takes lr · rate · (value - target) from the parameter.
struct Decay {
  double rate = 0, target = 0;

  friend bool operator==(const Decay& a, const Decay& b) { return a.rate == b.rate && a.target == b.target; }
};

}  // namespace headscope
