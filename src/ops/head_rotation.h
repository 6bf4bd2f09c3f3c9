// From the packed product of a layer's queries, keys and values to what attention takes: QK-Norm and RoPE, one pass
// over memory each way on a GPU. For code that takes its gradients itself.
#pragma once

#include <ATen/ATen.h>

namespace headscope {

struct HeadRotation {
  std::int64_t heads = 0, kv_heads = 0;
  at::Tensor q_gain, k_gain;  // [d], or both undefined: no norm
  double eps = 0;
  at::Tensor table;       // of rotary_table (ops/attention.h): pairs are neighbours, and all dimensions turn
  bool repeated = false;  // keys and values once for every query head of their group (ops/attention.h)

  [[nodiscard]] std::int64_t copies() const { return repeated ? heads / kv_heads : 1; }
};

// Keys, values and their gradients have kv_heads·copies() heads, those of a group one behind the other.
struct RotatedHeads {
  at::Tensor q_bthd, k_bthd, v_bthd;
  at::Tensor plain_bthd;  // queries and keys before RoPE, [b, t, heads + kv_heads, d]; where they were asked for
};
// qkv_bthd: [b, t, heads + 2·kv_heads, d].
RotatedHeads rotate_heads(const at::Tensor& qkv_bthd, const HeadRotation& rotation, bool with_plain);

struct HeadRotationGradients {
  at::Tensor d_qkv_bthd;
  at::Tensor q_gain_parts, k_gain_parts;  // [parts, d], to be added up; undefined without gains
};
HeadRotationGradients rotate_heads_backward(const at::Tensor& qkv_bthd, const HeadRotation& rotation,
                                            const at::Tensor& dq_bthd, const at::Tensor& dk_bthd,
                                            const at::Tensor& dv_bthd);

}  // namespace headscope
