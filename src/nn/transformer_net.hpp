#pragma once
// Forward and backward of the Transformer on flat parameter arrays: float to train, double to check the gradients of
// the very same code.
#include <cstdint>
#include <memory>
#include <span>

#include "src/backend/backend.hpp"
#include "src/backend/device_array.hpp"
#include "src/nn/gradient_targets.hpp"
#include "src/nn/layer_passes.hpp"
#include "src/nn/sequence_passes.hpp"
#include "src/nn/transformer_layout.hpp"

namespace gradfuse::nn {

template <class T>
class TransformerNet {
 public:
  TransformerNet(const TransformerOptions& options, const TransformerLayout& layout)
      : options_(options),
        layout_(layout),
        layers_(make_layer_passes<T>(*options.backend)),
        sequences_(make_sequence_passes<T>(*options.backend)) {
    loss_sum_.grow(memory(), 1);
  }

  /// Gradients of `row_scale` times the sum of the losses of the targets that count; adds those to `loss_sum`. `params`
  /// is flat, in the backend's memory.
  void backward(const TokenBatch& batch, const T* params, T row_scale, GradientTargets<T>& targets) {
    forward(batch, params);
    take_losses(batch, row_scale);
    T *stream_grad = at(plan_.stream_grad), *row_grad = at(plan_.row_grad);
    linear_gradient(layout_.head, kNoBias, {rows(), options_.vocabulary}, options_.width, at(plan_.normed),
                    at(plan_.logits), params, row_grad, targets);
    norm_gradient(layout_.norm, at(plan_.output), {statistic(plan_.mean), statistic(plan_.reciprocal)}, params,
                  row_grad, stream_grad, Destination::kOverwrite, targets);
    targets.layer_done();
    for (std::size_t i = options_.layers; i-- > 0;) {
      // Of the last segment everything is still there from the forward pass.
      const bool is_end_of_segment = (i + 1) % plan_.segment_length == 0;
      if (is_end_of_segment && i + 1 < options_.layers) forward_blocks(i + 1 - plan_.segment_length, i + 1, params);
      backward_block(i, params, targets);
      targets.layer_done();
    }
    const GradientTarget<T> tokens = targets.next(layout_.token_embedding);
    const GradientTarget<T> positions = targets.next(layout_.position_embedding);
    sequences_->embed_gradient(shape_, inputs_.data(), stream_grad, options_.vocabulary, tokens.data,
                               tokens.destination, options_.context, positions.data, positions.destination);
    targets.layer_done();
  }

  /// Logits [rows, vocabulary], valid until the next call.
  const T* forward(const TokenBatch& batch, const T* params) {
    reserve(batch);
    memory().upload(inputs_.data(), batch.inputs.data(), batch.inputs.size_bytes());
    sequences_->embed(shape_, inputs_.data(), params + offset(layout_.token_embedding),
                      params + offset(layout_.position_embedding), block_input(0));
    forward_blocks(0, options_.layers, params);
    norm(layout_.norm, at(plan_.output), at(plan_.normed), {statistic(plan_.mean), statistic(plan_.reciprocal)},
         params);
    layers_->gemm({.m = rows(), .n = options_.vocabulary, .k = options_.width, .b = Stored::kTransposed},
                  at(plan_.normed), params + offset(layout_.head), at(plan_.logits));
    return at(plan_.logits);
  }

  /// Turns the logits into their gradient, and adds the losses to the sum.
  void take_losses(const TokenBatch& batch, T row_scale) {
    memory().upload(targets_.data(), batch.targets.data(), batch.targets.size_bytes());
    layers_->cross_entropy({rows(), options_.vocabulary}, targets_.data(), row_scale, at(plan_.logits),
                           statistic(plan_.row_losses));
    layers_->add_losses(rows(), statistic(plan_.row_losses), loss_sum_.data());
  }

  /// In nats, since the last call.
  double take_loss_sum() {
    const double sum = loss_sum_.get(memory(), 0);
    loss_sum_.clear(memory());
    return sum;
  }
  void put_back_loss_sum(double sum) { loss_sum_.set(memory(), 0, sum); }

 private:
  static constexpr std::size_t kNoBias = ~std::size_t{0};

  const DeviceMemory& memory() const { return options_.backend->memory(); }
  std::size_t offset(std::size_t parameter) const { return layout_.segment(parameter).offset; }
  std::size_t rows() const { return shape_.rows(); }
  Extent stream() const { return {rows(), options_.width}; }
  T* at(std::size_t offset) const { return values_.data() + offset; }
  double* statistic(std::size_t offset) const { return statistics_.data() + offset; }
  const BlockActivations& activations(std::size_t block) const { return plan_.blocks[block % plan_.segment_length]; }
  /// Where a block reads, and the one before it writes.
  T* block_input(std::size_t block) const {
    if (block == options_.layers) return at(plan_.output);
    if (block % plan_.segment_length == 0) return at(plan_.segment_inputs[block / plan_.segment_length]);
    return at(activations(block).input);
  }
  AttentionArrays<T> attention_arrays(const BlockActivations& a) const {
    return {at(a.qkv), at(a.attended), at(a.log_sums)};
  }

  void reserve(const TokenBatch& batch) {
    const std::size_t sequences = batch.inputs.size() / batch.positions;
    if (sequences == shape_.sequences && batch.positions == shape_.positions) return;
    plan_ = plan_activations(options_, sequences, batch.positions);
    values_.grow(memory(), plan_.values.numel());
    statistics_.grow(memory(), plan_.statistics.numel());
    inputs_.grow(memory(), batch.inputs.size());
    targets_.grow(memory(), batch.inputs.size());
    shape_ = {sequences, batch.positions, options_.width, options_.heads};
  }

