#pragma once
// The bytes that a window has to move per parameter: the table of the design page as a formula.
#include <gradfuse/dtype.hpp>

#include <cstddef>

namespace gradfuse::workload {

/// A window of AdamW with clipping, FP32 accumulator and states.
struct WindowTraffic {
  std::size_t micro_batches = 1;  ///< at least 1
  DType grad_dtype = DType::kFloat16;
  bool has_model_copy = true;  ///< of 16 bits

  /// The last micro-batch stays pending, to be read by stats and step; a window of one never touches the accumulator.
  std::size_t fused_bytes() const noexcept;
  std::size_t unfused_bytes() const noexcept;
};

/// One step from FP32 gradients: reads gradient, parameter and two moments, writes the last three.
inline constexpr std::size_t kAdamWBytes = 28;

}  // namespace gradfuse::workload
