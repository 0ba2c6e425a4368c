#include "tests/core/training.hpp"

#include <fmt/format.h>

#include <cstring>

namespace gradfuse::test {

HostTensor tensor_of(DType dtype, const std::vector<double>& values) {
  HostTensor tensor(dtype, values.size());
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set(i, values[i]);
  return tensor;
}
HostTensor copy_of(const ConstTensorView& view) {
  HostTensor tensor(view.dtype, view.numel);
  copy_tensor(tensor.view(), view);
  return tensor;
}
TensorView part_of(const TensorView& view, std::size_t first, std::size_t numel) {
  return {static_cast<std::byte*>(view.data) + first * element_size(view.dtype), numel, view.dtype, view.device};
}
std::vector<ConstTensorView> views_of(const std::vector<HostTensor>& tensors) {
  std::vector<ConstTensorView> views;
  for (const HostTensor& tensor : tensors) views.emplace_back(tensor.view());
  return views;
}
HostTensor moderate_tensor(Random& random, DType dtype, std::size_t numel) {
  HostTensor tensor(dtype, numel);
  for (std::size_t i = 0; i < numel; ++i) {
    const double magnitude = 0.5 + 1.5 * static_cast<double>(random() >> 11) * 0x1p-53;
    tensor.set(i, uniform(random, 0, 1) == 0 ? magnitude : -magnitude);
  }
  return tensor;
}

std::size_t OwnedSet::add(HostTensor master, std::optional<DType> copy, std::size_t group) {
  param.push_back(std::move(master));
  model.push_back(copy ? HostTensor(*copy, param.back().numel()) : HostTensor());
  return params.add({.name = fmt::format("t{}", param.size() - 1),
                     .param = param.back().view(),
                     .model = copy ? model.back().view() : TensorView{},
                     .group = group});
}
std::vector<HostTensor> OwnedSet::zero_grads(DType dtype) const {
  std::vector<HostTensor> grads;
  for (const HostTensor& tensor : param) grads.emplace_back(dtype, tensor.numel());
  return grads;
}

Snapshot snapshot(const OwnedSet& set, Optimizer& optimizer) {
  Snapshot all;
  for (std::size_t t = 0; t < set.param.size(); ++t) {
    all.names.push_back(fmt::format("parameter {}", t));
    all.tensors.push_back(set.param[t]);
    all.names.push_back(fmt::format("model copy {}", t));
    all.tensors.push_back(set.model[t].numel() == 0 ? HostTensor(DType::kFloat32, 0) : set.model[t]);
    for (const OptimizerState& state : optimizer.state(t)) {
      all.names.push_back(fmt::format("{} {}", state.name, t));
      all.tensors.push_back(copy_of(state.view));
    }
    all.step_counts.push_back(optimizer.step_count(t));
  }
  return all;
}
testing::AssertionResult same(const Snapshot& got, const Snapshot& expected) {
  if (got.names != expected.names) return testing::AssertionFailure() << "the states differ in number or name";
  for (std::size_t i = 0; i < got.tensors.size(); ++i) {
    const testing::AssertionResult equal = same_bits(got.tensors[i], expected.tensors[i]);
    if (!equal) return testing::AssertionFailure() << got.names[i] << ": " << equal.message();
  }
  if (got.step_counts != expected.step_counts) {
    return testing::AssertionFailure() << "step counts " << testing::PrintToString(got.step_counts) << ", expected "
                                       << testing::PrintToString(expected.step_counts);
  }
  return testing::AssertionSuccess();
}

const StepReport& step_on(Window& window, Optimizer& optimizer, const std::vector<HostTensor>& grads,
                          const StepOptions& options) {
  window.add(views_of(grads), {.is_last = true});
  optimizer.step(window, options);
  return optimizer.last_report();
}

}  // namespace gradfuse::test
