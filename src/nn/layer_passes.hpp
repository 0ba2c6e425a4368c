#pragma once
// What the layers of a net do to memory, one pass each: the same formulas and the same order of sums on every machine,
// so all passes but the matrix product give the same bits.
#include <gradfuse/nn/mlp.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/nn/gemm.hpp"

namespace gradfuse::nn {

/// Of a row-major, dense matrix.
struct Extent {
  std::size_t rows = 0;
  std::size_t cols = 0;
  std::size_t numel() const noexcept { return rows * cols; }
};

/// The learned part of a normalisation, [cols] each: y = weight * normalised + bias.
template <class T>
struct NormParameters {
  const T* weight;
  const T* bias;
};
template <class T>
struct NormGradients {
  T* weight;
  T* bias;
  Destination destination = Destination::kOverwrite;
};
/// What layer normalisation keeps for the backward pass, beside x: [rows].
struct RowStatistics {
  double* mean;
  double* reciprocal_deviation;
};
/// Statistics are [cols].
template <class T>
struct BatchNormed {
  T* x_hat;                      // [rows, cols]
  double* mean;                  // what the last forward normalised by
  double* reciprocal_deviation;  //
  T* running_mean;
  T* running_var;  // the unbiased one, as in PyTorch
};

/// All pointers are to the memory of one backend, in whose order the passes are made. T: float; double on the CPU, to
/// check gradients. One thread at a time.
template <class T>
class LayerPasses {
 public:
  virtual ~LayerPasses() = default;

  virtual void gemm(const GemmSpec& spec, const T* a, const T* b, T* c) = 0;
  /// y = x + row [cols] in each row; without an x, which may be null, the row alone.
  virtual void add_row(const Extent& extent, const T* x, const T* row, T* y) = 0;
  /// sums [cols] of x's rows.
  virtual void column_sums(const Extent& extent, const T* x, T* sums, Destination destination) = 0;

  virtual void activate(Activation activation, std::size_t numel, const T* x, T* y) = 0;
  /// Turns the gradient of the outputs into that of the inputs `x`, in place.
  virtual void activation_gradient(Activation activation, std::size_t numel, const T* x, T* grad) = 0;

  /// Each row of x gets mean 0 and variance 1, then weight and bias.
  virtual void layer_norm(const Extent& extent, const NormParameters<T>& params, const T* x, T* y,
                          const RowStatistics& kept) = 0;
  /// The gradients of weight and bias, and that of x, which may be `y_grad` in place.
  virtual void layer_norm_gradient(const Extent& extent, const T* weight, const T* x, const RowStatistics& kept,
                                   const T* y_grad, T* x_grad, Destination destination,
                                   const NormGradients<T>& gradients) = 0;

  /// The same for columns, in place, by the statistics of the rows given (2 or more), which move the running ones by
  /// the share `momentum`.
  virtual void batch_norm(const Extent& extent, const NormParameters<T>& params, double momentum, T* x,
                          const BatchNormed<T>& kept) = 0;
  /// By the running statistics, which stay as they are.
  virtual void batch_norm_inference(const Extent& extent, const NormParameters<T>& params, T* x,
                                    const BatchNormed<T>& kept) = 0;
  virtual void batch_norm_gradient(const Extent& extent, const T* weight, const BatchNormed<T>& kept, T* grad,
                                   const NormGradients<T>& gradients) = 0;

  /// Overwrites logits [rows, classes] with the gradient of `row_scale` times the sum of the rows' losses, and
  /// `row_losses` with the loss of each in nats. Both are 0 for rows with a negative label, which are ignored.
  virtual void cross_entropy(const Extent& extent, const std::int32_t* labels, T row_scale, T* logits,
                             double* row_losses) = 0;
  /// Adds to *loss_sum the sum of [rows].
  virtual void add_losses(std::size_t rows, const double* row_losses, double* loss_sum) = 0;
};

/// For a backend's memory. `backend` must outlive it.
template <class T>
std::unique_ptr<LayerPasses<T>> make_layer_passes(const Backend& backend);
template <>
std::unique_ptr<LayerPasses<float>> make_layer_passes(const Backend& backend);
template <>
std::unique_ptr<LayerPasses<double>> make_layer_passes(const Backend& backend);

}  // namespace gradfuse::nn
