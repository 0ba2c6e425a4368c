#pragma once
// The normalisations that a hidden layer may have, as layers of a net: their memory, and their passes.
#include <gradfuse/nn/mlp.hpp>

#include <cmath>
#include <cstddef>
#include <variant>

#include "src/backend/device_array.hpp"
#include "src/nn/layer_passes.hpp"

namespace gradfuse::nn {

enum class Mode { kTraining, kInference };

/// Leaves everything as it is.
struct NoNorm {
  void reserve_rows(const DeviceMemory&, std::size_t) {}
  template <class T>
  T* forward(LayerPasses<T>&, Mode, const Extent&, const NormParameters<T>&, T* x) {
    return x;
  }
  template <class T>
  void backward(LayerPasses<T>&, const Extent&, const T*, const T*, T*, const NormGradients<T>&) {}
};

template <class T>
class LayerNorm {
 public:
  explicit LayerNorm(std::size_t cols) : cols_(cols) {}

  void reserve_rows(const DeviceMemory& memory, std::size_t rows) {
    y_.grow(memory, rows * cols_);
    mean_.grow(memory, rows);
    reciprocal_deviation_.grow(memory, rows);
  }
  /// Returns x [rows, cols] normalised; both modes do the same.
  T* forward(LayerPasses<T>& passes, Mode, const Extent& extent, const NormParameters<T>& params, T* x) {
    passes.layer_norm(extent, params, x, y_.data(), kept());
    return y_.data();
  }
  /// Turns the gradient of y into that of x, in place.
  void backward(LayerPasses<T>& passes, const Extent& extent, const T* weight, const T* x, T* grad,
                const NormGradients<T>& gradients) {
    passes.layer_norm_gradient(extent, weight, x, kept(), grad, grad, Destination::kOverwrite, gradients);
  }

 private:
  RowStatistics kept() const { return {mean_.data(), reciprocal_deviation_.data()}; }

  std::size_t cols_;
  DeviceArray<T> y_;                                 // [rows, cols]
  DeviceArray<double> mean_, reciprocal_deviation_;  // [rows]
};

/// How far a large batch moves the running statistics; PyTorch's default.
inline constexpr double kBatchNormMomentum = 0.1;

/// 1 - (1 - momentum)^(1/N): N equal moves of this size go as far as one of `momentum`.
inline double micro_batch_momentum(double momentum, std::size_t micro_batches_per_window) {
  return -std::expm1(std::log1p(-momentum) / static_cast<double>(micro_batches_per_window));
}

template <class T>
class BatchNorm {
 public:
  BatchNorm(const DeviceMemory& memory, std::size_t cols, std::size_t micro_batches_per_window)
      : momentum_(micro_batch_momentum(kBatchNormMomentum, micro_batches_per_window)) {
    running_mean_.grow(memory, cols);
    running_var_.grow(memory, cols);
    mean_.grow(memory, cols);
    reciprocal_deviation_.grow(memory, cols);
    const std::vector<T> ones(cols, T(1));
    memory.upload(running_var_.data(), ones.data(), cols * sizeof(T));
  }

  T* running_mean() { return running_mean_.data(); }
  T* running_var() { return running_var_.data(); }

  void reserve_rows(const DeviceMemory& memory, std::size_t rows) { x_hat_.grow(memory, rows * mean_.size()); }
  /// x [rows, cols] is normalised in place: in training by the statistics of its own rows (2 or more), which also move
  /// the running ones; in inference by the running ones.
  T* forward(LayerPasses<T>& passes, Mode mode, const Extent& extent, const NormParameters<T>& params, T* x) {
    if (mode == Mode::kTraining) {
      passes.batch_norm(extent, params, momentum_, x, kept());
    } else {
      passes.batch_norm_inference(extent, params, x, kept());
    }
    return x;
  }
  /// After a forward in training: turns the gradient of y into that of x, in place.
  void backward(LayerPasses<T>& passes, const Extent& extent, const T* weight, const T*, T* grad,
                const NormGradients<T>& gradients) {
    passes.batch_norm_gradient(extent, weight, kept(), grad, gradients);
  }

 private:
  BatchNormed<T> kept() const {
    return {x_hat_.data(), mean_.data(), reciprocal_deviation_.data(), running_mean_.data(), running_var_.data()};
  }

  double momentum_;                                  // per micro-batch
  DeviceArray<T> running_mean_, running_var_;        // [cols]
  DeviceArray<double> mean_, reciprocal_deviation_;  // [cols]
  DeviceArray<T> x_hat_;                             // [rows, cols]
};

template <class T>
using AnyNorm = std::variant<NoNorm, LayerNorm<T>, BatchNorm<T>>;

template <class T>
AnyNorm<T> make_norm(const DeviceMemory& memory, const MlpOptions& options, std::size_t cols) {
  switch (options.norm) {
    case Norm::kNone: break;
    case Norm::kLayer: return LayerNorm<T>(cols);
    case Norm::kBatch: return BatchNorm<T>(memory, cols, options.micro_batches_per_window);
  }
  return NoNorm{};
}

}  // namespace gradfuse::nn
