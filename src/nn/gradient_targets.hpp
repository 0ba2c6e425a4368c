#pragma once
// Where a model's backward pass puts the gradient of each parameter.
#include <gradfuse/parameter_set.hpp>
#include <gradfuse/window.hpp>

#include <cstddef>
#include <vector>

#include "src/nn/gemm.hpp"
#include "src/nn/parameter_layout.hpp"

namespace gradfuse::nn {

template <class T>
struct GradientTarget {
  T* data;
  Destination destination;
};

template <class T>
class GradientTargets {
 public:
  virtual ~GradientTargets() = default;
  /// For the next producer of a parameter's gradient; tied weights have several in a micro-batch.
  virtual GradientTarget<T> next(std::size_t parameter) = 0;
  /// All producers that asked since the last call are done.
  virtual void layer_done() {}
};

/// A flat array, as the layout says. For one micro-batch.
template <class T>
class FlatTargets final : public GradientTargets<T> {
 public:
  FlatTargets(const ParameterLayout& layout, T* grads)
      : layout_(layout), grads_(grads), is_written_(layout.parameters.size(), false) {}

  GradientTarget<T> next(std::size_t parameter) override {
    const Destination destination = is_written_[parameter] ? Destination::kAddTo : Destination::kOverwrite;
    is_written_[parameter] = true;
    return {grads_ + layout_.segment(parameter).offset, destination};
  }

 private:
  const ParameterLayout& layout_;
  T* grads_;
  std::vector<bool> is_written_;
};

/// The accumulator of a window.
class AccumulatorTargets final : public GradientTargets<float> {
 public:
  explicit AccumulatorTargets(Window& window) : window_(window) {}

  GradientTarget<float> next(std::size_t parameter) override {
    const AccumulatorSlot slot = window_.claim(parameter);
    return {static_cast<float*>(slot.view.data),
            slot.position == WindowPosition::kFirst ? Destination::kOverwrite : Destination::kAddTo};
  }

 private:
  Window& window_;
};

/// A scratch of one layer, folded into the window when the layer is done.
class StreamedTargets final : public GradientTargets<float> {
 public:
  StreamedTargets(const ParameterLayout& layout, float* scratch, Window& window)
      : layout_(layout), scratch_(scratch), window_(window) {}

  GradientTarget<float> next(std::size_t parameter) override {
    float* to = scratch_ + used_;
    const std::size_t numel = layout_.segment(parameter).numel;
    grads_.push_back({parameter, {to, numel, DType::kFloat32, window_.params().backend()->device()}});
    used_ += (numel + 15) / 16 * 16;
    return {to, Destination::kOverwrite};
  }
  void layer_done() override {
    window_.fold(grads_);
    grads_.clear();
    used_ = 0;
  }

 private:
  const ParameterLayout& layout_;
  float* scratch_;
  Window& window_;
  std::vector<Gradient> grads_;
  std::size_t used_ = 0;
};

}  // namespace gradfuse::nn
