#pragma once
// A training run or a comparison, with what it prints.
#include <gradfuse/train/train_mlp.hpp>

#include "src/cli/train_flags.hpp"

namespace gradfuse::cli {

void run_training(const TrainFlags& flags, const train::MlpTrainOptions& options, const nn::DigitsSplit& digits);

/// Whether the two ways agree within rounding.
bool run_comparison(const TrainFlags& flags, const train::MlpTrainOptions& options, const nn::DigitsSplit& digits);

}  // namespace gradfuse::cli
