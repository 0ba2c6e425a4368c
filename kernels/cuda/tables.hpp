#pragma once
// What the kernels read to know where the tensors are: tables in device memory, filled by the host. One entry a tensor.
#include <gradfuse/dtype.hpp>
#include <gradfuse/loss_scale.hpp>

#include <cstddef>
#include <cstdint>

#include "kernels/element/chunk.hpp"
#include "kernels/element/scalar.hpp"

namespace gradfuse::cuda {

/// The work table in device memory.
struct WorkList {
  const Chunk* chunks;
  const std::uint64_t* first_chunk;          // by tensor, and one past the last
  const std::uint32_t* multi_chunk_tensors;  // the tensors of more than one chunk
  std::uint64_t num_chunks;
  std::uint32_t num_tensors, num_multi_chunk_tensors;
};

/// The value of a tensor at the end of a window. Both null: it has none. One null: the value is the other alone.
struct ValueEntry {
  const void* acc;      // float32, or float64 as the launch says
  const void* pending;  // times the launch's weight
  DType pending_dtype;
  std::uint32_t is_claimed;  // a producer wrote `acc` unseen by any add
};

struct AddEntry {
  const void* grad;  // null: the tensor is not touched
  void* acc;
  DType grad_dtype;
  std::uint32_t is_first;  // assign; else add
};

struct AdamEntry {
  float* param;
  float* exp_avg;
  float* exp_avg_sq;
  float* max_exp_avg_sq;  // null without amsgrad
  void* model;            // null: no model copy
  DType model_dtype;      // float16 or bfloat16
  std::uint32_t group;
};
struct SgdEntry {
  float* param;
  float* momentum_buffer;  // null without momentum
  void* model;
  DType model_dtype;
  std::uint32_t group;
};

/// One tensor of a single-purpose pass.
struct InEntry {
  const void* data;
  DType dtype;
  std::uint32_t reserved = 0;  // in place of padding: tables are compared byte by byte
};
struct OutEntry {
  void* data;
  DType dtype;
  std::uint32_t reserved = 0;
};

}  // namespace gradfuse::cuda
