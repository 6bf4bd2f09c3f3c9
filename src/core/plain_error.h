// What a library threw, as an error of ours.
#pragma once

#include <exception>

#include "core/error.h"

namespace headscope {

// An Error stays as it is. What the file system refuses for a reason of the path is Fault::input; all else is
// Fault::runtime.
Error plain_error(const std::exception& error);

}  // namespace headscope
