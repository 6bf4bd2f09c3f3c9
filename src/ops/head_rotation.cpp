#include "ops/head_rotation.h"

#include "ops/attention.h"
#include "ops/rms_norm.h"

#ifdef HEADSCOPE_CUDA
#include "ops/cuda/head_rotation.h"
#include "ops/cuda/inputs.h"
#endif

namespace headscope {
namespace {

std::vector<at::Tensor> split_heads(const at::Tensor& qkv_bthd, const HeadRotation& rotation) {
  return qkv_bthd.split_with_sizes({rotation.heads, rotation.kv_heads, rotation.kv_heads}, 2);
}

RotatedHeads composed_forward(const at::Tensor& qkv_bthd, const HeadRotation& rotation, bool with_plain) {
  const auto parts = split_heads(qkv_bthd, rotation);
  const auto normed = [&](const at::Tensor& x, const at::Tensor& gain) {
    return gain.defined() ? rms_norm(x, gain, rotation.eps) : x;
  };
  const at::Tensor q = normed(parts[0], rotation.q_gain), k = normed(parts[1], rotation.k_gain);
  const auto for_attention = [&](const at::Tensor& x) {
    return rotation.repeated ? x.repeat_interleave(rotation.copies(), 2) : x;
  };
  return {rotate(q, rotation.table), for_attention(rotate(k, rotation.table)), for_attention(parts[2]),
          with_plain ? at::cat({q, k}, 2) : at::Tensor()};
}

// The transpose of a rotation is the rotation by the conjugate.
HeadRotationGradients composed_backward(const at::Tensor& qkv_bthd, const HeadRotation& rotation,
                                        const at::Tensor& dq_bthd, const at::Tensor& dk_bthd,
                                        const at::Tensor& dv_bthd) {
  const auto parts = split_heads(qkv_bthd, rotation);
  const at::Tensor back = rotation.table.conj().resolve_conj();
  const auto of_groups = [&](const at::Tensor& x) {
    return rotation.repeated ? x.unflatten(2, {rotation.kv_heads, -1}).sum(3) : x;
  };
  NormGradients q{rotate(dq_bthd, back), {}}, k{rotate(of_groups(dk_bthd), back), {}};
  if (rotation.q_gain.defined()) {
    const auto through_norm = [&](const at::Tensor& x_bthd, const at::Tensor& gain, const at::Tensor& dy) {
      const at::Tensor x = x_bthd.contiguous();
      return rms_norm_backward(x, gain, rms_norm_forward(x, {}, gain, rotation.eps).inverse, dy, {});
    };
    q = through_norm(parts[0], rotation.q_gain, q.dx);
    k = through_norm(parts[1], rotation.k_gain, k.dx);
  }
  return {at::cat({q.dx, k.dx, of_groups(dv_bthd)}, 2), q.gain_parts, k.gain_parts};
}

#ifdef HEADSCOPE_CUDA
std::optional<cuda::HeadRotationShape> kernel_shape(const at::Tensor& qkv_bthd, const HeadRotation& rotation) {
  const auto is_plain = [](const at::Tensor& gain) {
    return !gain.defined() || (gain.scalar_type() == at::kFloat && gain.is_contiguous() && cuda::is_aligned(gain));
  };
  const std::int64_t d = qkv_bthd.size(3);
  if (!cuda::has_kernel_type(qkv_bthd) || d > 256 || !cuda::supports_head_rotation(static_cast<int>(d)) ||
      !qkv_bthd.is_contiguous() || !cuda::is_aligned(qkv_bthd) || !is_plain(rotation.q_gain) ||
      !is_plain(rotation.k_gain) || qkv_bthd.numel() / d >= std::int64_t{1} << 31 ||
      rotation.table.scalar_type() != at::kComplexFloat || !rotation.table.is_contiguous() ||
      rotation.table.size(1) * 2 != d || rotation.table.size(0) < qkv_bthd.size(1))
    return std::nullopt;
  return cuda::HeadRotationShape{.tokens = qkv_bthd.size(0) * qkv_bthd.size(1),
                                 .t = qkv_bthd.size(1),
                                 .heads = static_cast<int>(rotation.heads),
                                 .kv_heads = static_cast<int>(rotation.kv_heads),
                                 .copies = static_cast<int>(rotation.copies()),
                                 .d = static_cast<int>(d),
                                 .eps = static_cast<float>(rotation.eps),
                                 .type = cuda::element_type(qkv_bthd)};
}

const float* angles(const HeadRotation& rotation) {
  return at::view_as_real(rotation.table).const_data_ptr<float>();
}

std::optional<RotatedHeads> kernel_forward(const at::Tensor& qkv_bthd, const HeadRotation& rotation, bool with_plain) {
  const auto shape = kernel_shape(qkv_bthd, rotation);
  if (!shape) return std::nullopt;
  const auto of_heads = [&](std::int64_t heads) {
    return at::empty({qkv_bthd.size(0), qkv_bthd.size(1), heads, qkv_bthd.size(3)}, qkv_bthd.options());
  };
  const std::int64_t key_heads = rotation.kv_heads * rotation.copies();
  const RotatedHeads result{of_heads(rotation.heads), of_heads(key_heads),
                            rotation.repeated ? of_heads(key_heads) : split_heads(qkv_bthd, rotation)[2],
                            with_plain ? of_heads(rotation.heads + rotation.kv_heads) : at::Tensor()};
  cuda::rotate_heads(qkv_bthd.const_data_ptr(), cuda::float_pointer(rotation.q_gain),
                     cuda::float_pointer(rotation.k_gain), angles(rotation), result.q_bthd.mutable_data_ptr(),
                     result.k_bthd.mutable_data_ptr(), rotation.repeated ? result.v_bthd.mutable_data_ptr() : nullptr,
                     with_plain ? result.plain_bthd.mutable_data_ptr() : nullptr, *shape,
                     c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return result;
}

std::optional<HeadRotationGradients> kernel_backward(const at::Tensor& qkv_bthd, const HeadRotation& rotation,
                                                     const at::Tensor& dq_bthd, const at::Tensor& dk_bthd,
                                                     const at::Tensor& dv_bthd) {
  const auto shape = kernel_shape(qkv_bthd, rotation);
  if (!shape) return std::nullopt;
  const at::Tensor dq = cuda::kernel_input(dq_bthd), dk = cuda::kernel_input(dk_bthd), dv = cuda::kernel_input(dv_bthd);
  HeadRotationGradients result{at::empty_like(qkv_bthd), {}, {}};
  at::Tensor parts;
  if (rotation.q_gain.defined()) {
    parts = at::empty({2, cuda::head_rotation_partials(*shape), shape->d}, qkv_bthd.options().dtype(at::kFloat));
    result.q_gain_parts = parts[0];
    result.k_gain_parts = parts[1];
  }
  cuda::rotate_heads_backward(qkv_bthd.const_data_ptr(), cuda::float_pointer(rotation.q_gain),
                              cuda::float_pointer(rotation.k_gain), angles(rotation), dq.const_data_ptr(),
                              dk.const_data_ptr(), dv.const_data_ptr(), result.d_qkv_bthd.mutable_data_ptr(),
                              parts.defined() ? parts.mutable_data_ptr<float>() : nullptr, *shape,
                              c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return result;
}
#else
std::optional<RotatedHeads> kernel_forward(const at::Tensor&, const HeadRotation&, bool) {
  return std::nullopt;
}
std::optional<HeadRotationGradients> kernel_backward(const at::Tensor&, const HeadRotation&, const at::Tensor&,
                                                     const at::Tensor&, const at::Tensor&) {
  return std::nullopt;
}
#endif

}  // namespace

RotatedHeads rotate_heads(const at::Tensor& qkv_bthd, const HeadRotation& rotation, bool with_plain) {
  const auto fast = kernel_forward(qkv_bthd, rotation, with_plain);
  return fast ? *fast : composed_forward(qkv_bthd, rotation, with_plain);
}

HeadRotationGradients rotate_heads_backward(const at::Tensor& qkv_bthd, const HeadRotation& rotation,
                                            const at::Tensor& dq_bthd, const at::Tensor& dk_bthd,
                                            const at::Tensor& dv_bthd) {
  const auto fast = kernel_backward(qkv_bthd, rotation, dq_bthd, dk_bthd, dv_bthd);
  return fast ? *fast : composed_backward(qkv_bthd, rotation, dq_bthd, dk_bthd, dv_bthd);
}

}  // namespace headscope
