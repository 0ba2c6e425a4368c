#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gradfuse/error.hpp>
#include <gradfuse/window.hpp>
#include <type_traits>
#include <utility>

#include "src/core/check_gradient.hpp"
#include "src/core/check_view.hpp"
#include "src/core/check_window.hpp"
#include "src/core/joins.hpp"
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
  if (options.fixed_total && !is_total(*options.fixed_total)) {
    throw Error(
        fmt::format("fixed_total is {}; it divides the gradients and must be positive and within float32's range",
                    *options.fixed_total));
  }
}

void check_window_gradient(const WindowState& state, std::size_t tensor, const ConstTensorView& grad) {
  check_gradient(*state.params, tensor, grad);
  if (state.acc_memory.overlapping(grad.data, grad.num_bytes())) {
    throw Error(
        fmt::format("gradient of tensor {} lies in the window's accumulator; a producer that writes there uses "
                    "`claim` instead of `add`",
                    tensor_label(tensor, (*state.params)[tensor].name)));
  }
}

/// The gradients are now those of [first, end).
void grads_changed(WindowState& state, std::size_t first, std::size_t end) {
  state.first_grad = first;
  state.end_grad = end;
  state.grads_are_written = false;
  for (std::size_t t = std::max<std::size_t>(first, 1); t < std::min(end + 1, state.grads.size()); ++t) {
    state.grad_joins[t] = is_joined(state.grads[t - 1], state.grads[t]);
  }
}

void clear_grads(WindowState& state) {
  const auto given = std::span(state.grads).subspan(state.first_grad, state.end_grad - state.first_grad);
  std::ranges::fill(given, ConstTensorView{});
  grads_changed(state, state.first_grad, state.end_grad);
  state.first_grad = state.end_grad = 0;
}

/// Merges the gradients into the accumulator.
void merge(WindowState& state, float weight) {
  const std::size_t first = state.first_grad, end = state.end_grad;
  if (first >= end) return;
  state.params->backend()->add({.table = *state.table,
                                .first_tensor = first,
                                .end_tensor = end,
                                .grads = state.grads,
                                .grad_joins = state.grad_joins,
                                .acc = state.accumulator(),
                                .weight = weight,
                                .micro_batch = static_cast<std::uint32_t>(state.micro_batches),
                                .first_nonfinite = state.first_nonfinite.data()});
  if (state.grads_are_written) return;
  for (std::size_t tensor = first; tensor < end; ++tensor) {
    state.is_written[tensor] |= static_cast<std::uint8_t>(!state.grads[tensor].is_absent());
  }
}

bool will_be_full(const WindowState& state, const MicroBatch& micro_batch) {
  return micro_batch.is_last || state.micro_batches + 1 == state.options.steps;
}

void check_not_full(const WindowState& state) {
  if (!state.is_full) return;
  throw Error(
      fmt::format("the window is full: it holds its {} micro-batches, the last one pending; call the "
                  "optimizer's step, or discard()",
                  state.micro_batches));
}

/// The gradients are those of one micro-batch, checked.
void end_micro_batch(WindowState& state, const MicroBatch& micro_batch) {
  const auto weight = static_cast<float>(micro_batch.weight);
  state.is_full = will_be_full(state, micro_batch);
  if (weight != 0.0f && state.is_full) {
    state.has_pending = true;
    state.pending_weight = weight;
  } else if (weight != 0.0f) {
    merge(state, weight);
  }
  state.sum_of_counts += micro_batch.count.value_or(micro_batch.weight);
  state.has_claims = false;
  ++state.micro_batches;
}

/// Makes the list's gradients those of the window. Of a tensor that is listed several times, all but the last are
/// merged on the way.
void take_list(WindowState& state, std::span<const Gradient> grads, double weight) {
  state.grow();
  std::size_t first = state.grads.size(), end = 0;
  for (const Gradient& gradient : grads) {
    if (gradient.tensor >= state.grads.size()) {
      throw Error(fmt::format("there is a gradient for tensor {}, but the set has {} tensors", gradient.tensor,
                              state.grads.size()));
    }
    if (!gradient.view.is_absent()) check_window_gradient(state, gradient.tensor, gradient.view);
    first = std::min(first, gradient.tensor);
    end = std::max(end, gradient.tensor + 1);
  }
  clear_grads(state);
  for (const Gradient& gradient : grads) {
    if (gradient.view.is_absent()) continue;
    if (!state.grads[gradient.tensor].is_absent()) {  // a second producer: a tensor has one gradient at a time
      grads_changed(state, first, end);
      if (weight != 0.0) merge(state, static_cast<float>(weight));
      clear_grads(state);
    }
    state.grads[gradient.tensor] = gradient.view;
  }
  if (first < end) grads_changed(state, first, end);
}

}  // namespace

