// A model at the limits of its sizes, which no memory holds: what counts and estimates have to survive.
#pragma once

#include "settings/decoder_config.h"

namespace headscope::test {

inline DecoderConfig largest_model() {
  return {.vocabulary = 1 << 24,
          .d_model = 1 << 20,
          .layers = 4096,
          .heads = 256,
          .kv_heads = 256,
          .d_k = 65536,
          .d_ff = 1 << 24};
}

}  // namespace headscope::test
