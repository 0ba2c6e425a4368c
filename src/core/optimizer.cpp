#include <fmt/format.h>

#include <cmath>
#include <gradfuse/error.hpp>
#include <gradfuse/optimizer.hpp>
#include <limits>

#include "src/core/check_window.hpp"
#include "src/core/optimizer_rule.hpp"
#include "src/core/window_state.hpp"

namespace gradfuse {

struct Optimizer::State {
  const ParameterSet* params;
  std::vector<std::uint32_t> group_of;  // by tensor, as are the next two
  std::vector<std::int64_t> step_counts;
  std::vector<double> tensor_sums;
  std::vector<double> chunk_sums;  // scratch of the stats pass
  StepReport report;
  std::size_t windows = 0;
};

namespace {

void check_window(const WindowState& window, const ParameterSet& params, const StepOptions& options) {
  if (window.params != &params) {
    throw Error("the window belongs to another ParameterSet than the optimizer; make both from the same one");
  }
  check_step(window.micro_batches, options);
  if (window.has_claims) {
    throw Error(
        "the last micro-batch has claimed accumulators but was not ended; call Window::add, if with no gradients");
  }
}

StepReport make_report(const ControlBlock& control, const ControlPass& pass, const WindowState& window) {
  StepReport report{.outcome = control.outcome,
                    .norm = control.norm,
                    .clip_coef = control.clip_coef,
                    .loss_scale = static_cast<float>(pass.loss_scale),
                    .total_count = pass.total_count};
  if (control.outcome == StepOutcome::kNonFinite) {
    report.non_finite.emplace();
    if (control.nonfinite_tensor != kNoIndex) report.non_finite->tensor = control.nonfinite_tensor;
    // What a producer wrote by itself nobody looked at in between.
    const bool is_claimed = report.non_finite->tensor && window.is_claimed[*report.non_finite->tensor] != 0;
    if (control.nonfinite_micro_batch != kNoIndex && !is_claimed)
      report.non_finite->micro_batch = control.nonfinite_micro_batch;
  }
  return report;
}

}  // namespace

Optimizer::Optimizer(const ParameterSet& params, std::unique_ptr<OptimizerRule> rule)
    : rule_(std::move(rule)), state_(std::make_unique<State>()) {
  state_->params = &params;
  rule_->check_groups(params);
}
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;
Optimizer::~Optimizer() = default;

void Optimizer::grow() {
  const ParameterSet& params = *state_->params;
  if (state_->step_counts.size() == params.size()) return;
  rule_->grow(params);
  for (std::size_t tensor = state_->step_counts.size(); tensor < params.size(); ++tensor) {
    state_->group_of.push_back(static_cast<std::uint32_t>(params[tensor].group));
    state_->step_counts.push_back(0);
  }
  state_->tensor_sums.resize(params.size());
}

void Optimizer::step(Window& window, const StepOptions& options) {
  WindowState& from = *window.state_;
  State& state = *state_;
  check_window(from, *state.params, options);
  rule_->check_groups(*state.params);
  from.grow();
  grow();
  state.chunk_sums.resize(from.table->chunks().size());

  const Backend& backend = *state.params->backend();
  const Values values = from.values();
  backend.stats({values, state.chunk_sums, state.tensor_sums});
  ControlBlock control;
  const ControlPass pass{.values = values,
                         .tensor_sums = state.tensor_sums,
                         .first_nonfinite = from.first_nonfinite,
                         .last_micro_batch = static_cast<std::uint32_t>(from.micro_batches - 1),
                         .loss_scale = options.scaler == nullptr ? 1.0 : options.scaler->scale(),
                         .total_count = window.total_count(),
                         .max_norm = options.max_grad_norm.value_or(std::numeric_limits<double>::infinity()),
                         .step_counts = state.step_counts,
                         .control = control};
  backend.control(pass);
  rule_->step(backend, {values, state.group_of, state.step_counts, control});

  state.report = make_report(control, pass, from);
  state.report.micro_batches = from.micro_batches;
  state.report.window = state.windows++;
  // A window with nothing to divide by says nothing about the loss scale.
  if (options.scaler != nullptr && control.outcome != StepOutcome::kEmptyTotal) {
    options.scaler->update(control.outcome == StepOutcome::kNonFinite);
  }
  from.reset();
}

const StepReport& Optimizer::last_report() const noexcept { return state_->report; }
const ParameterSet& Optimizer::params() const noexcept { return *state_->params; }

void Optimizer::check_tensor(std::size_t tensor) const {
  if (tensor < state_->params->size()) return;
  throw Error(fmt::format("there is no tensor {}: the set has {}", tensor, state_->params->size()));
}

std::int64_t Optimizer::step_count(std::size_t tensor) const {
  check_tensor(tensor);
  return tensor < state_->step_counts.size() ? state_->step_counts[tensor] : 0;
}

void Optimizer::set_step_count(std::size_t tensor, std::int64_t count) {
  check_tensor(tensor);
  if (count < 0) throw Error(fmt::format("step count of tensor {} cannot be {}", tensor, count));
  rule_->check_groups(*state_->params);
  grow();
  state_->step_counts[tensor] = count;
}

std::vector<OptimizerState> Optimizer::state(std::size_t tensor) {
  check_tensor(tensor);
  rule_->check_groups(*state_->params);
  grow();
  return rule_->state(*state_->params, tensor);
}

}  // namespace gradfuse
