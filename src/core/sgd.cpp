// SGD with and without momentum.
#include <optional>

#include "src/core/groups.hpp"
#include "src/core/joins.hpp"
#include "src/core/optimizer_rule.hpp"
#include "src/core/segments.hpp"

namespace gradfuse {
namespace {

bool are_joined(const SgdTensor& tensor, std::size_t numel, const SgdTensor& next) {
  return is_joined(tensor.param, numel, next.param) && is_joined(tensor.momentum_buffer, numel, next.momentum_buffer) &&
         is_joined(tensor.model, next.model);
}

class SgdRule final : public OptimizerRule {
 public:
  explicit SgdRule(const SgdOptions& defaults) : groups_(defaults) {}
  Groups<SgdOptions>& groups() { return groups_; }

  void check_groups(const ParameterSet& params) override {
    groups_.grow(params);
    groups_.check();
    for (std::size_t group = 0; group < has_momentum_.size(); ++group) {
      const bool wants_momentum = groups_[group].momentum != 0.0;
      if (has_momentum_[group].value_or(wants_momentum) == wants_momentum) continue;
      throw Error(
          fmt::format("group {}: momentum was turned on or off after its tensors got their states; a schedule may "
                      "change its value only",
                      group));
    }
  }

  void grow(const ParameterSet& params) override {
    momentum_buffer_.grow(params, [&](std::size_t tensor) { return groups_[params[tensor].group].momentum != 0.0; });
    has_momentum_.resize(params.num_groups());
    for (std::size_t tensor = tensors_.size(); tensor < params.size(); ++tensor) {
      has_momentum_[params[tensor].group] = groups_[params[tensor].group].momentum != 0.0;
      tensors_.push_back({.param = static_cast<float*>(params[tensor].param.data),
                          .momentum_buffer = static_cast<float*>(momentum_buffer_[tensor]),
                          .model = params[tensor].model});
      joins_.push_back(tensor > 0 && params[tensor - 1].group == params[tensor].group &&
                       are_joined(tensors_[tensor - 1], params[tensor - 1].param.numel, tensors_[tensor]));
    }
  }

  void publish(const DeviceMemory& memory) override { groups_.publish(memory); }

  void step(const Backend& backend, const StepInputs& inputs) override {
    backend.sgd({.values = inputs.values,
                 .tensors = tensors_,
                 .joins = joins_,
                 .group_of = inputs.group_of,
                 .groups = groups_.publish(backend.memory()),
                 .control = &inputs.control,
                 .step = 0});
  }

  std::vector<OptimizerState> state(const ParameterSet& params, std::size_t tensor) const override {
    if (momentum_buffer_[tensor] == nullptr) return {};
    return {{"momentum_buffer", momentum_buffer_.view(params, tensor)}};
  }

 private:
  Groups<SgdOptions> groups_;
  Segments momentum_buffer_{DType::kFloat32};
  std::vector<SgdTensor> tensors_;
  std::vector<std::uint8_t> joins_;                // by tensor
  std::vector<std::optional<bool>> has_momentum_;  // by group: what its tensors have states for, once they have them
};

}  // namespace

Sgd::Sgd(const ParameterSet& params, const SgdOptions& defaults)
    : Optimizer(params, std::make_unique<SgdRule>(defaults)) {}
SgdOptions& Sgd::group(std::size_t index) { return static_cast<SgdRule&>(rule()).groups().at(params(), index); }

}  // namespace gradfuse
