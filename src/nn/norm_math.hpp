#pragma once
// What layer and batch normalisation share: one is along rows, the other along columns.
#include <cmath>
#include <cstddef>
#include <span>

namespace gradfuse::nn {

enum class Mode { kTraining, kInference };

/// Added to the variance; PyTorch's default.
inline constexpr double kNormEps = 1e-5;

inline double reciprocal_deviation(double variance) { return 1.0 / std::sqrt(variance + kNormEps); }

/// The learned part of a normalisation, [cols] each: y = weight * normalised + bias.
template <class T>
struct NormParameters {
  std::span<const T> weight;
  std::span<const T> bias;
};

template <class T>
struct NormGradients {
  std::span<T> weight;
  std::span<T> bias;
};

/// Gradient of x where x_hat = (x - mean) / deviation, from the gradient of x_hat and two means over the group that was
/// normalised: of that gradient, and of its product with x_hat. Source: Ioffe & Szegedy 2015, section 3.
template <class T>
T norm_input_gradient(T x_hat, T x_hat_grad, T mean_grad, T mean_grad_x_hat, T reciprocal_deviation) {
  return reciprocal_deviation * (x_hat_grad - mean_grad - x_hat * mean_grad_x_hat);
}

/// Adds to the gradients of weight and bias, row after row. x_hat and y_grad are [rows, cols].
template <class T>
void norm_parameter_gradients(std::span<const T> x_hat, std::span<const T> y_grad, NormGradients<T> gradients) {
  const std::size_t cols = gradients.weight.size();
  for (std::size_t c = 0; c < cols; ++c) gradients.weight[c] = gradients.bias[c] = T(0);
  for (std::size_t i = 0; i < x_hat.size(); ++i) {
    gradients.weight[i % cols] += y_grad[i] * x_hat[i];
    gradients.bias[i % cols] += y_grad[i];
  }
}

}  // namespace gradfuse::nn
