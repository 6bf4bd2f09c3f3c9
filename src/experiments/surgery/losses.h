// What operations on the keys of a model cost.
#pragma once

#include "formats/table.h"

namespace headscope {

struct SurgeryLosses {
  double unmodified = 0;
  double uniform = 0;  // all keys of the chosen layers zero: every row of their attention is uniform
  Table rows;          // docs/surgery.md
};

}  // namespace headscope
