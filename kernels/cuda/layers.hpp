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

}  // namespace gradfuse::cuda
