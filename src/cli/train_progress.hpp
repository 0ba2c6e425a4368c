#pragma once
// What a training run shows while it goes on.
#include <gradfuse/train/train_mlp.hpp>

#include <chrono>
#include <cstddef>

namespace gradfuse::cli {

/// A line for each epoch and, on a terminal, a bar below them.
class TrainProgress {
 public:
  TrainProgress(std::size_t epochs, std::size_t steps_per_epoch);
  /// Leaves no bar behind, also when training ends with an error.
  ~TrainProgress();
  TrainProgress(const TrainProgress&) = delete;
  TrainProgress& operator=(const TrainProgress&) = delete;

  void show(const train::StepRecord& step);
  void show(const train::EpochRecord& epoch);

 private:
  std::size_t epochs_, steps_per_epoch_;
  bool has_bar_;
  std::chrono::steady_clock::time_point next_redraw_;
};

}  // namespace gradfuse::cli
