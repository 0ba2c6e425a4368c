// Embeddings, a warp a row. The gradient of a table's row is summed by its owner, in the order of the places where the
// row was used: no atomics, always the same bits. Limited by memory: 12 bytes an element forward.
#include "kernels/cuda/grid.hpp"
#include "kernels/cuda/lane_sum.hpp"
#include "kernels/cuda/layers.hpp"

namespace gradfuse::cuda {
namespace {

__global__ void __launch_bounds__(kBlockSize)
    embed_kernel(SequenceSize size, const std::int32_t* ids, const float* tokens, const float* positions, float* y) {
  for_each_matrix_row(size.sequences * size.positions, [&](std::uint64_t row) {
    const float* token = tokens + static_cast<std::uint64_t>(load(ids + row)) * size.width;
    const float* position = positions + row % size.positions * size.width;
    for (std::uint64_t c = threadIdx.x % kWarpSize; c < size.width; c += kWarpSize) {
      store(y + row * size.width + c, load(token + c) + load(position + c));
    }
  });
}

__device__ inline void put_row_sum(float sum, bool is_any, float* to, bool adds) {
  if (!adds) {
    store(to, sum);
  } else if (is_any) {
    store(to, load(to) + sum);
  }
}

__global__ void __launch_bounds__(kBlockSize)
    token_gradient_kernel(SequenceSize size, const std::int32_t* ids, const float* y_grad, std::uint64_t vocabulary,
                          float* token_grad, bool adds) {
  const std::uint64_t rows = size.sequences * size.positions;
  for_each_matrix_row(vocabulary, [&](std::uint64_t token) {
    for (std::uint64_t c = threadIdx.x % kWarpSize; c < size.width; c += kWarpSize) {
      float sum = 0.0f;
      bool is_any = false;
      for (std::uint64_t row = 0; row < rows; ++row) {
        if (static_cast<std::uint64_t>(load(ids + row)) != token) continue;
        sum = sum + load(y_grad + row * size.width + c);
        is_any = true;
      }
      put_row_sum(sum, is_any, token_grad + token * size.width + c, adds);
    }
  });
}

__global__ void __launch_bounds__(kBlockSize)
    position_gradient_kernel(SequenceSize size, const float* y_grad, std::uint64_t max_positions, float* position_grad,
                             bool adds) {
  for_each_matrix_row(max_positions, [&](std::uint64_t position) {
    const bool is_used = position < size.positions;
    for (std::uint64_t c = threadIdx.x % kWarpSize; c < size.width; c += kWarpSize) {
      float sum = 0.0f;
      for (std::uint64_t s = 0; is_used && s < size.sequences; ++s) {
        sum = sum + load(y_grad + (s * size.positions + position) * size.width + c);
      }
      put_row_sum(sum, is_used, position_grad + position * size.width + c, adds);
    }
  });
}

}  // namespace

cudaError_t embed(const Target& target, const SequenceSize& size, const std::int32_t* ids, const float* tokens,
                  const float* positions, float* y) {
  return launch_for_warps("embed_kernel", target, size.sequences * size.positions, embed_kernel, size, ids, tokens,
                          positions, y);
}
cudaError_t token_gradient(const Target& target, const SequenceSize& size, const std::int32_t* ids, const float* y_grad,
                           std::uint64_t vocabulary, float* token_grad, bool adds) {
  return launch_for_warps("token_gradient_kernel", target, vocabulary, token_gradient_kernel, size, ids, y_grad,
                          vocabulary, token_grad, adds);
}
cudaError_t position_gradient(const Target& target, const SequenceSize& size, const float* y_grad,
                              std::uint64_t max_positions, float* position_grad, bool adds) {
  return launch_for_warps("position_gradient_kernel", target, max_positions, position_gradient_kernel, size, y_grad,
                          max_positions, position_grad, adds);
}

}  // namespace gradfuse::cuda
