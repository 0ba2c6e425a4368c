// Softmax and cross-entropy, a warp a row. Limited by memory: 8 bytes a logit, once the row is in the caches.
#include "kernels/cuda/grid.hpp"
#include "kernels/cuda/lane_sum.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/element/scalar.hpp"

namespace gradfuse::cuda {
namespace {

__device__ inline float largest_of_row(const float* row, std::uint64_t cols) {
  float largest = load(row);
  for (std::uint64_t c = threadIdx.x % kWarpSize; c < cols; c += kWarpSize) {
    largest = element::max(load(row + c), largest);
  }
  GF_UNROLL
  for (int distance = kWarpSize / 2; distance >= 1; distance /= 2) {
    largest = element::max(__shfl_xor_sync(kWholeWarp, largest, distance), largest);
  }
  return largest;
}

__global__ void __launch_bounds__(kBlockSize) cross_entropy_kernel(MatrixSize size, const std::int32_t* labels,
                                                                   float row_scale, float* logits, double* row_losses) {
  for_each_matrix_row(size.rows, [&](std::uint64_t r) {
    float* row = logits + r * size.cols;
    const std::int32_t signed_label = load(labels + r);
    if (signed_label < 0) {  // ignored
      for (std::uint64_t c = threadIdx.x % kWarpSize; c < size.cols; c += kWarpSize) store(row + c, 0.0f);
      if (threadIdx.x % kWarpSize == 0) store(row_losses + r, 0.0);
      return;
    }
    const auto label = static_cast<std::uint64_t>(signed_label);
    const float at_label = load(row + label);
    const float largest = largest_of_row(row, size.cols);
    const float sum =
        lane_sum<float>(size.cols, [&](std::uint64_t c) { return element::exp(load(row + c) - largest); });
    const float log_sum = largest + element::log_from_1(sum);
    if (threadIdx.x % kWarpSize == 0) {
      store(row_losses + r, static_cast<double>(log_sum) - static_cast<double>(at_label));
    }
    __syncwarp();  // every thread has read the label's and the first logit
    for (std::uint64_t c = threadIdx.x % kWarpSize; c < size.cols; c += kWarpSize) {
      const float probability = element::exp(load(row + c) - log_sum);
      store(row + c, row_scale * (c == label ? probability - 1.0f : probability));
    }
  });
}

__global__ void __launch_bounds__(kWarpSize)
    add_losses_kernel(std::uint64_t rows, const double* row_losses, double* loss_sum) {
  const double sum = lane_sum<double>(rows, [&](std::uint64_t r) { return load(row_losses + r); });
  if (threadIdx.x == 0) store(loss_sum, load(loss_sum) + sum);
}

}  // namespace

cudaError_t cross_entropy(const Target& target, const MatrixSize& size, const std::int32_t* labels, float row_scale,
                          float* logits, double* row_losses) {
  return launch_for_warps("cross_entropy_kernel", target, size.rows, cross_entropy_kernel, size, labels, row_scale,
                          logits, row_losses);
}
cudaError_t add_losses(const Target& target, std::uint64_t rows, const double* row_losses, double* loss_sum) {
  return launch({"add_losses_kernel", 1, kWarpSize, target.stream}, add_losses_kernel, rows, row_losses, loss_sum);
}

}  // namespace gradfuse::cuda
