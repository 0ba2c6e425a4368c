#include "src/workload/window_bytes.hpp"

namespace gradfuse::workload {
namespace {
constexpr std::size_t kAcc = 4, kModel = 2;
constexpr std::size_t kStates = 12;  // parameter, exp_avg, exp_avg_sq
}  // namespace

std::size_t WindowTraffic::fused_bytes() const noexcept {
  const std::size_t grad = element_size(grad_dtype);
  const std::size_t update = 2 * kStates + (has_model_copy ? kModel : 0);
  if (micro_batches == 1) return grad + (grad + update);
  const std::size_t first = grad + kAcc, middle = grad + 2 * kAcc, value = kAcc + grad;
  return first + (micro_batches - 2) * middle + value + (value + update);
}

std::size_t WindowTraffic::unfused_bytes() const noexcept {
  const std::size_t zero = kAcc, add = element_size(grad_dtype) + 2 * kAcc;
  const std::size_t unscale = 2 * kAcc, norm = kAcc, clip = 2 * kAcc;
  const std::size_t copy = has_model_copy ? sizeof(float) + kModel : 0;
  return zero + micro_batches * add + unscale + norm + clip + kAdamWBytes + copy;
}

}  // namespace gradfuse::workload
