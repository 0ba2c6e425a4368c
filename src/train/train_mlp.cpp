#include <gradfuse/train/train_mlp.hpp>

#include "src/train/epoch_order.hpp"
#include "src/train/mlp_trainer.hpp"

namespace gradfuse::train {

TrainSummary train_mlp(const MlpTrainOptions& options, const nn::DigitsSplit& data, const TrainCallbacks& callbacks) {
  MlpTrainer trainer(options, data);
  EpochOrder order(data.train.num_rows(), options.seed);
  for (std::size_t epoch = 0; epoch < options.epochs; ++epoch) {
    const EpochRecord record = trainer.run_epoch(order.next(), callbacks.on_step);
    if (callbacks.on_epoch) callbacks.on_epoch(record);
  }
  return trainer.summary();
}

}  // namespace gradfuse::train
