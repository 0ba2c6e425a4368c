#pragma once
// Layer normalisation: each row gets mean 0 and variance 1 over its columns.
#include "src/nn/norm_math.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace gradfuse::nn {

/// Keeps the normalised rows between forward and backward. Statistics are summed in double.
template <class T>
class LayerNorm {
 public:
  explicit LayerNorm(std::size_t cols) : cols_(cols) {}

  void reserve_rows(std::size_t rows) {
    x_hat_.resize(rows * cols_);
    reciprocal_deviation_.resize(rows);
  }

  /// x [rows, cols] is normalised in place; both modes do the same.
  void forward(Mode, std::span<T> x, NormParameters<T> parameters) {
    for (std::size_t r = 0; r * cols_ < x.size(); ++r) {
      normalise_row(r, x.subspan(r * cols_, cols_), parameters);
    }
  }

  /// Turns the gradient of y into that of x, in place.
  void backward(std::span<T> grad, std::span<const T> weight, NormGradients<T> gradients) {
    norm_parameter_gradients<T>(std::span(x_hat_).first(grad.size()), grad, gradients);
    for (std::size_t r = 0; r * cols_ < grad.size(); ++r) {
      row_input_gradient(r, grad.subspan(r * cols_, cols_), weight);
    }
  }

 private:
  void normalise_row(std::size_t r, std::span<T> x, NormParameters<T> parameters) {
    double sum = 0, sum_squares = 0;
    for (const T value : x) sum += value;
    const double mean = sum / static_cast<double>(cols_);
    for (const T value : x) sum_squares += (value - mean) * (value - mean);
    const double rdev = reciprocal_deviation(sum_squares / static_cast<double>(cols_));
    reciprocal_deviation_[r] = static_cast<T>(rdev);
    for (std::size_t c = 0; c < cols_; ++c) {
      const T x_hat = static_cast<T>((x[c] - mean) * rdev);
      x_hat_[r * cols_ + c] = x_hat;
      x[c] = parameters.weight[c] * x_hat + parameters.bias[c];
    }
  }

  void row_input_gradient(std::size_t r, std::span<T> grad, std::span<const T> weight) {
    const std::span<const T> x_hat = std::span(x_hat_).subspan(r * cols_, cols_);
    double sum = 0, sum_x_hat = 0;
    for (std::size_t c = 0; c < cols_; ++c) {
      grad[c] *= weight[c];
      sum += grad[c];
      sum_x_hat += static_cast<double>(grad[c]) * x_hat[c];
    }
    const T mean_grad = static_cast<T>(sum / static_cast<double>(cols_));
    const T mean_grad_x_hat = static_cast<T>(sum_x_hat / static_cast<double>(cols_));
    for (std::size_t c = 0; c < cols_; ++c) {
      grad[c] = norm_input_gradient(x_hat[c], grad[c], mean_grad, mean_grad_x_hat, reciprocal_deviation_[r]);
    }
  }

  std::size_t cols_;
  std::vector<T> x_hat_;                 // [rows, cols]
  std::vector<T> reciprocal_deviation_;  // [rows]
};

}  // namespace gradfuse::nn
