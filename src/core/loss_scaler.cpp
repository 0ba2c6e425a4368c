#include <fmt/format.h>

#include <gradfuse/error.hpp>
#include <gradfuse/loss_scaler.hpp>

#include "kernels/element/scalar.hpp"

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
  if (!is_dynamic_ && state.scale != state_.scale) {
    throw Error(fmt::format("saved loss scale {} is another than the fixed {}; make a scaler with that scale",
                            state.scale, state_.scale));
  }
  if (state.growth_tracker < 0 || state.growth_tracker >= options_.growth_interval) {
    throw Error(
        fmt::format("saved growth tracker {} is outside 0 to {}", state.growth_tracker, options_.growth_interval - 1));
  }
  state_ = state;
}

void LossScaler::update(bool found_nonfinite) noexcept {
  if (!is_dynamic_) return;
  const element::LossScaleRule rule{.growth_factor = static_cast<float>(options_.growth_factor),
                                    .backoff_factor = static_cast<float>(options_.backoff_factor),
                                    .min_scale = static_cast<float>(options_.min_scale),
                                    .max_scale = static_cast<float>(options_.max_scale),
                                    .growth_interval = options_.growth_interval};
  const element::LossScale next =
      element::next_loss_scale({state_.scale, state_.growth_tracker}, rule, found_nonfinite);
  state_ = {next.scale, next.growth_tracker};
}

}  // namespace gradfuse
