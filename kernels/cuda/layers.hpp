#pragma once
// The launchers of the kernels of a net's layers: as in passes.hpp, each makes one launch. Matrices are row-major and
// dense FP32; arrays that a launch reads or writes whole begin at a 16-byte boundary.
#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/passes.hpp"

namespace gradfuse::cuda {

struct MatrixSize {
  std::uint64_t rows, cols;
};

/// `x` null: the row alone.
cudaError_t add_row(const Target& target, const MatrixSize& size, const float* x, const float* row, float* y);
/// `adds`: to what is there.
cudaError_t column_sums(const Target& target, const MatrixSize& size, const float* x, float* sums, bool adds);

enum class ActivationKind { kRelu, kGelu };
cudaError_t activate(const Target& target, ActivationKind kind, std::uint64_t numel, const float* x, float* y);
cudaError_t activation_gradient(const Target& target, ActivationKind kind, std::uint64_t numel, const float* x,
                                float* grad);

struct LayerNormArgs {
  MatrixSize size;
  const float *weight, *bias, *x;
  float* y;
  double *mean, *reciprocal_deviation;  // by row
};
cudaError_t layer_norm(const Target& target, const LayerNormArgs& args);
struct LayerNormGradientArgs {
  MatrixSize size;
  const float *weight, *x;
  const double *mean, *reciprocal_deviation;  // by row
  const float* y_grad;
  float* x_grad;
  bool adds;  // to what is there
};
cudaError_t layer_norm_gradient(const Target& target, const LayerNormGradientArgs& args);

struct NormParameterGradients {
  float *weight, *bias;
  bool adds;
};
/// Column sums of y_grad times x normalised by its row's statistics, and of y_grad.
cudaError_t layer_norm_parameter_gradients(const Target& target, const LayerNormGradientArgs& args,
                                           const NormParameterGradients& to);
/// Column sums of y_grad times x_hat, and of y_grad.
cudaError_t batch_norm_parameter_gradients(const Target& target, const MatrixSize& size, const float* x_hat,
                                           const float* y_grad, const NormParameterGradients& to);

struct BatchNormArgs {
  MatrixSize size;
  const float *weight, *bias;
  float *x, *x_hat;
  double *mean, *reciprocal_deviation;
  float *running_mean, *running_var;
};
/// By the statistics of the rows, which move the running ones.
cudaError_t batch_norm(const Target& target, const BatchNormArgs& args, double momentum);
cudaError_t batch_norm_inference(const Target& target, const BatchNormArgs& args);
struct BatchNormGradientArgs {
  MatrixSize size;
  const float *weight, *x_hat;
  const double* reciprocal_deviation;
  float* grad;
};
cudaError_t batch_norm_gradient(const Target& target, const BatchNormGradientArgs& args);

/// Logits become the gradient of `row_scale` times the rows' losses; rows with a negative label are ignored.
cudaError_t cross_entropy(const Target& target, const MatrixSize& size, const std::int32_t* labels, float row_scale,
                          float* logits, double* row_losses);
/// *loss_sum += the sum of the rows' losses.
cudaError_t add_losses(const Target& target, std::uint64_t rows, const double* row_losses, double* loss_sum);

/// Sequences one after another, a row for each position.
struct SequenceSize {
  std::uint64_t sequences, positions, width, heads;
};

/// y [rows, width] = tokens of each id + positions.
cudaError_t embed(const Target& target, const SequenceSize& size, const std::int32_t* ids, const float* tokens,
                  const float* positions, float* y);
/// A table's gradient [table_rows, width]: each row's sum over where it was used, in order.
cudaError_t token_gradient(const Target& target, const SequenceSize& size, const std::int32_t* ids, const float* y_grad,
                           std::uint64_t vocabulary, float* token_grad, bool adds);
cudaError_t position_gradient(const Target& target, const SequenceSize& size, const float* y_grad,
                              std::uint64_t max_positions, float* position_grad, bool adds);

/// The widest head that attention takes: what fits into registers and shared memory.
inline constexpr std::uint64_t kMaxHeadDim = 128;
struct AttentionArgs {
  SequenceSize size;
  float scale;
  const float* qkv;  // [rows, 3 * width]
  float* out;        // [rows, width]
  float* log_sums;   // [sequences, heads, positions]
};
cudaError_t attention(const Target& target, const AttentionArgs& args);
/// qkv_grad from out_grad, in two launches: for queries, and for keys and values. `out_dots` [sequences, heads,
/// positions] is scratch.
cudaError_t attention_gradient(const Target& target, const AttentionArgs& args, const float* out_grad, float* out_dots,
                               float* qkv_grad);

}  // namespace gradfuse::cuda
