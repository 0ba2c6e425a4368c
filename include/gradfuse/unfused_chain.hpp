#pragma once
// What gradfuse replaces, built from its own single-purpose passes: the other side of every comparison.
#include <gradfuse/optimizer.hpp>
#include <gradfuse/parameter_set.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <variant>

namespace gradfuse {

/// A window as separate passes: zero, one add a micro-batch, unscale with check, norm, clip, step, model copy. Results
/// agree with `Window` and `Optimizer` within rounding: unscaling and clipping round each gradient once more. Every
/// tensor needs a gradient in every micro-batch, and all groups share one set of options.
class UnfusedChain {
 public:
  using Options = std::variant<AdamWOptions, AdamOptions, SgdOptions>;
  /// @throws Error  the options are out of range, or ask for amsgrad, which this chain does not do.
  UnfusedChain(const ParameterSet& params, const Options& options);
  UnfusedChain(UnfusedChain&&) noexcept;
  ~UnfusedChain();

  /// To be changed between steps, by a learning-rate schedule; what they are options of stays.
  Options& options() noexcept;

  /// As `Window::add`, but merged at once: nothing stays pending. The first of a window zeroes the accumulator before.
  /// @throws Error  as `Window::add`, but a gradient that is absent is one too.
  void add(std::span<const ConstTensorView> grads, double weight = 1.0);
  /// As `Optimizer::step`, errors included. The total count is the sum of the weights.
  StepReport step(const StepOptions& options = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gradfuse
