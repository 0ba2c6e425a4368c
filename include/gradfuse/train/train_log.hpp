#pragma once
// The record of a training run as JSON lines.
#include <gradfuse/train/train_mlp.hpp>
#include <gradfuse/train/train_transformer.hpp>

#include <filesystem>
#include <memory>

namespace gradfuse::train {

/// One JSON object a line: {"event": "step", ...} for each step and, last, {"event": "summary", ...}. A number that is
/// not finite is written as null, which is all that JSON has for it. Each line is handed to the system as it is
/// written, so that a reader can follow, and a full disk is noticed at once.
class TrainLog {
 public:
  /// Creates or empties the file. @throws Error  it cannot be opened; names path and reason.
  explicit TrainLog(std::filesystem::path path);
  TrainLog(TrainLog&&) noexcept;
  TrainLog& operator=(TrainLog&&) noexcept;
  ~TrainLog();  ///< Closes the file; without `finish` it has no summary.

  /// @throws Error  the line cannot be written, or the log is finished.
  void write(const StepRecord& record);
  /// The summary with the settings that led to it; then closes the file. @throws Error  as `write`.
  void finish(const MlpTrainOptions& options, const TrainSummary& summary);
  void finish(const TransformerTrainOptions& options, const TransformerTrainSummary& summary);

 private:
  struct File;
  std::unique_ptr<File> file_;
};

}  // namespace gradfuse::train
