#include "src/train/window_stepper.hpp"

#include <gradfuse/window.hpp>

#include <variant>

#include "src/train/make_optimizer.hpp"

namespace gradfuse::train {
namespace {

struct MakeOptimizer {
  const ParameterSet& params;

  std::unique_ptr<Optimizer> operator()(const AdamWOptions& options) const {
    return std::make_unique<AdamW>(params, options);
  }
  std::unique_ptr<Optimizer> operator()(const AdamOptions& options) const {
    return std::make_unique<Adam>(params, options);
  }
  std::unique_ptr<Optimizer> operator()(const SgdOptions& options) const {
    return std::make_unique<Sgd>(params, options);
  }
};

class FusedStepper : public WindowStepper {
 public:
  FusedStepper(const ParameterSet& params, const UnfusedChain::Options& options, std::size_t accum_steps)
      : window_(params, {.steps = accum_steps}), optimizer_(make_optimizer(params, options)) {}

  void add(std::span<const ConstTensorView> grads, std::size_t rows, bool is_last) override {
    window_.add(grads, {.weight = static_cast<double>(rows), .is_last = is_last});
  }
  StepReport step(const StepOptions& options) override {
    optimizer_->step(window_, options);
    return optimizer_->last_report();
  }

 private:
  Window window_;
  std::unique_ptr<Optimizer> optimizer_;
};

class UnfusedStepper : public WindowStepper {
 public:
  UnfusedStepper(const ParameterSet& params, const UnfusedChain::Options& options) : chain_(params, options) {}

  void add(std::span<const ConstTensorView> grads, std::size_t rows, bool) override {
    chain_.add(grads, static_cast<double>(rows));
  }
  StepReport step(const StepOptions& options) override { return chain_.step(options); }

 private:
  UnfusedChain chain_;
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const ParameterSet& params, const UnfusedChain::Options& options) {
  return std::visit(MakeOptimizer{params}, options);
}

std::unique_ptr<WindowStepper> make_window_stepper(Chain chain, const ParameterSet& params,
                                                   const UnfusedChain::Options& optimizer, std::size_t accum_steps) {
  if (chain == Chain::kUnfused) return std::make_unique<UnfusedStepper>(params, optimizer);
  return std::make_unique<FusedStepper>(params, optimizer, accum_steps);
}

}  // namespace gradfuse::train
