#pragma once
// Forward and backward of the MLP on flat parameter buffers: float to train, double to check the gradients of the very
// same code.
#include "src/nn/activation.hpp"
#include "src/nn/batch_norm.hpp"
#include "src/nn/gemm.hpp"
#include "src/nn/layer_norm.hpp"
#include "src/nn/linear.hpp"
#include "src/nn/mlp_layout.hpp"
#include "src/nn/softmax_cross_entropy.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace gradfuse::nn {

/// Leaves everything as it is.
struct NoNorm {
  void reserve_rows(std::size_t) {}
  template <class T>
  void forward(Mode, std::span<T>, NormParameters<T>) {}
  template <class T>
  void backward(std::span<T>, std::span<const T>, NormGradients<T>) {}
};

template <class T>
using AnyNorm = std::variant<NoNorm, LayerNorm<T>, BatchNorm<T>>;

template <class T>
AnyNorm<T> make_norm(const MlpOptions& options, std::size_t cols) {
  switch (options.norm) {
    case Norm::kNone: break;
    case Norm::kLayer: return LayerNorm<T>(cols);
    case Norm::kBatch: return BatchNorm<T>(cols, options.micro_batches_per_window);
  }
  return NoNorm{};
}

/// Rows of features [rows, inputs] with their labels [rows], already checked.
template <class T>
struct Batch {
  std::span<const T> features;
  std::span<const std::int32_t> labels;
};

/// Parameters and gradients are flat buffers in the order of `MlpLayout`; the net owns activations and running
/// statistics only, and grows them when a batch has more rows than any before.
template <class T>
class MlpNet {
 public:
  MlpNet(const MlpOptions& options, const MlpLayout& layout) : activation_(options.activation) {
    for (const LayerLayout& layer : layout.layers) {
      const bool is_hidden = layers_.size() + 1 < layout.layers.size();
      layers_.push_back({layer, is_hidden ? make_norm<T>(options, layer.outputs) : NoNorm{}, {}, {}});
    }
  }

  /// Overwrites `grads` with the gradient of `loss_scale * mean loss`; returns the mean loss in nats.
  double backward(const Batch<T>& batch, std::span<const T> params, T loss_scale, std::span<T> grads) {
    const std::span<T> logits = forward(Mode::kTraining, batch, params);
    const double loss = softmax_cross_entropy_backward(logits, batch.labels, loss_scale);
    std::span<T> grad = logits;  // of the current layer's output
    for (std::size_t i = layers_.size(); i-- > 0;) grad = backward_layer(i, grad, batch.features, params, grads);
    return loss;
  }

  /// Logits [rows, classes], valid until the next call.
  std::span<T> forward(Mode mode, const Batch<T>& batch, std::span<const T> params) {
    const std::size_t rows = batch.labels.size();
    reserve_rows(rows);
    std::span<const T> x = batch.features;
    for (Layer& layer : std::span(layers_).first(layers_.size() - 1)) {
      const std::span<T> y = forward_linear(layer, rows, x, params);
      const NormParameters<T> parameters{layer.layout.norm_weight.of(params), layer.layout.norm_bias.of(params)};
      std::visit([&](auto& norm) { norm.forward(mode, y, parameters); }, layer.norm);
      const std::span<T> out = std::span(layer.out).first(y.size());
      activation_forward<T>(activation_, y, out);
      x = out;
    }
    return forward_linear(layers_.back(), rows, x, params);
  }

  /// Null where the layer has no batch normalisation.
  BatchNorm<T>* batch_norm(std::size_t layer) { return std::get_if<BatchNorm<T>>(&layers_[layer].norm); }

 private:
  struct Layer {
    LayerLayout layout;
    AnyNorm<T> norm;
    std::vector<T> linear_out;  // [rows, outputs]; the norm works on it in place, the logits' gradient too
    std::vector<T> out;         // [rows, outputs] of the activation; backward reuses it for its gradient
  };

  void reserve_rows(std::size_t rows) {
    if (rows <= reserved_rows_) return;
    for (Layer& layer : layers_) {
      layer.linear_out.resize(rows * layer.layout.outputs);
      if (&layer != &layers_.back()) layer.out.resize(rows * layer.layout.outputs);
      std::visit([&](auto& norm) { norm.reserve_rows(rows); }, layer.norm);
    }
    reserved_rows_ = rows;
  }

  std::span<T> forward_linear(Layer& layer, std::size_t rows, std::span<const T> x, std::span<const T> params) {
    const LayerLayout& at = layer.layout;
    const std::span<T> y = std::span(layer.linear_out).first(rows * at.outputs);
    linear_forward<T>(gemm_, {rows, at.inputs, at.outputs}, x, at.weight.of(params), at.bias.of(params), y);
    return y;
  }

  /// `grad` is of layer i's output and is consumed; returns that of its input, which takes the input's own place: the
  /// derivatives need what went into the activation, not what came out.
  std::span<T> backward_layer(std::size_t i, std::span<T> grad, std::span<const T> features, std::span<const T> params,
                              std::span<T> grads) {
    Layer& layer = layers_[i];
    const LayerLayout& at = layer.layout;
    if (i + 1 < layers_.size()) {
      activation_backward<T>(activation_, std::span(layer.linear_out).first(grad.size()), grad);
      const NormGradients<T> gradients{at.norm_weight.of(grads), at.norm_bias.of(grads)};
      std::visit([&](auto& norm) { norm.backward(grad, at.norm_weight.of(params), gradients); }, layer.norm);
    }
    const LinearShape shape{grad.size() / at.outputs, at.inputs, at.outputs};
    const std::span<T> input = i == 0 ? std::span<T>{} : std::span(layers_[i - 1].out).first(shape.rows * at.inputs);
    linear_parameter_gradients<T>(gemm_, shape, i == 0 ? features : input, grad, at.weight.of(grads),
                                  at.bias.of(grads));
    if (i > 0) linear_input_gradient<T>(gemm_, shape, at.weight.of(params), grad, input);
    return input;
  }

  Activation activation_;
  Gemm gemm_;
  std::vector<Layer> layers_;
  std::size_t reserved_rows_ = 0;
};

}  // namespace gradfuse::nn
