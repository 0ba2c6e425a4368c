#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <gradfuse/error.hpp>
#include <gradfuse/window.hpp>

#include "src/core/check_view.hpp"
#include "src/core/window_state.hpp"

namespace gradfuse {
namespace {

void check_options(const WindowOptions& options) {
  if (options.steps == 0)
    throw Error("a window of 0 steps never ends; `steps` is the number of micro-batches, 1 or more");
  if (options.accumulate != DType::kFloat32 && options.accumulate != DType::kFloat64) {
    throw Error(fmt::format("cannot accumulate in {}; use float32, or float64 for reference work",
                            dtype_name(options.accumulate)));
  }
  if (options.fixed_total && !(*options.fixed_total > 0.0 && std::isfinite(*options.fixed_total))) {
    throw Error(fmt::format("fixed_total is {}; it divides the gradients and must be positive and finite",
                            *options.fixed_total));
  }
}

void check_micro_batch(const MicroBatch& micro_batch) {
  const double weight = micro_batch.weight;
  if (!(weight >= 0.0 && std::isfinite(static_cast<float>(weight)))) {
    throw Error(fmt::format("micro-batch weight is {}; it must be at least 0 and finite in float32", weight));
  }
  if (weight > 0.0 && static_cast<float>(weight) == 0.0f) {
    throw Error(fmt::format("micro-batch weight {} is 0 in float32; scale the weights up", weight));
  }
  if (micro_batch.count && !(*micro_batch.count >= 0.0 && std::isfinite(*micro_batch.count))) {
    throw Error(fmt::format("micro-batch count is {}; it must be at least 0 and finite", *micro_batch.count));
  }
}

std::string label(const Window::State& state, std::size_t tensor) {
  return tensor_label(tensor, (*state.params)[tensor].name);
}

void check_gradient(const Window::State& state, std::size_t tensor, const ConstTensorView& grad) {
  const Parameter& parameter = (*state.params)[tensor];
  check_view(grad, state.params->backend()->device(), fmt::format("gradient of tensor {}", label(state, tensor)));
  if (grad.numel != parameter.param.numel) {
    throw Error(fmt::format("gradient of tensor {} has {} elements, the parameter {}", label(state, tensor), grad.numel,
                            parameter.param.numel));
  }
  if (const auto other = state.params->overlapping(grad.data, grad.num_bytes())) {
    throw Error(fmt::format("gradient of tensor {} shares memory with parameter {}; give it a buffer of its own",
                            label(state, tensor), label(state, *other)));
  }
  if (state.acc_memory.overlapping(grad.data, grad.num_bytes())) {
    throw Error(
        fmt::format("gradient of tensor {} lies in the window's accumulator; a producer that writes there uses "
                    "`claim` instead of `add`",
                    label(state, tensor)));
  }
}

/// Merges the gradients in the slots of [first, end) into the accumulator.
void merge(Window::State& state, std::size_t first, std::size_t end, float weight) {
  if (first >= end) return;
  state.params->backend()->add({.table = *state.table,
                                .first_tensor = first,
                                .end_tensor = end,
                                .slots = state.slots,
                                .accumulator = state.options.accumulate,
                                .weight = weight,
                                .micro_batch = static_cast<std::uint32_t>(state.micro_batches),
                                .first_nonfinite = state.first_nonfinite});
  for (std::size_t tensor = first; tensor < end; ++tensor) {
    if (!state.slots[tensor].grad.is_absent()) state.slots[tensor].position = WindowPosition::kLater;
  }
}

bool will_be_full(const Window::State& state, const MicroBatch& micro_batch) {
  return micro_batch.is_last || state.micro_batches + 1 == state.options.steps;
}

void check_not_full(const Window::State& state) {
  if (!state.is_full) return;
  throw Error(
      fmt::format("the window is full: it holds its {} micro-batches, the last one pending; call the "
                  "optimizer's step, or discard()",
                  state.micro_batches));
}

/// The gradients in the slots of [first, end) are those of one micro-batch, checked.
void end_micro_batch(Window::State& state, const MicroBatch& micro_batch, std::size_t first, std::size_t end) {
  const auto weight = static_cast<float>(micro_batch.weight);
  state.is_full = will_be_full(state, micro_batch);
  if (weight != 0.0f && state.is_full) {
    state.has_pending = true;
    state.pending_weight = weight;
  } else if (weight != 0.0f) {
    merge(state, first, end, weight);
  }
  state.sum_of_counts += micro_batch.count.value_or(micro_batch.weight);
  state.has_claims = false;
  ++state.micro_batches;
}

}  // namespace

void Window::State::grow() {
  if (slots.size() == params->size()) return;
  const std::size_t joined = slots.size();
  std::vector<std::size_t> numels;
  for (const Parameter& parameter : params->parameters()) numels.push_back(parameter.param.numel);
  auto grown_table = std::make_unique<WorkTable>(numels);
  acc.grow(*params);
  table = std::move(grown_table);
  slots.resize(params->size());
  for (std::size_t tensor = joined; tensor < params->size(); ++tensor) {
    slots[tensor].acc = acc[tensor];
    acc_memory.insert(acc[tensor], acc.view(*params, tensor).num_bytes(), tensor);
  }
  checked.assign(params->size(), {});  // an old gradient may share memory with a new parameter
  first_nonfinite.resize(params->size(), kNoIndex);
  value_slots.resize(params->size());
}

std::span<const ValueSlot> Window::State::values() {
  for (std::size_t tensor = 0; tensor < slots.size(); ++tensor) {
    const AddSlot& slot = slots[tensor];
    value_slots[tensor] = {.acc = slot.position == WindowPosition::kLater ? slot.acc : nullptr,
                           .pending = has_pending ? slot.grad : ConstTensorView{},
                           .weight = pending_weight};
  }
  return value_slots;
}

void Window::State::reset() noexcept {
  for (AddSlot& slot : slots) slot.position = WindowPosition::kFirst;
  std::fill(first_nonfinite.begin(), first_nonfinite.end(), kNoIndex);
  micro_batches = 0;
  sum_of_counts = 0.0;
  has_pending = is_full = has_claims = false;
}

Window::Window(const ParameterSet& params, WindowOptions options) {
  check_options(options);
  state_ = std::make_unique<State>(params, options);
  state_->grow();
}
Window::Window(Window&&) noexcept = default;
Window& Window::operator=(Window&&) noexcept = default;
Window::~Window() = default;

void Window::add(std::span<const ConstTensorView> grads, const MicroBatch& micro_batch) {
  State& state = *state_;
  check_not_full(state);
  check_micro_batch(micro_batch);
  state.grow();
  if (grads.size() != state.slots.size()) {
    throw Error(
        fmt::format("got {} gradients for {} tensors; give one view a tensor, a default-constructed one where "
                    "there is no gradient",
                    grads.size(), state.slots.size()));
  }
  // Views mostly stay the same from one micro-batch to the next: what passed the checks is only compared.
  for (std::size_t tensor = 0; tensor < grads.size(); ++tensor) {
    if (grads[tensor] == state.checked[tensor] || grads[tensor].is_absent()) continue;
    check_gradient(state, tensor, grads[tensor]);
  }
  for (std::size_t tensor = 0; tensor < grads.size(); ++tensor) {
    state.slots[tensor].grad = grads[tensor];
    state.checked[tensor] = grads[tensor];
  }
  end_micro_batch(state, micro_batch, 0, grads.size());
}

void Window::add(std::span<const Gradient> grads, const MicroBatch& micro_batch) {
  State& state = *state_;
  check_not_full(state);
  check_micro_batch(micro_batch);
  state.grow();
  std::size_t first = state.slots.size(), end = 0;
  for (const Gradient& gradient : grads) {
    if (gradient.tensor >= state.slots.size()) {
      throw Error(fmt::format("there is a gradient for tensor {}, but the set has {} tensors", gradient.tensor,
                              state.slots.size()));
    }
    if (!gradient.view.is_absent()) check_gradient(state, gradient.tensor, gradient.view);
    first = std::min(first, gradient.tensor);
    end = std::max(end, gradient.tensor + 1);
  }
  const auto clear = [&] {
    for (AddSlot& slot : state.slots) slot.grad = {};
  };
  clear();
  for (const Gradient& gradient : grads) {
    ConstTensorView& grad = state.slots[gradient.tensor].grad;
    if (!grad.is_absent() && !gradient.view.is_absent()) {  // a second producer: the slot holds one gradient at a time
      if (micro_batch.weight != 0.0) merge(state, first, end, static_cast<float>(micro_batch.weight));
      clear();
    }
    if (!gradient.view.is_absent()) grad = gradient.view;
  }
  end_micro_batch(state, micro_batch, first, end);
}

AccumulatorSlot Window::claim(std::size_t tensor) {
  State& state = *state_;
  check_not_full(state);
  state.grow();
  if (tensor >= state.slots.size()) {
    throw Error(fmt::format("cannot claim tensor {}: the set has {} tensors", tensor, state.slots.size()));
  }
  state.has_claims = true;
  const WindowPosition position = std::exchange(state.slots[tensor].position, WindowPosition::kLater);
  return {state.acc.view(*state.params, tensor), position};
}

ConstTensorView Window::accumulator(std::size_t tensor) const {
  if (tensor >= state_->params->size()) {
    throw Error(fmt::format("there is no tensor {}: the set has {}", tensor, state_->params->size()));
  }
  if (tensor >= state_->slots.size() || state_->slots[tensor].position == WindowPosition::kFirst) return {};
  return state_->acc.view(*state_->params, tensor);
}

std::size_t Window::micro_batches() const noexcept { return state_->micro_batches; }
bool Window::is_full() const noexcept { return state_->is_full; }
double Window::total_count() const noexcept { return state_->options.fixed_total.value_or(state_->sum_of_counts); }
const WindowOptions& Window::options() const noexcept { return state_->options; }
const ParameterSet& Window::params() const noexcept { return *state_->params; }
void Window::discard() noexcept { state_->reset(); }

}  // namespace gradfuse
