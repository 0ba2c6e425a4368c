#pragma once
// Forward and backward of the MLP on flat parameter arrays: float to train, double to check the gradients of the very
// same code.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "src/backend/backend.hpp"
#include "src/nn/layer_passes.hpp"
#include "src/nn/mlp_layout.hpp"
#include "src/nn/norm.hpp"

namespace gradfuse::nn {

/// Rows of features [rows, inputs] with their labels [rows], in host memory, already checked.
template <class T>
struct Batch {
  std::span<const T> features;
  std::span<const std::int32_t> labels;
};

/// Parameters and gradients are flat arrays of the backend's memory, in the order of `MlpLayout`; the net owns
/// activations and running statistics only, and grows them when a batch has more rows than any before.
template <class T>
class MlpNet {
 public:
  MlpNet(const MlpOptions& options, const MlpLayout& layout)
      : backend_(options.backend), passes_(make_layer_passes<T>(*backend_)), activation_(options.activation) {
    for (const LayerLayout& layer : layout.layers) {
      const bool is_hidden = layers_.size() + 1 < layout.layers.size();
      layers_.push_back(
          {layer, is_hidden ? make_norm<T>(memory(), options, layer.outputs) : NoNorm{}, {}, {}, nullptr});
    }
    loss_sum_.grow(memory(), 1);
  }

  /// Overwrites `grads` with the gradient of `loss_scale * mean loss`, and adds the losses of the rows to `loss_sum`.
  void backward(const Batch<T>& batch, const T* params, T loss_scale, T* grads) {
    const std::size_t rows = batch.labels.size();
    T* grad = forward(Mode::kTraining, batch, params);  // the logits, then the gradient of the current layer's output
    memory().upload(labels_.data(), batch.labels.data(), batch.labels.size_bytes());
    passes_->cross_entropy({rows, layers_.back().layout.outputs}, labels_.data(), loss_scale / static_cast<T>(rows),
                           grad, row_losses_.data());
    passes_->add_losses(rows, row_losses_.data(), loss_sum_.data());
    for (std::size_t i = layers_.size(); i-- > 0;) grad = backward_layer(i, rows, grad, params, grads);
  }

  /// In nats, of all rows since the last call. Waits for the device.
  double take_loss_sum() {
    const double sum = loss_sum_.get(memory(), 0);
    loss_sum_.clear(memory());
    return sum;
  }

  /// Logits [rows, classes] in the backend's memory, valid until the next call.
  T* forward(Mode mode, const Batch<T>& batch, const T* params) {
    const std::size_t rows = batch.labels.size();
    reserve_rows(rows);
    memory().upload(features_.data(), batch.features.data(), batch.features.size_bytes());
    const T* x = features_.data();
    for (Layer& layer : std::span(layers_).first(layers_.size() - 1)) {
      T* y = forward_linear(layer, rows, x, params);
      const Extent extent{rows, layer.layout.outputs};
      const NormParameters<T> parameters{params + layer.layout.norm_weight.offset,
                                         params + layer.layout.norm_bias.offset};
      layer.normed =
          std::visit([&](auto& norm) { return norm.forward(*passes_, mode, extent, parameters, y); }, layer.norm);
      passes_->activate(activation_, extent.numel(), layer.normed, layer.out.data());
      x = layer.out.data();
    }
    return forward_linear(layers_.back(), rows, x, params);
  }

  /// Null where the layer has no batch normalisation.
  BatchNorm<T>* batch_norm(std::size_t layer) { return std::get_if<BatchNorm<T>>(&layers_[layer].norm); }
  const DeviceMemory& memory() const { return backend_->memory(); }

 private:
  struct Layer {
    LayerLayout layout;
    AnyNorm<T> norm;
    DeviceArray<T> linear_out;  // [rows, outputs]; the logits' gradient takes its place, batch normalisation too
    DeviceArray<T> out;         // [rows, outputs] of the activation; backward reuses it for its gradient
    T* normed = nullptr;        // what went into the activation
  };

  void reserve_rows(std::size_t rows) {
    if (rows <= labels_.size()) return;
    for (Layer& layer : layers_) {
      layer.linear_out.grow(memory(), rows * layer.layout.outputs);
      if (&layer != &layers_.back()) layer.out.grow(memory(), rows * layer.layout.outputs);
      std::visit([&](auto& norm) { norm.reserve_rows(memory(), rows); }, layer.norm);
    }
    features_.grow(memory(), rows * layers_.front().layout.inputs);
    row_losses_.grow(memory(), rows);
    labels_.grow(memory(), rows);
  }

  /// y = x W^T + bias, with W [outputs, inputs] as in `torch.nn.Linear`. The bias goes into y first and the product is
  /// added to it: one pass less than adding it afterwards.
  T* forward_linear(Layer& layer, std::size_t rows, const T* x, const T* params) {
    const LayerLayout& at = layer.layout;
    T* y = layer.linear_out.data();
    passes_->add_row({rows, at.outputs}, nullptr, params + at.bias.offset, y);
    passes_->gemm({.m = rows, .n = at.outputs, .k = at.inputs, .b = Stored::kTransposed, .c = Destination::kAddTo}, x,
                  params + at.weight.offset, y);
    return y;
  }

  /// `grad` is of layer i's output and is consumed; returns that of its input, which takes the input's own place: the
  /// derivatives need what went into the activation, not what came out. Null for the features.
  T* backward_layer(std::size_t i, std::size_t rows, T* grad, const T* params, T* grads) {
    Layer& layer = layers_[i];
    const LayerLayout& at = layer.layout;
    const Extent extent{rows, at.outputs};
    if (i + 1 < layers_.size()) {
      passes_->activation_gradient(activation_, extent.numel(), layer.normed, grad);
      const NormGradients<T> gradients{grads + at.norm_weight.offset, grads + at.norm_bias.offset};
      std::visit(
          [&](auto& norm) {
            norm.backward(*passes_, extent, params + at.norm_weight.offset, layer.linear_out.data(), grad, gradients);
          },
          layer.norm);
    }
    T* input = i == 0 ? features_.data() : layers_[i - 1].out.data();
    passes_->gemm({.m = at.outputs, .n = at.inputs, .k = rows, .a = Stored::kTransposed}, grad, input,
                  grads + at.weight.offset);
    passes_->column_sums(extent, grad, grads + at.bias.offset, Destination::kOverwrite);
    if (i == 0) return nullptr;
    passes_->gemm({.m = rows, .n = at.inputs, .k = at.outputs}, grad, params + at.weight.offset, input);
    return input;
  }

  std::shared_ptr<const Backend> backend_;
  std::unique_ptr<LayerPasses<T>> passes_;
  Activation activation_;
  std::vector<Layer> layers_;
  DeviceArray<T> features_;           // [rows, inputs]
  DeviceArray<std::int32_t> labels_;  // [rows]
  DeviceArray<double> row_losses_;    // [rows]
  DeviceArray<double> loss_sum_;      // one
};

}  // namespace gradfuse::nn
