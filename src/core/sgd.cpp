// SGD with and without momentum.
#include "src/core/groups.hpp"
#include "src/core/optimizer_rule.hpp"
#include "src/core/segments.hpp"

namespace gradfuse {
namespace {

class SgdRule final : public OptimizerRule {
 public:
  explicit SgdRule(const SgdOptions& defaults) : groups_(defaults) {}
  Groups<SgdOptions>& groups() { return groups_; }

  void check_groups(const ParameterSet& params) override {
    groups_.grow(params);
    groups_.check();
    for (std::size_t tensor = 0; tensor < tensors_.size(); ++tensor) {
      const std::size_t group = params[tensor].group;
      if ((groups_[group].momentum != 0.0) == (tensors_[tensor].momentum_buffer != nullptr)) continue;
      throw Error(
          fmt::format("group {}: momentum was turned on or off after its tensors got their states; a schedule "
                      "may change its value only",
                      group));
    }
  }

  void grow(const ParameterSet& params) override {
    momentum_buffer_.grow(params, [&](std::size_t tensor) { return groups_[params[tensor].group].momentum != 0.0; });
    coefs_.resize(params.size());
    for (std::size_t tensor = tensors_.size(); tensor < params.size(); ++tensor) {
      tensors_.push_back({.param = static_cast<float*>(params[tensor].param.data),
                          .momentum_buffer = static_cast<float*>(momentum_buffer_[tensor]),
                          .model = params[tensor].model});
    }
  }

  std::variant<AdamControl, SgdControl> control() override { return SgdControl{groups_.refresh(), coefs_}; }

  void step(const Backend& backend, const Values& values, std::span<const std::uint32_t> group_of,
            std::span<const std::int64_t> step_counts, const ControlBlock& control) const override {
    backend.sgd({values, tensors_, group_of, groups_.hyper(), coefs_, step_counts, control});
  }

  std::vector<OptimizerState> state(const ParameterSet& params, std::size_t tensor) const override {
    if (momentum_buffer_[tensor] == nullptr) return {};
    return {{"momentum_buffer", momentum_buffer_.view(params, tensor)}};
  }

 private:
  Groups<SgdOptions> groups_;
  Segments momentum_buffer_{DType::kFloat32};
  std::vector<SgdTensor> tensors_;
  std::vector<element::SgdCoefs<float>> coefs_;
};

}  // namespace

Sgd::Sgd(const ParameterSet& params, const SgdOptions& defaults)
    : Optimizer(params, std::make_unique<SgdRule>(defaults)) {}
SgdOptions& Sgd::group(std::size_t index) { return static_cast<SgdRule&>(rule()).groups().at(params(), index); }

}  // namespace gradfuse