void WindowState::grow() {
  if (table != nullptr && grads.size() == params->size()) return;
  const std::size_t joined = grads.size();
  acc.grow(*params);  // first: an absurd size fails here, before a table of its chunks is made
  std::vector<std::size_t> numels;
  for (const Parameter& parameter : params->parameters()) numels.push_back(parameter.param.numel);
  table = params->backend()->make_work_table(numels);
  for (std::size_t tensor = joined; tensor < params->size(); ++tensor) {
    const TensorView view = acc.view(*params, tensor);
    acc_memory.insert(view.data, view.num_bytes(), tensor);
    acc_joins.push_back(tensor > 0 && is_joined(acc.view(*params, tensor - 1), view));
  }
  is_written.resize(params->size());
  is_claimed.resize(params->size());
  first_nonfinite.grow(params->backend()->memory(), params->size());
  grads.resize(params->size());
  grad_joins.resize(params->size());  // 0: one at a time, until they are given anew
  must_check_all = true;
  grads_are_written = false;
}

Values WindowState::values() const {
  return {.table = *table,
          .acc = accumulator(),
          .pending = has_pending ? std::span(grads) : std::span<const ConstTensorView>{},
          .pending_joins = grad_joins,
          .weight = pending_weight};
}

void WindowState::reset() noexcept {
  std::fill(is_written.begin(), is_written.end(), std::uint8_t{0});
  std::fill(is_claimed.begin(), is_claimed.end(), std::uint8_t{0});
  micro_batches = 0;
  sum_of_counts = 0.0;
  has_pending = is_full = has_claims = grads_are_written = false;
}

Window::Window(const ParameterSet& params, WindowOptions options) {
  check_options(options);
  state_ = std::make_unique<WindowState>(params, options);
  state_->grow();
}
Window::Window(Window&&) noexcept = default;
Window& Window::operator=(Window&&) noexcept = default;
Window::~Window() = default;

void Window::add(std::span<const ConstTensorView> grads, const MicroBatch& micro_batch) {
  WindowState& state = *state_;
  check_not_full(state);
  check_micro_batch(micro_batch, state.sum_of_counts);
  state.grow();
  if (grads.size() != state.grads.size()) {
    throw Error(
        fmt::format("got {} gradients for {} tensors; give one view a tensor, a default-constructed one where "
                    "there is no gradient",
                    grads.size(), state.grads.size()));
  }
  // Views mostly stay the same from one micro-batch to the next, and ten thousand of them are compared in one sweep.
  static_assert(std::has_unique_object_representations_v<ConstTensorView>);
  if (state.must_check_all || std::memcmp(grads.data(), state.grads.data(), grads.size_bytes()) != 0) {
    for (std::size_t tensor = 0; tensor < grads.size(); ++tensor) {
      const bool is_known = !state.must_check_all && grads[tensor] == state.grads[tensor];
      if (!is_known && !grads[tensor].is_absent()) check_window_gradient(state, tensor, grads[tensor]);
    }
    std::copy(grads.begin(), grads.end(), state.grads.begin());
    state.must_check_all = false;
    grads_changed(state, 0, grads.size());
  }
  end_micro_batch(state, micro_batch);
  // The same views again will find their accumulators marked.
  state.grads_are_written = !state.is_full && micro_batch.weight != 0.0;
}

void Window::add(std::span<const Gradient> grads, const MicroBatch& micro_batch) {
  check_not_full(*state_);
  check_micro_batch(micro_batch, state_->sum_of_counts);
  take_list(*state_, grads, micro_batch.weight);
  end_micro_batch(*state_, micro_batch);
}

void Window::fold(std::span<const Gradient> grads, double weight) {
  WindowState& state = *state_;
  check_not_full(state);
  check_micro_batch({.weight = weight, .count = 0.0}, state.sum_of_counts);
  take_list(state, grads, weight);
  if (weight != 0.0) merge(state, static_cast<float>(weight));
  clear_grads(state);
  state.has_claims = true;  // the micro-batch has begun
}

AccumulatorSlot Window::claim(std::size_t tensor) {
  WindowState& state = *state_;
  check_not_full(state);
  state.grow();
  if (tensor >= state.grads.size()) {
    throw Error(fmt::format("cannot claim tensor {}: the set has {} tensors", tensor, state.grads.size()));
  }
  state.has_claims = true;
  state.is_claimed[tensor] = 1;
  const bool is_first = std::exchange(state.is_written[tensor], std::uint8_t{1}) == 0;
  return {state.acc.view(*state.params, tensor), is_first ? WindowPosition::kFirst : WindowPosition::kLater};
}

ConstTensorView Window::accumulator(std::size_t tensor) const {
  if (tensor >= state_->params->size()) {
    throw Error(fmt::format("there is no tensor {}: the set has {}", tensor, state_->params->size()));
  }
  if (tensor >= state_->grads.size() || state_->is_written[tensor] == 0) return {};
  return state_->acc.view(*state_->params, tensor);
}

std::size_t Window::micro_batches() const noexcept { return state_->micro_batches; }
bool Window::is_full() const noexcept { return state_->is_full; }
double Window::total_count() const noexcept { return state_->options.fixed_total.value_or(state_->sum_of_counts); }
const WindowOptions& Window::options() const noexcept { return state_->options; }
const ParameterSet& Window::params() const noexcept { return *state_->params; }
void Window::discard() {
  state_->first_nonfinite.clear(state_->params->backend()->memory());
  state_->reset();
}

}  // namespace gradfuse
