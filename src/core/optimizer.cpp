#include <fmt/format.h>

#include <cmath>
#include <gradfuse/error.hpp>
#include <gradfuse/optimizer.hpp>
#include <limits>

#include "src/backend/device_array.hpp"
#include "src/core/check_window.hpp"
#include "src/core/loss_scale_rule.hpp"
#include "src/core/optimizer_rule.hpp"
#include "src/core/window_state.hpp"

namespace gradfuse {

struct Optimizer::State {
  explicit State(const ParameterSet& params_)
      : params(&params_), readback(params_.backend()->memory().make_readback(sizeof(ControlBlock))) {
    control.grow(memory(), 1);
  }
  const DeviceMemory& memory() const { return params->backend()->memory(); }

  const ParameterSet* params;
  std::vector<std::uint32_t> group_of;    // by tensor
  DeviceArray<std::int64_t> step_counts;  // by tensor
  DeviceArray<double> chunk_sums, tensor_sums;
  DeviceArray<ControlBlock> control;  // one: the last step's
  std::unique_ptr<Readback> readback;
  std::size_t windows = 0;
  StepReport report;  // complete up to what the control block adds
};

namespace {

void check_window(const WindowState& window, const ParameterSet& params, const StepOptions& options) {
  if (window.params != &params) {
    throw Error("the window belongs to another ParameterSet than the optimizer; make both from the same one");
  }
  check_step(window.micro_batches, options);
  if (window.has_claims) {
    throw Error(
        "the last micro-batch has claimed accumulators or folded gradients but was not ended; call Window::add, if "
        "with "
        "no gradients");
  }
}

void complete(StepReport& report, const ControlBlock& control) {
  report.outcome = control.outcome;
  report.norm = control.norm;
  report.clip_coef = control.clip_coef;
  report.loss_scale = control.loss_scale;
  report.non_finite.reset();
  if (control.outcome != StepOutcome::kNonFinite) return;
  report.non_finite.emplace();
  if (control.nonfinite_tensor != kNoIndex) report.non_finite->tensor = control.nonfinite_tensor;
  if (control.nonfinite_micro_batch != kNoIndex) report.non_finite->micro_batch = control.nonfinite_micro_batch;
}

}  // namespace

Optimizer::Optimizer(const ParameterSet& params, std::unique_ptr<OptimizerRule> rule)
    : rule_(std::move(rule)), state_(std::make_unique<State>(params)) {
  rule_->check_groups(params);
}
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;
Optimizer::~Optimizer() = default;

void Optimizer::grow() {
  const ParameterSet& params = *state_->params;
  if (state_->group_of.size() == params.size()) return;
  rule_->grow(params);
  state_->step_counts.grow(state_->memory(), params.size());
  state_->tensor_sums.grow(state_->memory(), params.size());
  for (std::size_t tensor = state_->group_of.size(); tensor < params.size(); ++tensor) {
    state_->group_of.push_back(static_cast<std::uint32_t>(params[tensor].group));
  }
}

void Optimizer::step(Window& window, const StepOptions& options) {
  WindowState& from = *window.state_;
  State& state = *state_;
  check_window(from, *state.params, options);
  rule_->check_groups(*state.params);
  from.grow();
  grow();
  state.chunk_sums.grow(state.memory(), from.table->chunks().size());

  const std::shared_ptr<const Backend>& backend = state.params->backend();
  LossScaler* const scaler = options.scaler;
  const bool is_dynamic = scaler != nullptr && scaler->is_dynamic();
  const auto rule = is_dynamic ? loss_scale_rule(scaler->options()) : element::LossScaleRule{};
  const Values values = from.values();
  const Sums sums{state.chunk_sums.data(), state.tensor_sums.data()};
  const ControlPass control{.sums = sums,
                            .first_nonfinite = from.first_nonfinite.data(),
                            .is_claimed = from.is_claimed,
                            .last_micro_batch = static_cast<std::uint32_t>(from.micro_batches - 1),
                            .total_count = window.total_count(),
                            .max_norm = options.max_grad_norm.value_or(std::numeric_limits<double>::infinity()),
                            .loss_scale = scaler == nullptr ? nullptr : scaler->place_on(backend),
                            .loss_scale_rule = is_dynamic ? &rule : nullptr,
                            .step_counts = state.step_counts.data(),
                            .control = state.control.data()};
  backend->stats({values, sums});
  rule_->step(*backend, {values, state.group_of, control});
  state.readback->request(state.control.data());
  if (is_dynamic) scaler->was_updated();

  state.report = {.total_count = control.total_count, .micro_batches = from.micro_batches, .window = state.windows++};
  from.reset();
}

void Optimizer::publish_options() {
  rule_->check_groups(*state_->params);
  rule_->publish(state_->memory());
}

const StepReport& Optimizer::last_report() const {
  State& state = *state_;
  if (state.windows > 0) complete(state.report, *static_cast<const ControlBlock*>(state.readback->wait()));
  return state.report;
}
const ParameterSet& Optimizer::params() const noexcept { return *state_->params; }

void Optimizer::check_tensor(std::size_t tensor) const {
  if (tensor < state_->params->size()) return;
  throw Error(fmt::format("there is no tensor {}: the set has {}", tensor, state_->params->size()));
}

std::int64_t Optimizer::step_count(std::size_t tensor) const {
  check_tensor(tensor);
  return tensor < state_->step_counts.size() ? state_->step_counts.get(state_->memory(), tensor) : 0;
}

void Optimizer::set_step_count(std::size_t tensor, std::int64_t count) {
  check_tensor(tensor);
  if (count < 0) throw Error(fmt::format("step count of tensor {} cannot be {}", tensor, count));
  rule_->check_groups(*state_->params);
  grow();
  state_->step_counts.set(state_->memory(), tensor, count);
}

std::vector<OptimizerState> Optimizer::state(std::size_t tensor) {
  check_tensor(tensor);
  rule_->check_groups(*state_->params);
  grow();
  return rule_->state(*state_->params, tensor);
}

}  // namespace gradfuse
