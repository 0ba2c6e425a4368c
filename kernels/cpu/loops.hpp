#pragma once
// What every CPU target provides: loops over one contiguous run of elements, at most a chunk. Which runs, on which
// thread and with which factors is decided above; a loop only loads, calls an element formula and stores.
#include <gradfuse/dtype.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/element/chunk.hpp"
#include "kernels/element/scalar.hpp"

namespace gradfuse::cpu {

/// Elements of the longest run: one chunk.
inline constexpr auto kMaxRun = static_cast<std::size_t>(kChunkSize);

/// Streaming stores go around the caches: for buffers that are written here and not read soon.
enum class Store { kCached, kStreaming };

/// The values at the end of a window: `acc`, or `weight * grad`, or the one added to the other. One may be null.
struct ValueRun {
  const void* acc;
  DType acc_dtype;  // float32 or float64
  const void* grad;
  DType grad_dtype;
  float weight;
};
struct AdamRun {
  float* param;
  float* exp_avg;
  float* exp_avg_sq;
  float* max_exp_avg_sq;  // null without amsgrad
};
struct SgdRun {
  float* param;
  float* momentum_buffer;  // null without momentum
};
template <class T>
using PerDType = std::array<T, kNumDTypes>;  // indexed by DType

/// One head of one sequence: rows [positions] of head_dim elements, `stride` or `out_stride` apart.
struct AttentionHead {
  std::size_t positions, head_dim, stride, out_stride;
  float scale;  // of the scores
  const float *query, *key, *value;
  float* out;
  float* log_sums;  // [positions]: of the exponentials of each query's scores
};
/// Laid out as what they are the gradients of.
struct AttentionHeadGradient {
  const float* out;
  float *query, *key, *value;
  float* out_dots;  // [positions] scratch
};
/// Elements of scratch that the loops need.
inline std::size_t attention_scratch_size(std::size_t positions, std::size_t head_dim) {
  return 2 * ((positions + 31) / 32 * 32) * head_dim;
}

/// Of the layers of a net, what is more than moving memory.
struct LayerLoops {
  std::array<void (*)(const float* x, float* y, std::size_t numel), 2> activate;  // [relu, gelu]
  /// Turns the gradient of the outputs into that of the inputs `x`.
  std::array<void (*)(const float* x, float* grad, std::size_t numel), 2> activation_gradient;
  /// Of exp(x - shift), in 32 lanes, folded in halves.
  float (*sum_of_exponentials)(const float* x, float shift, std::size_t numel);
  /// Each logit becomes `scale * exp(logit - log_sum)`.
  void (*softmax_gradient)(float log_sum, float scale, float* logits, std::size_t numel);
  /// Causal: a query sees the keys up to its own position.
  void (*attention)(const AttentionHead&, float* scratch);
  void (*attention_gradient)(const AttentionHead&, const AttentionHeadGradient&, float* scratch);
};

struct Loops {
  std::string_view target;

  // out = weight * grad; out = fma(weight, grad, acc). The result tells whether any `out` is not finite.
  PerDType<bool (*)(float weight, const void* grad, float* out, std::size_t numel, Store)> accumulate_first;
  PerDType<bool (*)(float weight, const void* grad, const float* acc, float* out, std::size_t numel)> accumulate_later;
  PerDType<bool (*)(float weight, const void* grad, double* out, std::size_t numel)> accumulate_first_f64;
  PerDType<bool (*)(float weight, const void* grad, const double* acc, double* out, std::size_t numel)>
      accumulate_later_f64;

  /// The canonical sum of one chunk: 256 FP64 lanes, folded in halves.
  double (*sum_of_squares)(const ValueRun&, std::size_t numel);
  /// The largest magnitude as FP32 bits: those of a NaN are above those of infinity.
  PerDType<std::uint32_t (*)(const void* x, std::size_t numel)> max_magnitude_bits;

  using Adam = void (*)(const element::AdamCoefs<float>&, const ValueRun&, const AdamRun&, std::size_t numel);
  std::array<std::array<Adam, 2>, 2> adam;  // [L2 decay][amsgrad]
  using Sgd = void (*)(const element::SgdCoefs<float>&, const ValueRun&, const SgdRun&, std::size_t numel);
  std::array<std::array<std::array<Sgd, 2>, 3>, 2> sgd;  // [L2 decay][Momentum][nesterov]

  /// out = factor * in, rounded to `out`'s type; the result tells whether any `out` is not finite. [in][out]; none for
  /// a float64 `out`.
  PerDType<PerDType<bool (*)(float factor, const void* in, void* out, std::size_t numel, Store)>> scale;
  /// out = a * x + b * y, as fma(a, x, b * y). [x]
  PerDType<void (*)(float a, const void* x, float b, const float* y, float* out, std::size_t numel)> axpby;
  void (*zero)(float* out, std::size_t numel, Store);

  LayerLoops layers;
};

/// The targets that this processor can run, the fastest first; the last is always "scalar".
std::span<const Loops* const> available_loops();

const Loops& scalar_loops();

}  // namespace gradfuse::cpu
