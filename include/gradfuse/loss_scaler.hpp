#pragma once
// Loss scaling: a factor on the loss that keeps FP16 gradients from underflowing; the step removes it.
#include <gradfuse/backend.hpp>
#include <gradfuse/loss_scale.hpp>

#include <cstdint>
#include <limits>
#include <memory>

namespace gradfuse {

struct LossScalerOptions {
  double init_scale = 65536.0;
  double growth_factor = 2.0;
  double backoff_factor = 0.5;
  std::int32_t growth_interval = 2000;
  double min_scale = std::numeric_limits<float>::min();
  double max_scale = std::numeric_limits<float>::max();
};

/// Dynamic scaling as torch.amp.GradScaler does it (Micikevicius et al. 2018, arXiv:1710.03740): a window with values
/// that are not finite is skipped and the scale backs off; after `growth_interval` applied steps it grows. Beside
/// torch's rule it never falls below `min_scale`, and growth that would pass `max_scale` is not taken.
class LossScaler {
 public:
  /// @throws Error  a scale is not positive and finite in FP32 or outside [min_scale, max_scale], growth_factor < 1,
  ///                backoff_factor outside (0, 1], or growth_interval < 1.
  explicit LossScaler(const LossScalerOptions& options = {});
  /// A scale that never changes; steps with values that are not finite are still skipped.
  static LossScaler fixed(double scale);
  static LossScaler off() { return fixed(1.0); }
  /// A copy has the state, not the place: it is on no device until its own first step.
  LossScaler(const LossScaler& other);
  LossScaler& operator=(const LossScaler& other);
  LossScaler(LossScaler&&) noexcept;
  LossScaler& operator=(LossScaler&&) noexcept;
  ~LossScaler();

  /// Multiply the loss by this. It is constant within a window: read it after the step, not in the middle. From the
  /// first step on the state lives on the device that steps; this waits for the last step there, `device_scale` does
  /// not.
  float scale() const { return state().scale; }
  /// The same in the memory of the backend's device, for whoever scales the loss there; moves the state to it. Good
  /// until a step on another backend.
  const float* device_scale(const std::shared_ptr<const Backend>& backend) { return &place_on(backend)->scale; }
  bool is_dynamic() const noexcept { return is_dynamic_; }
  const LossScalerOptions& options() const noexcept { return options_; }

  using State = LossScale;
  State state() const;
  /// Resumes a saved state. @throws Error  the scale is outside [min_scale, max_scale] or another than a fixed one, or
  /// the tracker is out of range.
  void load(State state);

  /// What `Optimizer::step` calls once a window; call it only when you step without gradfuse.
  void update(bool found_nonfinite);

 private:
  friend class Optimizer;  // whose control pass updates the state on the device
  struct Placement;
  State* place_on(const std::shared_ptr<const Backend>& backend);
  void was_updated();
  void set(State state);

  LossScalerOptions options_;
  State state_;  // while there is no placement
  bool is_dynamic_ = true;
  std::unique_ptr<Placement> placement_;
};

}  // namespace gradfuse
