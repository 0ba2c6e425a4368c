#pragma once
// One whole window over N micro-batches, fused and unfused: what benchmarks time.
#include <gradfuse/unfused_chain.hpp>

#include <cstddef>

#include "src/workload/synthetic_model.hpp"

namespace gradfuse::workload {

/// AdamW with clipping and a loss scale. Both may run on one model in turn; each has its own accumulator and states.
class FusedWindow {
 public:
  FusedWindow(const SyntheticModel& model, std::size_t micro_batches);
  /// Waits for nothing, where the device lags behind.
  void run();
  /// The last step's. @throws Error  it was skipped or not clipped: not what the byte counts are for.
  const StepReport& checked_report() const;

 private:
  const SyntheticModel& model_;
  Window window_;
  AdamW optimizer_;
  LossScaler scaler_;
};

class UnfusedWindow {
 public:
  UnfusedWindow(const SyntheticModel& model, std::size_t micro_batches);
  void run();
  const StepReport& checked_report() const;  ///< As `FusedWindow::checked_report`.

 private:
  const SyntheticModel& model_;
  std::size_t micro_batches_;
  UnfusedChain chain_;
  LossScaler scaler_;
  StepReport report_;
};

/// Memory for a model and both windows, without what the objects keep per tensor.
std::size_t windows_num_bytes(std::size_t numel, const ModelOptions& options);

}  // namespace gradfuse::workload
