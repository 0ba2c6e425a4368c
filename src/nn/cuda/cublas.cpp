#include "src/nn/cuda/cublas.hpp"

#include <fmt/format.h>

#include <gradfuse/error.hpp>
#include <string_view>

namespace gradfuse::nn {
namespace {

// What NVIDIA recommends for Hopper and newer; older devices need less.
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

void check_cublas(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(
      fmt::format("cuBLAS: {} failed: {} ({})", what, cublasGetStatusString(status), cublasGetStatusName(status)));
}

cublasHandle_t create(int device) {
  const DeviceGuard guard(device);
  cublasHandle_t handle = nullptr;
  check_cublas(cublasCreate(&handle), "creating a handle");
  return handle;
}

}  // namespace

Cublas::Cublas(const CudaMemory& memory)
    : device_(memory.device()), workspace_(memory.allocate(kWorkspaceBytes)), handle_(create(device_)) {
  check_cublas(cublasSetStream(handle_.get(), memory.stream()), "choosing the stream");
  check_cublas(cublasSetWorkspace(handle_.get(), workspace_.as<void>(), kWorkspaceBytes), "giving the workspace");
  check_cublas(cublasSetMathMode(
                   handle_.get(),
                   static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
               "choosing the arithmetic");
}

void Cublas::multiply(const GemmSpec& spec, const float* a, const float* b, float* c) const {
  check_spec(spec);
  const DeviceGuard guard(device_);
  // cuBLAS takes columns for rows: it is given C^T = B^T A^T.
  const auto m = static_cast<std::int64_t>(spec.m), n = static_cast<std::int64_t>(spec.n),
             k = static_cast<std::int64_t>(spec.k);
  const bool is_a_plain = spec.a == Stored::kPlain, is_b_plain = spec.b == Stored::kPlain;
  const float one = 1.0f, beta = spec.c == Destination::kAddTo ? 1.0f : 0.0f;
  check_cublas(
      cublasGemmEx_64(handle_.get(), is_b_plain ? CUBLAS_OP_N : CUBLAS_OP_T, is_a_plain ? CUBLAS_OP_N : CUBLAS_OP_T, n,
                      m, k, &one, b, CUDA_R_32F, is_b_plain ? n : k, a, CUDA_R_32F, is_a_plain ? k : m, &beta, c,
                      CUDA_R_32F, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
      fmt::format("a product of m={} n={} k={}", spec.m, spec.n, spec.k));
}

}  // namespace gradfuse::nn
