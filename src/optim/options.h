// Settings of the optimizers.
#pragma once

namespace headscope {

struct MuonOptions {
  double momentum = 0.95;
};

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0.2;
};

struct OptimizerOptions {
  double muon_lr = 0.02;
  double adamw_lr = 0.005;
  MuonOptions muon;
  AdamWOptions adamw;
};

}  // namespace headscope
