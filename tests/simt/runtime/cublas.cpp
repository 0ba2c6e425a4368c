// The part of cuBLAS that the nets use: handles, and matrix products that add in the order of k.
#include <cublas_v2.h>

#include <cmath>
#include <set>
#include <simt/fault.hpp>

#include "runtime/machine.hpp"

struct cublasContext {
  int device = 0;
  cudaStream_t stream = nullptr;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
};

namespace {

using Index = std::int64_t;

std::set<cublasHandle_t> handles;

/// A column-major matrix in device memory.
struct Matrix {
  void* data;
  Index rows, cols, stride;
};

std::vector<float> values_of(const Matrix& matrix, const char* what) {
  std::vector<float> values(static_cast<std::size_t>(matrix.stride * matrix.cols));
  for (Index c = 0; c < matrix.cols; ++c) {  // what lies between the columns is nobody's business
    const auto offset = static_cast<std::size_t>(c * matrix.stride);
    simt::read_bytes(&values[offset], static_cast<const float*>(matrix.data) + offset,
                     static_cast<std::size_t>(matrix.rows) * sizeof(float), what);
  }
  return values;
}

struct Product {
  Matrix a, b, c;
  bool is_a_transposed, is_b_transposed;
  Index k;
  float alpha, beta;

  void operator()() const {
    const std::vector<float> a_values = values_of(a, "the product's A"), b_values = values_of(b, "the product's B");
    std::vector<float> c_values = beta == 0.0f ? std::vector<float>() : values_of(c, "the product's C");
    for (Index j = 0; j < c.cols; ++j) {
      std::vector<float> column(static_cast<std::size_t>(c.rows));
      for (Index i = 0; i < c.rows; ++i) {
        float sum = 0.0f;
        for (Index l = 0; l < k; ++l) {
          const Index at_a = is_a_transposed ? l + i * a.stride : i + l * a.stride;
          const Index at_b = is_b_transposed ? j + l * b.stride : l + j * b.stride;
          sum = std::fma(a_values[static_cast<std::size_t>(at_a)], b_values[static_cast<std::size_t>(at_b)], sum);
        }
        sum = alpha * sum;
        // With beta 0 what stands in C is not read: it may be anything.
        if (beta != 0.0f) sum = std::fma(beta, c_values[static_cast<std::size_t>(i + j * c.stride)], sum);
        column[static_cast<std::size_t>(i)] = sum;
      }
      simt::copy_bytes(static_cast<float*>(c.data) + j * c.stride, column.data(), column.size() * sizeof(float));
    }
  }
};

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  const std::lock_guard lock(simt::machine_mutex());
  *handle = new cublasContext{.device = simt::current_device()};
  handles.insert(*handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  const std::lock_guard lock(simt::machine_mutex());
  if (handles.erase(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  if (!handles.contains(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t num_bytes) {
  if (!handles.contains(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const simt::Allocation* allocation = simt::find_allocation(workspace);
  const bool is_good = allocation != nullptr && allocation->kind == simt::MemoryKind::kDevice &&
                       allocation->num_bytes >= num_bytes && reinterpret_cast<std::uintptr_t>(workspace) % 256 == 0;
  return is_good ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  if (!handles.contains(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->math_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op, int64_t m,
                               int64_t n, int64_t k, const void* alpha, const void* a, cudaDataType a_type,
                               int64_t a_stride, const void* b, cudaDataType b_type, int64_t b_stride, const void* beta,
                               void* c, cudaDataType c_type, int64_t c_stride, cublasComputeType_t compute,
                               cublasGemmAlgo_t) {
  const std::lock_guard lock(simt::machine_mutex());
  if (!handles.contains(handle) || handle->device != simt::current_device()) return CUBLAS_STATUS_NOT_INITIALIZED;
  const bool is_fp32 = a_type == CUDA_R_32F && b_type == CUDA_R_32F && c_type == CUDA_R_32F;
  if (!is_fp32 || compute != CUBLAS_COMPUTE_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool is_a_transposed = a_op != CUBLAS_OP_N, is_b_transposed = b_op != CUBLAS_OP_N;
  const Matrix a_matrix{const_cast<void*>(a), is_a_transposed ? k : m, is_a_transposed ? m : k, a_stride};
  const Matrix b_matrix{const_cast<void*>(b), is_b_transposed ? n : k, is_b_transposed ? k : n, b_stride};
  const Matrix c_matrix{c, m, n, c_stride};
  for (const Matrix& matrix : {a_matrix, b_matrix, c_matrix}) {
    if (matrix.rows <= 0 || matrix.cols <= 0 || matrix.stride < matrix.rows) return CUBLAS_STATUS_INVALID_VALUE;
  }
  CUstream_st* stream = simt::find_stream(handle->stream);
  if (stream == nullptr) return CUBLAS_STATUS_EXECUTION_FAILED;
  simt::queue(*stream, Product{a_matrix, b_matrix, c_matrix, is_a_transposed, is_b_transposed, k,
                               *static_cast<const float*>(alpha), *static_cast<const float*>(beta)});
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    default: return "CUBLAS_STATUS_UNKNOWN";
  }
}
const char* cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

}  // extern "C"
