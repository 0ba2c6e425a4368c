#include <fmt/format.h>

#include <gradfuse/error.hpp>
#include <gradfuse/loss_scaler.hpp>

#include "src/backend/backend.hpp"
#include "src/backend/device_array.hpp"
#include "src/core/loss_scale_rule.hpp"

namespace gradfuse {
namespace {

bool is_scale(double scale) { return scale > 0.0 && static_cast<float>(scale) > 0.0f && element::fits_float(scale); }

void check(const LossScalerOptions& options) {
  if (!is_scale(options.min_scale) || !is_scale(options.max_scale) || options.min_scale > options.max_scale) {
    throw Error(fmt::format("loss scale limits {} to {} are not an interval of positive float32 numbers",
                            options.min_scale, options.max_scale));
  }
  if (!is_scale(options.init_scale) || options.init_scale < options.min_scale ||
      options.init_scale > options.max_scale) {
    throw Error(fmt::format("initial loss scale {} must be positive, finite and between {} and {}", options.init_scale,
                            options.min_scale, options.max_scale));
  }
  if (!(options.growth_factor >= 1.0 && element::fits_float(options.growth_factor))) {
    throw Error(fmt::format("loss scale growth_factor is {}; it must be at least 1", options.growth_factor));
  }
  if (!(options.backoff_factor > 0.0 && options.backoff_factor <= 1.0)) {
    throw Error(
        fmt::format("loss scale backoff_factor is {}; it must be above 0 and at most 1", options.backoff_factor));
  }
  if (options.growth_interval < 1) {
    throw Error(fmt::format("loss scale growth_interval is {}; it must be at least 1", options.growth_interval));
  }
}

}  // namespace

element::LossScaleRule loss_scale_rule(const LossScalerOptions& options) {
  return {.growth_factor = static_cast<float>(options.growth_factor),
          .backoff_factor = static_cast<float>(options.backoff_factor),
          .min_scale = static_cast<float>(options.min_scale),
          .max_scale = static_cast<float>(options.max_scale),
          .growth_interval = options.growth_interval};
}

struct LossScaler::Placement {
  explicit Placement(std::shared_ptr<const Backend> backend_)
      : backend(std::move(backend_)), readback(backend->memory().make_readback(sizeof(State))) {
    state.grow(backend->memory(), 1);
  }

  std::shared_ptr<const Backend> backend;
  DeviceArray<State> state;  // of one
  std::unique_ptr<Readback> readback;
};

LossScaler::LossScaler(const LossScaler& other)
    : options_(other.options_), state_(other.state()), is_dynamic_(other.is_dynamic_) {}
LossScaler& LossScaler::operator=(const LossScaler& other) { return *this = LossScaler(other); }
LossScaler::LossScaler(LossScaler&&) noexcept = default;
LossScaler& LossScaler::operator=(LossScaler&&) noexcept = default;
LossScaler::~LossScaler() = default;

LossScaler::State LossScaler::state() const {
  return placement_ == nullptr ? state_ : *static_cast<const State*>(placement_->readback->wait());
}

void LossScaler::set(State state) {
  if (placement_ == nullptr) {
    state_ = state;
    return;
  }
  placement_->state.set(placement_->backend->memory(), 0, state);
  was_updated();
}

LossScaler::State* LossScaler::place_on(const std::shared_ptr<const Backend>& backend) {
  if (placement_ == nullptr || placement_->backend != backend) {
    const State now = state();
    placement_ = std::make_unique<Placement>(backend);
    set(now);
  }
  return placement_->state.data();
}

void LossScaler::was_updated() { placement_->readback->request(placement_->state.data()); }

LossScaler::LossScaler(const LossScalerOptions& options) : options_(options) {
  check(options);
  state_.scale = static_cast<float>(options.init_scale);
}

LossScaler LossScaler::fixed(double scale) {
  LossScaler scaler({.init_scale = scale});
  scaler.is_dynamic_ = false;
  return scaler;
}

void LossScaler::load(State state) {
  if (!(state.scale >= static_cast<float>(options_.min_scale) &&
        state.scale <= static_cast<float>(options_.max_scale))) {
    throw Error(
        fmt::format("saved loss scale {} is outside {} to {}", state.scale, options_.min_scale, options_.max_scale));
  }
  if (const float fixed_scale = scale(); !is_dynamic_ && state.scale != fixed_scale) {
    throw Error(fmt::format("saved loss scale {} is another than the fixed {}; make a scaler with that scale",
                            state.scale, fixed_scale));
  }
  if (state.growth_tracker < 0 || state.growth_tracker >= options_.growth_interval) {
    throw Error(
        fmt::format("saved growth tracker {} is outside 0 to {}", state.growth_tracker, options_.growth_interval - 1));
  }
  set(state);
}

void LossScaler::update(bool found_nonfinite) {
  if (is_dynamic_) set(element::next_loss_scale(state(), loss_scale_rule(options_), found_nonfinite));
}

}  // namespace gradfuse
