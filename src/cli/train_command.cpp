#include "src/cli/train_command.hpp"

#include <omp.h>

#include "src/cli/data_file.hpp"
#include "src/cli/exit_codes.hpp"
#include "src/cli/run_training.hpp"
#include "src/cli/train_flags.hpp"
#include "src/cli/transformer_command.hpp"

#include <fmt/format.h>
#include <filesystem>
#include <gradfuse/error.hpp>
#include <memory>

namespace gradfuse::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  gradfuse train mlp
      the defaults: fp16 gradients, dynamic loss scale, 4 micro-batches of 32 rows a step
  gradfuse train mlp --micro-batch 16 --accum-steps 16 --lr-scaling sqrt
      twice the effective batch, the learning rate with its square root
  gradfuse train mlp --precision bf16 --norm layer --log run.jsonl
      no loss scale is needed; each step as a line of JSON
  gradfuse train mlp --compare-large-batch
      shows that accumulating changes no parameter by more than rounding

Units: rows, nats (loss), bytes (log) and MiB (screen), seconds.
The same flags, threads and machine give the same bits; the digest tells.)";

void run(const TrainFlags& flags) {
  const train::MlpTrainOptions options = check_command_line([&] { return options_of(flags); });
  const std::filesystem::path data =
      flags.data.empty() ? default_data_file("digits.csv") : std::filesystem::path(flags.data);
  check_command_line([&] { refuse_to_overwrite(data, flags.log); });
  // One split for all seeds, so that their test accuracies compare.
  const nn::DigitsSplit digits = nn::split_digits(nn::load_digits(data), 0);
  // oneDNN takes OpenMP's number. That is the program's to set, never the library's.
  if (const int threads = describe(*options.backend).threads; threads > 0) omp_set_num_threads(threads);
  if (flags.is_comparison) {
    if (!run_comparison(flags, options, digits)) throw CLI::RuntimeError(kExitFailure);
  } else {
    run_training(flags, options, digits);
  }
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* train = app.add_subcommand("train", "Train a reference model through micro-batches");
  train->require_subcommand(1);
  CLI::App* mlp = train->add_subcommand("mlp", "Train a perceptron on handwritten digits (8 x 8 pixels, 10 classes)");
  auto flags = std::make_shared<TrainFlags>();
  add_train_flags(*mlp, *flags);
  mlp->footer(kExamples);
  mlp->callback([flags] { run(*flags); });
  add_train_transformer_command(*train);
}

}  // namespace gradfuse::cli
