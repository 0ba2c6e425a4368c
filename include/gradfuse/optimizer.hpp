#pragma once
// The end of a window: statistics, clipping, the step and the model copy, in two passes over memory.
#include <gradfuse/loss_scaler.hpp>
#include <gradfuse/step_outcome.hpp>
#include <gradfuse/window.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gradfuse {

struct StepOptions {
  /// Clip the global L2 norm of the normalised gradients to this, as torch.nn.utils.clip_grad_norm_ does: at least 0.
  std::optional<double> max_grad_norm = std::nullopt;
  /// Whose scale the gradients carry; it is updated. Null: they carry none.
  LossScaler* scaler = nullptr;
};

/// Where the first value that was not finite came in.
struct NonFinite {
  std::optional<std::size_t> micro_batch;  ///< From 0; none if a producer wrote the accumulator itself.
  std::optional<std::size_t> tensor;       ///< None if each tensor's norm is finite and only the global one is not.
};

struct StepReport {
  StepOutcome outcome = StepOutcome::kApplied;
  double norm = 0.0;         ///< L2 norm of the unscaled, normalised gradients before clipping.
  double clip_coef = 1.0;    ///< In [0, 1].
  float loss_scale = 1.0f;   ///< The one this window's gradients carried.
  double total_count = 0.0;  ///< What they were divided by.
  std::size_t micro_batches = 0;
  std::size_t window = 0;  ///< Of this optimizer, from 0, skipped ones included.
  std::optional<NonFinite> non_finite = std::nullopt;

  bool is_skipped() const noexcept { return outcome != StepOutcome::kApplied; }
};

/// A part of an optimizer's memory, for saving and resuming.
struct OptimizerState {
  std::string name;  ///< As in torch.optim: "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer".
  TensorView view;   ///< float32 [numel]
};

class OptimizerRule;  // what Adam and SGD differ in

/// Semantics, defaults and order of operations are those of torch.optim. A step that is skipped leaves parameters,
/// states, step counts and model copies as they were, bit for bit; so does any step for a tensor without a gradient.
class Optimizer {
 public:
  virtual ~Optimizer();

  /// Ends the window: gradients divided by its total count and loss scale, clipped, applied; the next window begins.
  /// @throws Error  before anything is changed: the window belongs to another set or holds no micro-batch,
  ///                `max_grad_norm` is negative or NaN, or a group's hyper-parameters are out of range.
  void step(Window& window, const StepOptions& options = {});
  /// Writes the groups' options to the device. A step does so by itself; for one that is captured in a CUDA graph, call
  /// this before a replay. @throws Error  as `step` of the options.
  void publish_options();
  /// Waits until the device has made the last step, if it works on its own; not for what was queued after it.
  const StepReport& last_report() const;

  /// Applied steps of this tensor, with which Adam corrects its bias. Waits for the device.
  std::int64_t step_count(std::size_t tensor) const;
  void set_step_count(std::size_t tensor, std::int64_t count);
  /// Views of this tensor's state, to be read or overwritten between steps.
  std::vector<OptimizerState> state(std::size_t tensor);

 protected:
  Optimizer(const ParameterSet& params, std::unique_ptr<OptimizerRule> rule);
  // Moved as what it is, not as its base: an Sgd cannot become an Adam.
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;
  OptimizerRule& rule() noexcept { return *rule_; }
  const ParameterSet& params() const noexcept;

 private:
  void grow();
  void check_tensor(std::size_t tensor) const;

  struct State;
  std::unique_ptr<OptimizerRule> rule_;
  std::unique_ptr<State> state_;
};

/// torch.optim.Adam: weight decay is added to the gradient (L2).
struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool amsgrad = false;
  bool maximize = false;
  bool bias_correction = true;
};
class Adam : public Optimizer {
 public:
  explicit Adam(const ParameterSet& params, const AdamOptions& defaults = {});
  /// The options of a group, to be changed at any time between steps (learning-rate schedules); amsgrad only before the
  /// group's first step. @throws Error  the set has no such group.
  AdamOptions& group(std::size_t index);
};

/// torch.optim.AdamW: weight decay shrinks the parameter by lr * weight_decay, apart from the gradient.
struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  bool amsgrad = false;
  bool maximize = false;
  bool bias_correction = true;
};
class AdamW : public Optimizer {
 public:
  explicit AdamW(const ParameterSet& params, const AdamWOptions& defaults = {});
  AdamWOptions& group(std::size_t index);  ///< As `Adam::group`.
};

/// torch.optim.SGD.
struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  bool maximize = false;
};
class Sgd : public Optimizer {
 public:
  explicit Sgd(const ParameterSet& params, const SgdOptions& defaults = {});
  SgdOptions& group(std::size_t index);  ///< As `Adam::group`.
};

}  // namespace gradfuse
