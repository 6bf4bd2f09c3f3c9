#include "dry_run.h"

#include "core/text.h"
#include "figures/theme.h"
#include "torch_half.h"

namespace headscope {
namespace {

// 10^9 bytes, as everywhere.
double gigabytes(double mebibytes) {
  return mebibytes * (1 << 20) / 1e9;
}

std::string fits_text(const TrainEstimate& each) {
  if (!each.gpu_memory_mb) return "";
  return fmt::format(": {} the GPU, which has {:.1f} GB",
                     each.memory_mb <= *each.gpu_memory_mb ? "fits" : "does not fit", gigabytes(*each.gpu_memory_mb));
}

}  // namespace

int dry_run(const Setup& setup, const std::string& theme, std::int64_t runs, const std::string& of,
            std::int64_t at_once, const CommonFlags& common) {
  theme_named(theme);
  const TrainEstimate each = torch_half().estimate(setup);
  const double seconds = static_cast<double>(runs) * each.seconds;
  if (common.json) {
    const nlohmann::ordered_json object = {{"preset", setup.preset},
                                           {"device", each.device},
                                           {"threads", each.threads},
                                           {"parameters", each.parameters.total},
                                           {"runs", runs},
                                           {"at_once", at_once},
                                           {"tokens", each.tokens},
                                           {"steps", each.steps},
                                           {"probes", each.probes},
                                           {"memory_mb", each.memory_mb},
                                           {"seconds", seconds}};
    fmt::print("{}", json_text(object));
    return 0;
  }
  fmt::print("  preset      {}: {} parameters ({} in the layers' matrices)\n", setup.preset,
             parameters_text(each.parameters.total), parameters_text(each.parameters.matrices));
  if (!of.empty()) fmt::print("  runs        {} ({})\n", with_separators(runs), of);
  fmt::print("  each run    {} in {} step{}, {} probe{}\n", tokens_text(each.tokens), with_separators(each.steps),
             each.steps == 1 ? "" : "s", with_separators(each.probes), each.probes == 1 ? "" : "s");
  for (const std::string& notice : notices(setup)) fmt::print("  note        {}\n", notice);
  if (at_once > 1)
    fmt::print("  memory      about {:.1f} GB: {} runs at once, {:.1f} GB each{}\n",
               static_cast<double>(at_once) * gigabytes(each.memory_mb), at_once, gigabytes(each.memory_mb),
               fits_text(each));
  else
    fmt::print("  memory      about {:.1f} GB{}\n", gigabytes(each.memory_mb), fits_text(each));
  fmt::print("  threads     {}\n", each.threads);
  fmt::print("  time        about {} in all on {} (from a matrix product timed just now{})\n", format_duration(seconds),
             each.device, at_once > 1 ? "; one run after another" : "");
  return 0;
}

}  // namespace headscope
