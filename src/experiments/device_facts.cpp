#include "experiments/device_facts.h"

#include <torch/version.h>

#include "core/config.h"
#include "ops/gpu.h"

namespace headscope {

nlohmann::ordered_json device_facts(const ComputeDevice& device) {
  nlohmann::ordered_json facts = {{"device", device.description}, {"torch", TORCH_VERSION}, {"gpu", nullptr}};
  if (const std::optional<GpuDescription> gpu = describe_gpu(device))
    facts["gpu"] = {{"name", gpu->name},
                    {"driver", json_value(gpu->driver)},
                    {"cuda", json_value(gpu->cuda)},
                    {"cudnn", json_value(gpu->cudnn)}};
  return facts;
}

}  // namespace headscope
