#pragma once
// The parameters of a model in a backend's memory: FP32 master, 16-bit copy, and gradients.
#include <gradfuse/nn/parameter.hpp>
#include <gradfuse/passes.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "src/backend/backend.hpp"
#include "src/backend/device_array.hpp"
#include "src/nn/parameter_layout.hpp"

namespace gradfuse::nn {

/// A pass between two arrays, made again and again.
class Cast {
 public:
  Cast(const TensorView& from, const TensorView& to, const std::shared_ptr<const Backend>& backend)
      : from_({from}, backend), to_({to}, backend) {}
  void operator()() const { cast(from_, to_); }

 private:
  ConstTensorList from_;
  TensorList to_;
};

/// Flat arrays, as the layout says.
class ParameterStore {
 public:
  /// `precision` is float32, float16 or bfloat16. Without gradients, the parameters' views of them are absent.
  ParameterStore(const ParameterLayout& layout, DType precision, std::shared_ptr<const Backend> backend,
                 std::span<const float> initial, bool has_gradients = true);

  std::span<const Parameter> parameters() const noexcept { return parameters_; }
  /// What forward and backward read: the master itself, or the 16-bit copy widened, as it is now.
  const float* float_params();
  /// Where backward puts the gradients.
  float* grads() { return grads_.data(); }
  /// Gives them the precision's dtype, where the parameters' views see them: to nearest even, overflow to inf.
  void finish_grads();

 private:
  bool is_half() const { return precision_ != DType::kFloat32; }
  const DeviceMemory& memory() const { return backend_->memory(); }
  TensorView view(void* data, const Segment& segment, DType dtype) const;
  void make_half(std::size_t numel);
  void list_parameters(const ParameterLayout& layout);

  DType precision_;
  bool has_gradients_;
  std::shared_ptr<const Backend> backend_;
  DeviceArray<float> master_, grads_;
  // Empty in float32:
  DeviceArray<std::uint16_t> model_, half_grads_;
  DeviceArray<float> panels_;  // the model copy, widened
  std::optional<Cast> widen_model_, narrow_grads_;
  std::vector<Parameter> parameters_;
};

}  // namespace gradfuse::nn
