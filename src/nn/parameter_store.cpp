#include "src/nn/parameter_store.hpp"

#include <utility>

namespace gradfuse::nn {

ParameterStore::ParameterStore(const ParameterLayout& layout, DType precision, std::shared_ptr<const Backend> backend,
                               std::span<const float> initial, bool has_gradients)
    : precision_(precision), has_gradients_(has_gradients), backend_(std::move(backend)) {
  master_.grow(memory(), layout.numel);
  if (has_gradients_) grads_.grow(memory(), layout.numel);
  memory().upload(master_.data(), initial.data(), layout.numel * sizeof(float));
  if (is_half()) make_half(layout.numel);
  list_parameters(layout);
}

TensorView ParameterStore::view(void* data, const Segment& segment, DType dtype) const {
  return {static_cast<std::byte*>(data) + segment.offset * element_size(dtype), segment.numel, dtype,
          backend_->device()};
}

void ParameterStore::make_half(std::size_t numel) {
  model_.grow(memory(), numel);
  panels_.grow(memory(), numel);
  const Segment all{0, numel};
  const TensorView model = view(model_.data(), all, precision_);
  widen_model_.emplace(model, view(panels_.data(), all, DType::kFloat32), backend_);
  if (has_gradients_) {
    half_grads_.grow(memory(), numel);
    narrow_grads_.emplace(view(grads_.data(), all, DType::kFloat32), view(half_grads_.data(), all, precision_),
                          backend_);
  }
  Cast(view(master_.data(), all, DType::kFloat32), model, backend_)();
}

void ParameterStore::list_parameters(const ParameterLayout& layout) {
  for (const NamedSegment& named : layout.parameters) {
    Parameter parameter{named.name, named.shape, view(master_.data(), named.segment, DType::kFloat32), {}, {}};
    if (is_half()) parameter.model = view(model_.data(), named.segment, precision_);
    if (has_gradients_) {
      parameter.grad = is_half() ? view(half_grads_.data(), named.segment, precision_)
                                 : view(grads_.data(), named.segment, DType::kFloat32);
    }
    parameters_.push_back(std::move(parameter));
  }
}

const float* ParameterStore::float_params() {
  if (!is_half()) return master_.data();
  (*widen_model_)();
  return panels_.data();
}

void ParameterStore::finish_grads() {
  if (narrow_grads_) (*narrow_grads_)();
}

}  // namespace gradfuse::nn
