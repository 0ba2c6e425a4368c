#pragma once
// Batch normalisation: in training each column gets mean 0 and variance 1 over the micro-batch's rows.
#include "src/nn/norm_math.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace gradfuse::nn {

/// How far a large batch moves the running statistics; PyTorch's default.
inline constexpr double kBatchNormMomentum = 0.1;

/// 1 - (1 - momentum)^(1/N): N equal moves of this size go as far as one of `momentum`.
inline double micro_batch_momentum(double momentum, std::size_t micro_batches_per_window) {
  return -std::expm1(std::log1p(-momentum) / static_cast<double>(micro_batches_per_window));
}

/// Keeps the normalised rows between forward and backward. Statistics are summed in double; the running variance is
/// the unbiased one, as in PyTorch.
template <class T>
class BatchNorm {
 public:
  BatchNorm(std::size_t cols, std::size_t micro_batches_per_window)
      : momentum_(micro_batch_momentum(kBatchNormMomentum, micro_batches_per_window)),
        running_mean_(cols, T(0)),
        running_var_(cols, T(1)),
        mean_(cols),
        reciprocal_deviation_(cols),
        sums_(cols),
        product_sums_(cols) {}

  std::span<T> running_mean() { return running_mean_; }
  std::span<T> running_var() { return running_var_; }

  void reserve_rows(std::size_t rows) { x_hat_.resize(rows * mean_.size()); }

  /// x [rows, cols] is normalised in place: in training by the statistics of its own rows (2 or more), which also move
  /// the running ones; in inference by the running ones.
  void forward(Mode mode, std::span<T> x, NormParameters<T> parameters) {
    if (mode == Mode::kTraining) {
      take_statistics(x);
    } else {
      recall_statistics();
    }
    const std::size_t cols = mean_.size();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t c = i % cols;
      x_hat_[i] = static_cast<T>((x[i] - mean_[c]) * reciprocal_deviation_[c]);
      x[i] = parameters.weight[c] * x_hat_[i] + parameters.bias[c];
    }
  }

  /// After a forward in training: turns the gradient of y into that of x, in place.
  void backward(std::span<T> grad, std::span<const T> weight, NormGradients<T> gradients) {
    norm_parameter_gradients<T>(std::span(x_hat_).first(grad.size()), grad, gradients);
    const std::size_t cols = mean_.size();
    std::ranges::fill(sums_, 0.0);
    std::ranges::fill(product_sums_, 0.0);
    for (std::size_t i = 0; i < grad.size(); ++i) {
      const std::size_t c = i % cols;
      grad[i] *= weight[c];
      sums_[c] += grad[i];
      product_sums_[c] += static_cast<double>(grad[i]) * x_hat_[i];
    }
    const double rows = num_rows(grad);
    for (std::size_t i = 0; i < grad.size(); ++i) {
      const std::size_t c = i % cols;
      grad[i] = norm_input_gradient(x_hat_[i], grad[i], static_cast<T>(sums_[c] / rows),
                                    static_cast<T>(product_sums_[c] / rows), static_cast<T>(reciprocal_deviation_[c]));
    }
  }

 private:
  double num_rows(std::span<const T> x) const {
    const std::size_t rows = x.size() / mean_.size();
    return static_cast<double>(rows);
  }

  void take_statistics(std::span<const T> x) {
    const std::size_t cols = mean_.size();
    const double rows = num_rows(x);
    std::ranges::fill(sums_, 0.0);
    std::ranges::fill(product_sums_, 0.0);
    for (std::size_t i = 0; i < x.size(); ++i) sums_[i % cols] += x[i];
    for (std::size_t c = 0; c < cols; ++c) mean_[c] = sums_[c] / rows;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double deviation = x[i] - mean_[i % cols];
      product_sums_[i % cols] += deviation * deviation;
    }
    for (std::size_t c = 0; c < cols; ++c) {
      reciprocal_deviation_[c] = reciprocal_deviation(product_sums_[c] / rows);
      move_running(running_mean_[c], mean_[c]);
      move_running(running_var_[c], product_sums_[c] / (rows - 1));
    }
  }

  void recall_statistics() {
    for (std::size_t c = 0; c < mean_.size(); ++c) {
      mean_[c] = running_mean_[c];
      reciprocal_deviation_[c] = reciprocal_deviation(running_var_[c]);
    }
  }

  void move_running(T& running, double seen) const { running = static_cast<T>(running + momentum_ * (seen - running)); }

  double momentum_;                           // per micro-batch
  std::vector<T> running_mean_;               // [cols], as all but x_hat_
  std::vector<T> running_var_;                //
  std::vector<double> mean_;                  // what the last forward normalised by
  std::vector<double> reciprocal_deviation_;  //
  std::vector<double> sums_;                  // scratch
  std::vector<double> product_sums_;          //
  std::vector<T> x_hat_;                      // [rows, cols]
};

}  // namespace gradfuse::nn
