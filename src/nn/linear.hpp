#pragma once
// The linear map y = x W^T + bias, and its gradients.
#include "src/nn/gemm.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace gradfuse::nn {

/// x is [rows, inputs], y [rows, outputs], W [outputs, inputs] as in `torch.nn.Linear`.
struct LinearShape {
  std::size_t rows = 0;
  std::size_t inputs = 0;
  std::size_t outputs = 0;
};

/// The bias goes into y first and the product is added to it: one pass less than adding it afterwards.
template <class T>
void linear_forward(Gemm& gemm, const LinearShape& shape, std::span<const T> x, std::span<const T> weight,
                    std::span<const T> bias, std::span<T> y) {
  for (std::size_t r = 0; r < shape.rows; ++r) std::ranges::copy(bias, y.subspan(r * shape.outputs).begin());
  gemm.multiply(
      {.m = shape.rows, .n = shape.outputs, .k = shape.inputs, .b = Stored::kTransposed, .c = Destination::kAddTo}, x,
      weight, y);
}

/// Gradients of W and bias from the gradient of y: dW = dy^T x, dbias = sum of dy's rows, in their order.
template <class T>
void linear_parameter_gradients(Gemm& gemm, const LinearShape& shape, std::span<const T> x, std::span<const T> y_grad,
                                std::span<T> weight_grad, std::span<T> bias_grad) {
  gemm.multiply({.m = shape.outputs, .n = shape.inputs, .k = shape.rows, .a = Stored::kTransposed}, y_grad, x,
                weight_grad);
  std::ranges::fill(bias_grad, T(0));
  for (std::size_t i = 0; i < y_grad.size(); ++i) bias_grad[i % shape.outputs] += y_grad[i];
}

/// Gradient of x: dx = dy W.
template <class T>
void linear_input_gradient(Gemm& gemm, const LinearShape& shape, std::span<const T> weight, std::span<const T> y_grad,
                           std::span<T> x_grad) {
  gemm.multiply({.m = shape.rows, .n = shape.inputs, .k = shape.outputs}, y_grad, weight, x_grad);
}

}  // namespace gradfuse::nn
