// What a model loses when its keys lose dimensions or bits (docs/surgery.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "figures/figure.h"
#include "formats/table.h"
#include "heads/surgery.h"

namespace headscope {

// The losses of one way to operate. The vectors have the same length; x ascends.
struct SurgeryCurve {
  std::string by = {};                           // gain, singular, random; tensor, channel
  std::string order = {};                        // smallest, largest, random; empty where nothing is removed
  Numbers x = {};                                // share removed, or bits
  Numbers loss = {}, lowest = {}, highest = {};  // mean, smallest and largest over the repeats
  std::size_t repeats = 0;                       // at most, of any x
};

// Of the table's rows with this method (remove or quantise), in order of their first row. Throws Error(Fault::input)
// naming the column and the value when by, order, share_removed or bits is none that surgery writes.
std::vector<SurgeryCurve> surgery_curves(const Table& rows, std::string_view method);

//   surgery_removal        validation loss against the share of dimensions removed; random orders with their range
//   surgery_quantisation   validation loss against bits
// `title` says whose keys; it may be empty.
std::vector<Figure> surgery_figures(const std::string& title, const SurgeryLosses& losses);

}  // namespace headscope