  void norm(const LinearParameters& of, const T* x, T* y, const RowStatistics& kept, const T* params) {
    layers_->layer_norm(stream(), {params + offset(of.weight), params + offset(of.bias)}, x, y, kept);
  }
  /// y = x W^T + bias, with the residual added where there is one.
  void linear(const LinearParameters& of, std::size_t outputs, std::size_t inputs, const T* x, const T* residual, T* y,
              const T* params) {
    layers_->add_row({rows(), outputs}, residual, params + offset(of.bias), y);
    layers_->gemm({.m = rows(), .n = outputs, .k = inputs, .b = Stored::kTransposed, .c = Destination::kAddTo}, x,
                  params + offset(of.weight), y);
  }

  void forward_blocks(std::size_t begin, std::size_t end, const T* params) {
    const std::size_t width = options_.width, wide = kMlpFactor * width;
    for (std::size_t i = begin; i < end; ++i) {
      const BlockParameters& block = layout_.blocks[i];
      const BlockActivations& a = activations(i);
      norm(block.norm1, block_input(i), at(a.normed1), {statistic(a.mean1), statistic(a.reciprocal1)}, params);
      linear(block.qkv, 3 * width, width, at(a.normed1), nullptr, at(a.qkv), params);
      sequences_->attention(shape_, attention_arrays(a));
      linear(block.attention_out, width, width, at(a.attended), block_input(i), at(a.middle), params);
      norm(block.norm2, at(a.middle), at(a.normed2), {statistic(a.mean2), statistic(a.reciprocal2)}, params);
      linear(block.up, wide, width, at(a.normed2), nullptr, at(a.up), params);
      layers_->activate(Activation::kGelu, rows() * wide, at(a.up), at(a.activated));
      linear(block.down, width, wide, at(a.activated), at(a.middle), block_input(i + 1), params);
    }
  }

  /// From the gradient of y [rows, outputs]: those of weight and bias, and of x [rows, inputs].
  void linear_gradient(std::size_t weight, std::size_t bias, const Extent& y, std::size_t inputs, const T* x,
                       const T* y_grad, const T* params, T* x_grad, GradientTargets<T>& targets) {
    const GradientTarget<T> to_weight = targets.next(weight);
    layers_->gemm({.m = y.cols, .n = inputs, .k = y.rows, .a = Stored::kTransposed, .c = to_weight.destination}, y_grad,
                  x, to_weight.data);
    if (bias != kNoBias) {
      const GradientTarget<T> to_bias = targets.next(bias);
      layers_->column_sums(y, y_grad, to_bias.data, to_bias.destination);
    }
    layers_->gemm({.m = y.rows, .n = inputs, .k = y.cols}, y_grad, params + offset(weight), x_grad);
  }
  void norm_gradient(const LinearParameters& of, const T* x, const RowStatistics& kept, const T* params,
                     const T* y_grad, T* x_grad, Destination destination, GradientTargets<T>& targets) {
    const GradientTarget<T> to_weight = targets.next(of.weight), to_bias = targets.next(of.bias);
    layers_->layer_norm_gradient(stream(), params + offset(of.weight), x, kept, y_grad, x_grad, destination,
                                 {to_weight.data, to_bias.data, to_weight.destination});
  }

  /// Turns the gradient of the block's output, in `stream_grad`, into that of its input.
  void backward_block(std::size_t i, const T* params, GradientTargets<T>& targets) {
    const std::size_t width = options_.width, wide = kMlpFactor * width;
    const BlockParameters& block = layout_.blocks[i];
    const BlockActivations& a = activations(i);
    T *stream_grad = at(plan_.stream_grad), *row_grad = at(plan_.row_grad), *qkv_grad = at(plan_.qkv_grad),
      *up_grad = at(plan_.up_grad);
    linear_gradient(block.down.weight, block.down.bias, stream(), wide, at(a.activated), stream_grad, params, up_grad,
                    targets);
    layers_->activation_gradient(Activation::kGelu, rows() * wide, at(a.up), up_grad);
    linear_gradient(block.up.weight, block.up.bias, {rows(), wide}, width, at(a.normed2), up_grad, params, row_grad,
                    targets);
    norm_gradient(block.norm2, at(a.middle), {statistic(a.mean2), statistic(a.reciprocal2)}, params, row_grad,
                  stream_grad, Destination::kAddTo, targets);
    linear_gradient(block.attention_out.weight, block.attention_out.bias, stream(), width, at(a.attended), stream_grad,
                    params, row_grad, targets);
    sequences_->attention_gradient(shape_, attention_arrays(a), row_grad, qkv_grad);
    linear_gradient(block.qkv.weight, block.qkv.bias, {rows(), 3 * width}, width, at(a.normed1), qkv_grad, params,
                    row_grad, targets);
    norm_gradient(block.norm1, block_input(i), {statistic(a.mean1), statistic(a.reciprocal1)}, params, row_grad,
                  stream_grad, Destination::kAddTo, targets);
  }

  TransformerOptions options_;
  const TransformerLayout& layout_;
  std::unique_ptr<LayerPasses<T>> layers_;
  std::unique_ptr<SequencePasses<T>> sequences_;
  SequenceShape shape_;
  TransformerActivations plan_;
  DeviceArray<T> values_;
  DeviceArray<double> statistics_;
  DeviceArray<std::int32_t> inputs_, targets_;
  DeviceArray<double> loss_sum_;  // one
};

}  // namespace gradfuse::nn
