#pragma once
// One window: the micro-batches between two optimizer steps, and the accumulator that holds their gradients.
#include <gradfuse/parameter_set.hpp>
#include <gradfuse/tensor_view.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

namespace gradfuse {

struct WindowOptions {
  /// Micro-batches of a full window, at least 1. The gradients of the last are not merged but stay pending.
  std::size_t steps = 1;
  /// kFloat32, or kFloat64 for reference work.
  DType accumulate = DType::kFloat32;
  /// Divide by this instead of the sum of the counts; 1 when the caller has normalised the gradients already.
  std::optional<double> fixed_total = std::nullopt;
};

struct MicroBatch {
  /// Factor on this micro-batch's gradients. For gradients of a *mean* loss: the number of tokens or samples it is the
  /// mean of. Finite and not negative. With weight 0 the gradients are not read: the mean over no tokens is NaN.
  double weight = 1.0;
  /// What it adds to the window's denominator; the weight unless given. For a *summed* loss: weight 1, count = tokens.
  std::optional<double> count = std::nullopt;
  /// The last of a window that ends early; its gradients stay pending as those of the last of a full window do.
  bool is_last = false;
};

/// One gradient, when not every tensor has one or a tensor has several.
struct Gradient {
  std::size_t tensor = 0;
  ConstTensorView view = {};
};

enum class WindowPosition { kFirst, kLater };

/// Where a producer that writes the accumulator itself puts its result.
struct AccumulatorSlot {
  TensorView view;          ///< [numel] of the window's accumulator dtype.
  WindowPosition position;  ///< kFirst: assign (a GEMM's beta = 0); the old content is garbage. kLater: add (beta = 1).
};

struct WindowState;  // what is inside

/// Accumulates gradients: the first micro-batch assigns, later ones add with one rounding an element (Huang et al.
/// 2019, arXiv:1811.06965, section 2.2), the last stays pending, to be read by the optimizer's passes beside the
/// accumulator. `Optimizer::step` ends the window and begins the next. A window may be stepped before it is full: what
/// it got counts.
class Window {
 public:
  /// @throws Error  `steps` is 0, the accumulator dtype is neither float32 nor float64, `fixed_total` is not positive.
  explicit Window(const ParameterSet& params, WindowOptions options = {});
  Window(Window&&) noexcept;
  Window& operator=(Window&&) noexcept;
  ~Window();

  /// Adds one micro-batch.
  /// @param grads  One view a tensor, in the set's order: float32, float16, bfloat16 or float64 [numel], on the set's
  ///               device. A default-constructed view: this tensor has no gradient here, and is left as it is.
  ///               After the last micro-batch the memory must stay valid and unchanged until the step.
  /// @throws Error  before anything is changed: the number of views, a size, dtype, device or alignment does not fit, a
  ///                pointer is null, a gradient overlaps a parameter or the accumulator, the weight or count is
  ///                negative or not finite, or the window is full already.
  void add(std::span<const ConstTensorView> grads, const MicroBatch& micro_batch = {});
  /// The same for a list; a tensor that is listed several times (tied weights) gets the sum.
  void add(std::span<const Gradient> grads, const MicroBatch& micro_batch = {});

  /// Merges some gradients of the micro-batch that is under way at once, as its backward pass makes them, so that their
  /// memory can be used again in order with the passes. The next `add`, if of nothing, ends the micro-batch.
  /// @param weight  As `MicroBatch::weight`; the count is given to that `add`.
  /// @throws Error  as `add`.
  void fold(std::span<const Gradient> grads, double weight = 1.0);

  /// For a producer that accumulates by itself, like a GEMM with beta 0 or 1; it applies the weight. The tensor counts
  /// as having a gradient from now on: write the whole segment before the next `add`, which ends the micro-batch.
  /// @throws Error  no such tensor, or the window is full.
  AccumulatorSlot claim(std::size_t tensor);
  /// The accumulated, not yet normalised gradient of a tensor, without what is pending; absent when there is none.
  ConstTensorView accumulator(std::size_t tensor) const;

  std::size_t micro_batches() const noexcept;
  bool is_full() const noexcept;
  double total_count() const noexcept;  ///< What the step will divide by.
  const WindowOptions& options() const noexcept;
  const ParameterSet& params() const noexcept;

  /// Forgets what was added, without a step.
  void discard();

 private:
  friend class Optimizer;  // ends the window
  std::unique_ptr<WindowState> state_;
};

}  // namespace gradfuse
