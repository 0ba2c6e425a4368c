#pragma once
// What a line of the training log says.
#include <gradfuse/train/train_mlp.hpp>
#include <gradfuse/train/train_transformer.hpp>

#include <string>

namespace gradfuse::train {

/// One line, without its end.
std::string to_json(const StepRecord& record);
std::string to_json(const MlpTrainOptions& options, const TrainSummary& summary);
std::string to_json(const TransformerTrainOptions& options, const TransformerTrainSummary& summary);

}  // namespace gradfuse::train
