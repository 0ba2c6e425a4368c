#include <fmt/format.h>

#include <algorithm>
#include <gradfuse/error.hpp>
#include <gradfuse/parameter_set.hpp>
#include <unordered_map>

#include "src/backend/backend.hpp"
#include "src/core/address_ranges.hpp"
#include "src/core/check_view.hpp"

namespace gradfuse {

struct ParameterSet::Lookup {
  std::unordered_map<std::string, std::size_t> by_name;
  AddressRanges memory;
};

ParameterSet::ParameterSet(std::shared_ptr<const Backend> backend)
    : backend_(std::move(backend)), lookup_(std::make_unique<Lookup>()) {
  if (backend_ == nullptr) throw Error("the backend is null; make one with cpu_backend()");
}
ParameterSet::ParameterSet(ParameterSet&&) noexcept = default;
ParameterSet& ParameterSet::operator=(ParameterSet&&) noexcept = default;
ParameterSet::~ParameterSet() = default;

std::size_t ParameterSet::add(Parameter parameter) {
  const std::size_t tensor = parameters_.size();
  if (parameter.name.empty()) throw Error(fmt::format("tensor {} has no name; every tensor needs one", tensor));
  const std::string label = tensor_label(tensor, parameter.name);
  if (lookup_->by_name.contains(parameter.name)) {
    throw Error(fmt::format("tensor {}: tensor {} has the same name", label, lookup_->by_name.at(parameter.name)));
  }
  const TensorView& param = parameter.param;
  const TensorView& model = parameter.model;
  check_view(param, *backend_, fmt::format("parameter {}", label));
  if (param.dtype != DType::kFloat32) {
    throw Error(fmt::format("parameter {} is {}; it must be the float32 master copy (a 16-bit copy goes into `model`)",
                            label, dtype_name(param.dtype)));
  }
  if (!ConstTensorView(model).is_absent()) {
    check_view(model, *backend_, fmt::format("model copy of parameter {}", label));
    if (element_size(model.dtype) != 2) {
      throw Error(fmt::format("model copy of parameter {} is {}; it must be float16 or bfloat16", label,
                              dtype_name(model.dtype)));
    }
    if (model.numel != param.numel) {
      throw Error(
          fmt::format("model copy of parameter {} has {} elements, the parameter {}", label, model.numel, param.numel));
    }
    if (overlap(model, param)) throw Error(fmt::format("model copy of parameter {} overlaps the parameter", label));
  }
  for (const TensorView& view : {param, model}) {
    if (const auto other = overlapping(view.data, view.num_bytes())) {
      throw Error(fmt::format("parameter {} shares memory with parameter {}; add a tied weight once", label,
                              tensor_label(*other, parameters_[*other].name)));
    }
  }
  constexpr std::size_t kMaxGroups = 1 << 20;
  if (parameter.group >= kMaxGroups) {
    throw Error(fmt::format("parameter {}: group {} is too large; groups count from 0", label, parameter.group));
  }

  parameters_.push_back(parameter);
  lookup_->by_name.emplace(parameter.name, tensor);
  lookup_->memory.insert(param.data, param.num_bytes(), tensor);
  lookup_->memory.insert(model.data, model.num_bytes(), tensor);
  numel_ += param.numel;
  num_groups_ = std::max(num_groups_, parameter.group + 1);
  return tensor;
}

std::optional<std::size_t> ParameterSet::find(std::string_view name) const {
  const auto found = lookup_->by_name.find(std::string(name));
  return found == lookup_->by_name.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::size_t> ParameterSet::overlapping(const void* data, std::size_t num_bytes) const {
  return lookup_->memory.overlapping(data, num_bytes);
}

}  // namespace gradfuse
