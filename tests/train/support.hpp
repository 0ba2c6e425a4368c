#pragma once
// The digits, and training runs on them with their records.
#include <gradfuse/nn/digits.hpp>
#include <gradfuse/train/train_mlp.hpp>

#include <vector>

namespace gradfuse::train {

inline const nn::DigitsSplit& digits() {
  static const nn::DigitsSplit split = nn::split_digits(nn::load_digits(GRADFUSE_DATA_DIR "/digits.csv"), 0);
  return split;
}

struct Training {
  TrainSummary summary;
  std::vector<StepRecord> steps;
  std::vector<EpochRecord> epochs;
};

inline Training train(const MlpTrainOptions& options) {
  Training run;
  run.summary = train_mlp(options, digits(),
                          {.on_step = [&](const StepRecord& step) { run.steps.push_back(step); },
                           .on_epoch = [&](const EpochRecord& epoch) { run.epochs.push_back(epoch); }});
  return run;
}

}  // namespace gradfuse::train
