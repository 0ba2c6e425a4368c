// Element by element: activations, and the bias in every row. Limited by memory: 8 bytes an element forward, 12
// backward, 4 for the bias.
#include "kernels/cuda/grid.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/element/scalar.hpp"

namespace gradfuse::cuda {
namespace {

constexpr std::uint64_t kElementsPerWarp = 4 * kWarpSize;

/// Calls `body(i)` for the elements that are a multiple of four, of which it takes four, and `rest(i)` for the last
/// few.
template <class Body, class Rest>
__device__ inline void for_each_four(std::uint64_t numel, Body body, Rest rest) {
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t num_threads = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = 4 * thread; i + 4 <= numel; i += 4 * num_threads) body(i);
  const std::uint64_t i = numel / 4 * 4 + thread;
  if (i < numel) rest(i);
}
__device__ inline float4 load_four(const float* from) { return load(reinterpret_cast<const float4*>(from)); }
__device__ inline void store_four(float* to, const float4& four) { store(reinterpret_cast<float4*>(to), four); }

template <class Activation>
__global__ void __launch_bounds__(kBlockSize) activate_kernel(std::uint64_t numel, const float* x, float* y) {
  for_each_four(
      numel,
      [&](std::uint64_t i) {
        const float4 v = load_four(x + i);
        store_four(y + i, make_float4(Activation::value(v.x), Activation::value(v.y), Activation::value(v.z),
                                      Activation::value(v.w)));
      },
      [&](std::uint64_t i) { store(y + i, Activation::value(load(x + i))); });
}

template <class Activation>
__global__ void __launch_bounds__(kBlockSize)
    activation_gradient_kernel(std::uint64_t numel, const float* x, float* grad) {
  for_each_four(
      numel,
      [&](std::uint64_t i) {
        const float4 v = load_four(x + i), g = load_four(grad + i);
        store_four(grad + i, make_float4(g.x * Activation::derivative(v.x), g.y * Activation::derivative(v.y),
                                         g.z * Activation::derivative(v.z), g.w * Activation::derivative(v.w)));
      },
      [&](std::uint64_t i) { store(grad + i, load(grad + i) * Activation::derivative(load(x + i))); });
}

__global__ void __launch_bounds__(kBlockSize)
    add_row_kernel(MatrixSize size, const float* x, const float* row, float* y) {
  // Of the row, four elements may wrap around its end; it stays in the L1 cache.
  const auto at = [&](std::uint64_t i) { return load(row + i % size.cols); };
  for_each_four(
      size.rows * size.cols,
      [&](std::uint64_t i) {
        float4 sum = make_float4(at(i), at(i + 1), at(i + 2), at(i + 3));
        if (x != nullptr) {
          const float4 v = load_four(x + i);
          sum = make_float4(v.x + sum.x, v.y + sum.y, v.z + sum.z, v.w + sum.w);
        }
        store_four(y + i, sum);
      },
      [&](std::uint64_t i) { store(y + i, x == nullptr ? at(i) : load(x + i) + at(i)); });
}

std::uint64_t num_warps(std::uint64_t numel) { return (numel + kElementsPerWarp - 1) / kElementsPerWarp; }

}  // namespace

cudaError_t activate(const Target& target, ActivationKind kind, std::uint64_t numel, const float* x, float* y) {
  return kind == ActivationKind::kRelu ? launch_for_warps("activate_kernel<Relu>", target, num_warps(numel),
                                                          activate_kernel<element::Relu>, numel, x, y)
                                       : launch_for_warps("activate_kernel<Gelu>", target, num_warps(numel),
                                                          activate_kernel<element::Gelu>, numel, x, y);
}
cudaError_t activation_gradient(const Target& target, ActivationKind kind, std::uint64_t numel, const float* x,
                                float* grad) {
  return kind == ActivationKind::kRelu ? launch_for_warps("activation_gradient_kernel<Relu>", target, num_warps(numel),
                                                          activation_gradient_kernel<element::Relu>, numel, x, grad)
                                       : launch_for_warps("activation_gradient_kernel<Gelu>", target, num_warps(numel),
                                                          activation_gradient_kernel<element::Gelu>, numel, x, grad);
}
cudaError_t add_row(const Target& target, const MatrixSize& size, const float* x, const float* row, float* y) {
  return launch_for_warps("add_row_kernel", target, num_warps(size.rows * size.cols), add_row_kernel, size, x, row, y);
}

}  // namespace gradfuse::cuda
