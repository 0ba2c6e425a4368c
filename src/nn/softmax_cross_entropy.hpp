#pragma once
// Softmax and cross-entropy against one label a row: the loss, its gradient, and whether the label wins.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gradfuse::nn {

/// log(sum(exp(logits))), without overflow.
template <class T>
T log_sum_exp(std::span<const T> logits) {
  const T max = *std::ranges::max_element(logits);
  T sum = 0;
  for (const T logit : logits) sum += std::exp(logit - max);
  return max + std::log(sum);
}

/// Whether the label has the largest logit, of equals the first. Against a NaN nothing wins.
template <class T>
bool label_wins(std::span<const T> logits, std::size_t label) {
  for (std::size_t c = 0; c < logits.size(); ++c) {
    const bool beaten = c < label ? logits[c] < logits[label] : logits[c] <= logits[label];
    if (!beaten) return false;
  }
  return true;
}

/// Overwrites logits [rows, classes] with the gradient of `loss_scale * mean loss` and returns the mean loss in nats.
template <class T>
double softmax_cross_entropy_backward(std::span<T> logits, std::span<const std::int32_t> labels, T loss_scale) {
  const std::size_t rows = labels.size(), classes = logits.size() / rows;
  const T row_scale = loss_scale / static_cast<T>(rows);
  double loss_sum = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::span<T> row = logits.subspan(r * classes, classes);
    const auto label = static_cast<std::size_t>(labels[r]);
    const T log_sum = log_sum_exp<T>(row);
    loss_sum += static_cast<double>(log_sum) - static_cast<double>(row[label]);
    for (std::size_t c = 0; c < classes; ++c) {
      const T probability = std::exp(row[c] - log_sum);
      row[c] = row_scale * (c == label ? probability - T(1) : probability);
    }
  }
  return loss_sum / static_cast<double>(rows);
}

}  // namespace gradfuse::nn
