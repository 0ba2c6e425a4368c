// Adam and AdamW: one rule, apart from where the weight decay goes.
#include <optional>

#include "src/core/groups.hpp"
#include "src/core/joins.hpp"
#include "src/core/optimizer_rule.hpp"
#include "src/core/segments.hpp"

namespace gradfuse {
namespace {

bool are_joined(const AdamTensor& tensor, std::size_t numel, const AdamTensor& next) {
  return is_joined(tensor.param, numel, next.param) && is_joined(tensor.exp_avg, numel, next.exp_avg) &&
         is_joined(tensor.exp_avg_sq, numel, next.exp_avg_sq) &&
         is_joined(tensor.max_exp_avg_sq, numel, next.max_exp_avg_sq) && is_joined(tensor.model, next.model);
}

template <class Options>
class AdamRule final : public OptimizerRule {
 public:
  explicit AdamRule(const Options& defaults) : groups_(defaults) {}
  Groups<Options>& groups() { return groups_; }

  void check_groups(const ParameterSet& params) override {
    groups_.grow(params);
    groups_.check();
    for (std::size_t group = 0; group < amsgrad_.size(); ++group) {
      if (amsgrad_[group].value_or(groups_[group].amsgrad) == groups_[group].amsgrad) continue;
      throw Error(fmt::format(
          "group {}: amsgrad was changed after its tensors got their states; set it before the first step", group));
    }
  }

  void grow(const ParameterSet& params) override {
    exp_avg_.grow(params);
    exp_avg_sq_.grow(params);
    max_exp_avg_sq_.grow(params, [&](std::size_t tensor) { return groups_[params[tensor].group].amsgrad; });
    amsgrad_.resize(params.num_groups());
    for (std::size_t tensor = tensors_.size(); tensor < params.size(); ++tensor) {
      amsgrad_[params[tensor].group] = groups_[params[tensor].group].amsgrad;
      tensors_.push_back({.param = static_cast<float*>(params[tensor].param.data),
                          .exp_avg = static_cast<float*>(exp_avg_[tensor]),
                          .exp_avg_sq = static_cast<float*>(exp_avg_sq_[tensor]),
                          .max_exp_avg_sq = static_cast<float*>(max_exp_avg_sq_[tensor]),
                          .model = params[tensor].model});
      joins_.push_back(tensor > 0 && params[tensor - 1].group == params[tensor].group &&
                       are_joined(tensors_[tensor - 1], params[tensor - 1].param.numel, tensors_[tensor]));
    }
  }

  void publish(const DeviceMemory& memory) override { groups_.publish(memory); }

  void step(const Backend& backend, const StepInputs& inputs) override {
    backend.adam({.values = inputs.values,
                  .tensors = tensors_,
                  .joins = joins_,
                  .group_of = inputs.group_of,
                  .groups = groups_.publish(backend.memory()),
                  .control = &inputs.control,
                  .step = 0});
  }

  std::vector<OptimizerState> state(const ParameterSet& params, std::size_t tensor) const override {
    std::vector<OptimizerState> states{{"exp_avg", exp_avg_.view(params, tensor)},
                                       {"exp_avg_sq", exp_avg_sq_.view(params, tensor)}};
    if (max_exp_avg_sq_[tensor] != nullptr) states.push_back({"max_exp_avg_sq", max_exp_avg_sq_.view(params, tensor)});
    return states;
  }

 private:
  Groups<Options> groups_;
  Segments exp_avg_{DType::kFloat32}, exp_avg_sq_{DType::kFloat32}, max_exp_avg_sq_{DType::kFloat32};
  std::vector<AdamTensor> tensors_;
  std::vector<std::uint8_t> joins_;           // by tensor
  std::vector<std::optional<bool>> amsgrad_;  // by group: what its tensors have states for, once they have them
};

}  // namespace

Adam::Adam(const ParameterSet& params, const AdamOptions& defaults)
    : Optimizer(params, std::make_unique<AdamRule<AdamOptions>>(defaults)) {}
AdamOptions& Adam::group(std::size_t index) {
  return static_cast<AdamRule<AdamOptions>&>(rule()).groups().at(params(), index);
}

AdamW::AdamW(const ParameterSet& params, const AdamWOptions& defaults)
    : Optimizer(params, std::make_unique<AdamRule<AdamWOptions>>(defaults)) {}
AdamWOptions& AdamW::group(std::size_t index) {
  return static_cast<AdamRule<AdamWOptions>&>(rule()).groups().at(params(), index);
}

}  // namespace gradfuse
