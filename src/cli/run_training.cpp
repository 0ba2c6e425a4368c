#include "src/cli/run_training.hpp"

#include <fmt/format.h>
#include <gradfuse/train/compare_large_batch.hpp>
#include <gradfuse/train/train_log.hpp>

#include "src/cli/exit_codes.hpp"
#include "src/cli/train_progress.hpp"

#include <cstdio>
#include <optional>

namespace gradfuse::cli {
namespace {

void print_heading(const TrainFlags& flags, const train::MlpTrainOptions& options, std::size_t num_rows) {
  fmt::print("training on {} digits: {} micro-batches of {} rows a step, {}, {} passes\n{}\n", num_rows,
             options.accum_steps, options.micro_batch, dtype_name(options.precision),
             options.is_unfused ? "unfused" : "fused", describe_settings(flags, options, num_rows));
}

double mebibytes(std::size_t num_bytes) { return static_cast<double>(num_bytes) / (1 << 20); }

void print_result(const train::TrainSummary& summary) {
  const std::string on_device = summary.device_peak_bytes == 0
                                    ? std::string()
                                    : fmt::format(" and {:.1f} on the device", mebibytes(summary.device_peak_bytes));
  fmt::print("test accuracy {:.2f} %, peak memory {:.1f} MiB{}, {} steps ({} skipped) in {:.2f} s, parameters {}\n",
             100 * summary.test.accuracy, mebibytes(summary.peak_bytes), on_device, summary.steps,
             summary.skipped_steps, summary.seconds, summary.parameters_digest);
}

void print_difference(const train::LargeBatchDifference& difference, std::size_t epochs) {
  fmt::print("epoch {}/{}  step {}  loss {:.4f}  largest difference {:.2g}  relative (L2) {:.2g}\n", difference.epoch,
             epochs, difference.steps, difference.loss, difference.max_abs, difference.relative);
  std::fflush(stdout);
}

}  // namespace

void run_training(const TrainFlags& flags, const train::MlpTrainOptions& options, const nn::DigitsSplit& digits) {
  const std::size_t num_rows = digits.train.num_rows();
  check_command_line([&] { train::check_options(options, digits); });  // before the log is created
  std::optional<train::TrainLog> log;
  if (!flags.log.empty()) log.emplace(flags.log);
  if (!flags.is_quiet) print_heading(flags, options, num_rows);

  train::TrainSummary summary;
  {
    std::optional<TrainProgress> progress;
    if (!flags.is_quiet)
      progress.emplace(options.epochs, (num_rows - 1) / train::rows_per_window(options, num_rows) + 1);
    summary = train::train_mlp(options, digits,
                               {.on_step =
                                    [&](const train::StepRecord& step) {
                                      if (log) log->write(step);
                                      if (progress) progress->show(step);
                                    },
                                .on_epoch =
                                    [&](const train::EpochRecord& epoch) {
                                      if (progress) progress->show(epoch);
                                    }});
  }
  if (log) log->finish(options, summary);
  print_result(summary);
}

bool run_comparison(const TrainFlags& flags, const train::MlpTrainOptions& options, const nn::DigitsSplit& digits) {
  check_command_line([&] { train::check_comparison(options, digits); });
  const std::size_t num_rows = digits.train.num_rows();
  if (!flags.is_quiet) {
    fmt::print(
        "comparing windows of {} micro-batches of {} rows with batches of {} rows, float32, same order of rows\n"
        "{}\n",
        options.accum_steps, options.micro_batch, train::rows_per_window(options, num_rows),
        describe_settings(flags, options, num_rows));
  }
  const train::LargeBatchDifference worst =
      train::compare_large_batch(options, digits, [&](const train::LargeBatchDifference& difference) {
        if (!flags.is_quiet) print_difference(difference, options.epochs);
      });
  fmt::print("{}: largest difference of a parameter over {} steps {:.2g}, relative (L2) {:.2g}; the limit is {:g}\n",
             worst.is_rounding() ? "PASS" : "FAIL", worst.steps, worst.max_abs, worst.relative,
             train::kLargeBatchTolerance);
  if (!worst.is_rounding()) {
    fmt::print(
        "The gradients differ by rounding (another order of summation), which may grow: Adam divides it by |gradient| "
        "+\n"
        "eps, ReLU opens or closes a gate on it, a high lr amplifies it, and each window adds its own. Try --eps "
        "1e-3,\n"
        "--activation gelu, a lower --lr, fewer --epochs.\n");
  }
  return worst.is_rounding();
}

}  // namespace gradfuse::cli
