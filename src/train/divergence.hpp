#pragma once
// When is it pointless to go on skipping steps?
#include <gradfuse/loss_scaler.hpp>
#include <gradfuse/train/train_mlp.hpp>

#include <string>

namespace gradfuse::train {

/// Watches one epoch. A skipped step alone is no divergence: a dynamic loss scale finds its level that way.
class DivergenceWatch {
 public:
  /// `options` must outlive it.
  explicit DivergenceWatch(const MlpTrainOptions& options) : options_(options) {}

  /// `scaler`: after the step. @throws Error  the step was skipped, and the dynamic scale had no room left to fall.
  void check_step(const StepRecord& record, const LossScaler& scaler);
  /// @throws Error  every step was skipped, and another epoch would be too: the parameters have not moved, and the
  ///                scale either does not move or cannot help, because the loss itself is not finite.
  void check_epoch(const EpochRecord& epoch, const LossScaler& scaler) const;

 private:
  [[noreturn]] void fail(const std::string& what) const;

  const MlpTrainOptions& options_;
  StepRecord last_skipped_;
  bool is_any_loss_finite_ = false;
};

}  // namespace gradfuse::train
