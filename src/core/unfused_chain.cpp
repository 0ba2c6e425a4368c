#include <fmt/format.h>

#include <algorithm>
#include <gradfuse/error.hpp>
#include <gradfuse/passes.hpp>
#include <gradfuse/unfused_chain.hpp>
#include <optional>
#include <type_traits>

#include "src/backend/backend.hpp"
#include "src/core/check_gradient.hpp"
#include "src/core/check_hyper.hpp"
#include "src/core/check_window.hpp"
#include "src/core/hyper_parameters.hpp"
#include "src/core/segments.hpp"

namespace gradfuse {
namespace {

/// A flat FP32 array beside the parameters, and the list through which passes reach it.
struct Array {
  Segments segments{DType::kFloat32};
  TensorList list;

  explicit Array(const ParameterSet& params) : list(make(params, segments)) {}
  static TensorList make(const ParameterSet& params, Segments& segments) {
    segments.grow(params);
    std::vector<TensorView> views;
    for (std::size_t tensor = 0; tensor < params.size(); ++tensor) views.push_back(segments.view(params, tensor));
    return TensorList(std::move(views), params.backend());
  }
};

TensorList param_list(const ParameterSet& params) {
  std::vector<TensorView> views;
  for (const Parameter& parameter : params.parameters()) views.push_back(parameter.param);
  return TensorList(std::move(views), params.backend());
}

/// The parameters that have a model copy, and the copies.
struct ModelCopy {
  ConstTensorList from;
  TensorList to;
};
ModelCopy model_copy(const ParameterSet& params) {
  std::vector<ConstTensorView> from;
  std::vector<TensorView> to;
  for (const Parameter& parameter : params.parameters()) {
    if (parameter.model.data == nullptr) continue;
    from.emplace_back(parameter.param);
    to.push_back(parameter.model);
  }
  return {ConstTensorList(std::move(from), params.backend()), TensorList(std::move(to), params.backend())};
}

void check_gradients(const ParameterSet& params, std::span<const ConstTensorView> grads) {
  if (grads.size() != params.size()) {
    throw Error(fmt::format("got {} gradients for {} tensors; give one view a tensor", grads.size(), params.size()));
  }
  for (std::size_t tensor = 0; tensor < grads.size(); ++tensor) check_gradient(params, tensor, grads[tensor]);
}

bool needs_second_array(const UnfusedChain::Options& options) { return !std::holds_alternative<SgdOptions>(options); }

}  // namespace

struct UnfusedChain::State {
  State(const ParameterSet& params_, const Options& options_)
      : params(params_),
        options(options_),
        param(param_list(params_)),
        model(model_copy(params_)),
        acc(params_),
        first(params_) {
    if (needs_second_array(options)) second.emplace(params_);
  }

  void check_options() const {
    if (options.index() != kind)
      throw Error("the optimizer of an unfused chain cannot be exchanged; make another chain");
    std::visit([](const auto& o) { check_hyper(0, hyper_parameters(o)); }, options);
    std::visit(
        [this]<class O>(const O& o) {
          if constexpr (std::is_same_v<O, SgdOptions>) {
            if ((o.momentum != 0.0) != has_momentum)
              throw Error("momentum cannot be turned on or off; make another chain");
          } else if (o.amsgrad) {
            throw Error("the unfused chain has no amsgrad; use Window and Optimizer");
          }
        },
        options);
  }

  void apply(std::int64_t step) {
    std::visit(
        [&](const auto& o) {
          using O = std::remove_cvref_t<decltype(o)>;
          if constexpr (std::is_same_v<O, SgdOptions>) {
            sgd_step({param, acc.list, o.momentum != 0.0 ? &first.list : nullptr}, o, step);
          } else if constexpr (std::is_same_v<O, AdamOptions>) {
            adam_step({param, acc.list, first.list, second->list}, o, step);
          } else {
            adamw_step({param, acc.list, first.list, second->list}, o, step);
          }
        },
        options);
  }

  const ParameterSet& params;
  Options options;
  const std::size_t kind = options.index();
  const bool has_momentum =
      std::holds_alternative<SgdOptions>(options) && std::get<SgdOptions>(options).momentum != 0.0;
  TensorList param;
  ModelCopy model;
  Array acc, first;
  std::optional<Array> second;
  std::optional<ConstTensorList> grads;
  double total_count = 0.0;
  std::size_t micro_batches = 0, windows = 0;
  std::int64_t steps = 0;
};

UnfusedChain::UnfusedChain(const ParameterSet& params, const Options& options)
    : state_(std::make_unique<State>(params, options)) {
  state_->check_options();
}
UnfusedChain::UnfusedChain(UnfusedChain&&) noexcept = default;
UnfusedChain::~UnfusedChain() = default;

UnfusedChain::Options& UnfusedChain::options() noexcept { return state_->options; }

void UnfusedChain::add(std::span<const ConstTensorView> grads, double weight) {
  State& state = *state_;
  check_micro_batch({.weight = weight}, state.total_count);
  if (!state.grads || !std::ranges::equal(grads, state.grads->views())) {
    check_gradients(state.params, grads);
    ConstTensorList list({grads.begin(), grads.end()}, state.params.backend());
    state.grads.emplace(std::move(list));
  }
  if (state.micro_batches == 0) zero(state.acc.list);
  if (weight != 0.0) axpby(static_cast<float>(weight), *state.grads, 1.0f, state.acc.list, state.acc.list);
  state.total_count += weight;
  ++state.micro_batches;
}

StepReport UnfusedChain::step(const StepOptions& options) {
  State& state = *state_;
  check_step(state.micro_batches, options);
  state.check_options();
  StepReport report{.loss_scale = options.scaler == nullptr ? 1.0f : options.scaler->scale(),
                    .total_count = state.total_count,
                    .micro_batches = state.micro_batches,
                    .window = state.windows++};
  if (state.total_count == 0.0) {
    report.outcome = StepOutcome::kEmptyTotal;
  } else {
    bool found_nonfinite = false;
    const auto unscale = static_cast<float>(1.0 / (double{report.loss_scale} * state.total_count));
    scale(state.acc.list, state.acc.list, unscale, &found_nonfinite);
    report.norm = l2_norm(state.acc.list);
    if (found_nonfinite || !element::fits_float(report.norm)) report.outcome = StepOutcome::kNonFinite;
  }
  if (!report.is_skipped()) {
    if (options.max_grad_norm) {
      clip(state.acc.list, report.norm, *options.max_grad_norm);
      report.clip_coef = element::clip_coefficient(report.norm, *options.max_grad_norm);
    }
    state.apply(++state.steps);
    cast(state.model.from, state.model.to);
  }
  if (options.scaler != nullptr && report.outcome != StepOutcome::kEmptyTotal) {
    options.scaler->update(report.outcome == StepOutcome::kNonFinite);
  }
  state.micro_batches = 0;
  state.total_count = 0.0;
  return report;
}

}  // namespace gradfuse
