#pragma once
// The one thing that differs between fused and unfused training: how gradients become a step.
#include <gradfuse/optimizer.hpp>
#include <gradfuse/parameter_set.hpp>
#include <gradfuse/tensor_view.hpp>
#include <gradfuse/unfused_chain.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace gradfuse::train {

enum class Chain { kFused, kUnfused };

class WindowStepper {
 public:
  virtual ~WindowStepper() = default;
  /// @param rows     that the gradients are the mean over.
  /// @param is_last  of its window.
  virtual void add(std::span<const ConstTensorView> grads, std::size_t rows, bool is_last) = 0;
  virtual StepReport step(const StepOptions& options) = 0;
};

/// `params` must outlive it and stay where it is. `accum_steps`: micro-batches of a full window.
std::unique_ptr<WindowStepper> make_window_stepper(Chain chain, const ParameterSet& params,
                                                   const UnfusedChain::Options& optimizer, std::size_t accum_steps);

}  // namespace gradfuse::train
