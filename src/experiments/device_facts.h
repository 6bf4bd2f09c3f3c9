// What the manifest of a run says of the machine that computed it.
#pragma once

#include <nlohmann/json.hpp>

#include "ops/device.h"

namespace headscope {

// {device, torch, gpu}: its name, the version of torch, and {name, driver, cuda, cudnn} of a GPU, null on a CPU. A
// version that nobody tells is null, too.
nlohmann::ordered_json device_facts(const ComputeDevice& device);

}  // namespace headscope
