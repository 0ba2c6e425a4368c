#pragma once
// ReLU and GELU: a formula each for value and derivative, and the loops around them.
#include <gradfuse/nn/mlp.hpp>

#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>

namespace gradfuse::nn {

/// NaN passes, so that a broken value is seen in the loss.
template <class T>
T relu(T x) {
  return x < T(0) ? T(0) : x;
}

/// The derivative at 0 is 0, as in PyTorch.
template <class T>
T relu_derivative(T x) {
  return x <= T(0) ? T(0) : T(1);
}

/// The cumulative normal distribution; erfc keeps its digits where `1 + erf` cancels.
template <class T>
T normal_cdf(T x) {
  return T(0.5) * std::erfc(-x * (std::numbers::sqrt2_v<T> / 2));
}

template <class T>
T gelu(T x) {
  return x * normal_cdf(x);
}

template <class T>
T gelu_derivative(T x) {
  const T density = std::exp(T(-0.5) * x * x) * (std::numbers::inv_sqrtpi_v<T> * std::numbers::sqrt2_v<T> / 2);
  return normal_cdf(x) + x * density;
}

/// Calls `body(value, derivative)` with the two formulas of `activation`.
template <class T, class Body>
void with_activation(Activation activation, Body body) {
  switch (activation) {
    case Activation::kRelu: return body(relu<T>, relu_derivative<T>);
    case Activation::kGelu: return body(gelu<T>, gelu_derivative<T>);
  }
}

template <class T>
void activation_forward(Activation activation, std::span<const T> x, std::span<T> y) {
  with_activation<T>(activation, [&](auto value, auto) {
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = value(x[i]);
  });
}

/// Turns the gradient of the outputs into that of the inputs `x`, in place.
template <class T>
void activation_backward(Activation activation, std::span<const T> x, std::span<T> grad) {
  with_activation<T>(activation, [&](auto, auto derivative) {
    for (std::size_t i = 0; i < x.size(); ++i) grad[i] *= derivative(x[i]);
  });
}

}  // namespace gradfuse::nn
