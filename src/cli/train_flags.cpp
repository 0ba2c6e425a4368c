#include "src/cli/train_flags.hpp"

#include "src/cli/choices.hpp"
#include "src/cli/flag_helpers.hpp"

#include <fmt/format.h>

namespace gradfuse::cli {
namespace {

void add_batch_flags(CLI::App& command, TrainFlags& flags) {
  const auto batches = [](CLI::Option* option) { return option->group("Batches"); };
  batches(add_flag(command, "--micro-batch", "ROWS", flags.micro_batch, "Rows of one forward and backward pass"))
      ->check(whole_number(1));
  batches(add_flag(command, "--accum-steps", "N", flags.accum_steps,
                   "Micro-batches accumulated before each optimizer step"))
      ->check(whole_number(1));
  batches(add_flag(command, "--epochs", "N", flags.epochs, "30",
                   "Passes over the training rows (four fifths of the data); 3 with --compare-large-batch"))
      ->check(whole_number(1));
  batches(add_flag(command, "--seed", "N", flags.seed, "Of the initial parameters and of the order of the rows"))
      ->check(whole_number(0));
}

void add_model_flags(CLI::App& command, TrainFlags& flags) {
  const auto model = [](CLI::Option* option) { return option->group("Model"); };
  model(add_flag(command, "--activation", "relu|gelu", flags.activation, "Of the two hidden layers of 128"))
      ->check(one_of({"relu", "gelu"}));
  model(add_flag(command, "--norm", "none|layer|batch", flags.norm,
                 "Normalisation in the hidden layers; batch: with the statistics of the micro-batch"))
      ->check(one_of({"none", "layer", "batch"}));
  add_precision_flags(command, flags.step, step_defaults(flags), {.precision = ". fp32 with --compare-large-batch"});
}

void add_step_flags(CLI::App& command, TrainFlags& flags) {
  const auto optimizer = [](CLI::Option* option) { return option->group("Optimizer"); };
  add_optimizer_flags(command, flags.step, step_defaults(flags), {.eps = "; 1e-3 with --compare-large-batch"});
  optimizer(add_flag(command, "--lr-scaling", "none|linear|sqrt", flags.lr_scaling,
                     fmt::format("How --lr follows the effective batch (--micro-batch times --accum-steps): times the "
                                 "ratio to {} rows, or its square root",
                                 train::kLrBaseBatch)))
      ->check(one_of({"none", "linear", "sqrt"}));
  optimizer(command.add_flag("--unfused", flags.is_unfused,
                             "Separate passes (zero, add, unscale, norm, clip, step, cast) instead of the fused ones"));
}

void add_run_flags(CLI::App& command, TrainFlags& flags) {
  const auto run = [](CLI::Option* option) { return option->group("Run"); };
  add_device_flag(command, flags.backend);
  add_backend_flags(command, flags.backend);
  run(command.add_option("--data", flags.data,
                         "Digits as CSV, 64 pixels and a label a line; unless given, those that "
                         "came with the program"))
      ->type_name("FILE");
  CLI::Option* log = command.add_option("--log", flags.log, "Write one JSON line a step, and a summary as the last");
  run(log)->type_name("FILE");
  run(command.add_flag("--quiet", flags.is_quiet, "Print the last line only"));
  run(command.add_flag("--compare-large-batch", flags.is_comparison,
                       "Train twice, in micro-batches and in batches --accum-steps times as large, and compare the "
                       "parameters; not with --log"))
      ->excludes(log);
}

}  // namespace

void add_train_flags(CLI::App& command, TrainFlags& flags) {
  add_batch_flags(command, flags);
  add_model_flags(command, flags);
  add_step_flags(command, flags);
  add_run_flags(command, flags);
}

}  // namespace gradfuse::cli
