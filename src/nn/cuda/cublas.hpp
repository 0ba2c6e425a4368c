#pragma once
// Owner of a cuBLAS handle: its stream, its workspace and its arithmetic.
#include <cublas_v2.h>

#include <memory>

#include "src/backend/cuda/cuda_memory.hpp"
#include "src/nn/gemm.hpp"

namespace gradfuse::nn {

/// Matrix products in the order of one stream. FP32 means FP32: no TF32, and no sums in less than FP32. With a
/// workspace of its own, the same product on the same device gives the same bits each time, also within a graph.
class Cublas {
 public:
  explicit Cublas(const CudaMemory& memory);

  /// Of operands in device memory, row-major and dense.
  void multiply(const GemmSpec& spec, const float* a, const float* b, float* c) const;

 private:
  struct Destroy {
    void operator()(cublasContext* handle) const noexcept { (void)cublasDestroy(handle); }
  };

  int device_;
  Buffer workspace_;
  std::unique_ptr<cublasContext, Destroy> handle_;
};

}  // namespace gradfuse::nn
