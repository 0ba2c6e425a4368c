// What the flags of `gradfuse train mlp` mean, defaults that depend on others included.
#include "src/cli/train_flags.hpp"

#include <fmt/format.h>

namespace gradfuse::cli {
StepDefaults step_defaults(const TrainFlags& flags) {
  return {.precision = flags.is_comparison ? "fp32" : "fp16",
          .adam_lr = 3e-3,
          .sgd_lr = 0.1,
          .eps = flags.is_comparison ? 1e-3 : 1e-8,
          .dynamic_scaler = train::MlpTrainOptions{}.loss_scaler};
}

train::MlpTrainOptions options_of(const TrainFlags& flags) {
  const StepDefaults defaults = step_defaults(flags);
  return {.micro_batch = flags.micro_batch,
          .accum_steps = flags.accum_steps,
          .epochs = flags.epochs.value_or(flags.is_comparison ? 3 : 30),
          .seed = flags.seed,
          .activation = flags.activation == "relu" ? nn::Activation::kRelu : nn::Activation::kGelu,
          .norm = flags.norm == "batch"   ? nn::Norm::kBatch
                  : flags.norm == "layer" ? nn::Norm::kLayer
                                          : nn::Norm::kNone,
          .precision = precision_of(flags.step, defaults),
          .optimizer = optimizer_of(flags.step, defaults),
          .lr_scaling = flags.lr_scaling == "linear" ? train::LrScaling::kLinear
                        : flags.lr_scaling == "sqrt" ? train::LrScaling::kSqrt
                                                     : train::LrScaling::kNone,
          .max_grad_norm = max_grad_norm_of(flags.step),
          .loss_scaler = loss_scaler_of(flags.step, defaults),
          .is_unfused = flags.is_unfused,
          .backend = backend_of(flags.backend)};
}

std::string describe_settings(const TrainFlags& flags, const train::MlpTrainOptions& options, std::size_t num_rows) {
  return fmt::format("seed {}, {}, norm {}, {} lr {:.4g} {}; {}", options.seed, flags.activation, flags.norm,
                     flags.step.optimizer, train::effective_lr(options, num_rows), describe(options.optimizer),
                     describe_backend(*options.backend));
}

}  // namespace gradfuse::cli
