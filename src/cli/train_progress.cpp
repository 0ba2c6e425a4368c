#include "src/cli/train_progress.hpp"

#include <fmt/format.h>

#include "src/cli/terminal.hpp"

#include <cstdio>
#include <string>

namespace gradfuse::cli {
namespace {

constexpr std::size_t kBarWidth = 24;
constexpr std::chrono::milliseconds kRedrawInterval(50);  // a step may take less than drawing

std::string bar(std::size_t done, std::size_t total) {
  const std::size_t filled = done * kBarWidth / total;
  return std::string(filled, '#') + std::string(kBarWidth - filled, '-');
}

}  // namespace

TrainProgress::TrainProgress(std::size_t epochs, std::size_t steps_per_epoch)
    : epochs_(epochs), steps_per_epoch_(steps_per_epoch), has_bar_(is_stdout_terminal()) {}

TrainProgress::~TrainProgress() {
  if (!has_bar_) return;
  try {
    erase_line();
  } catch (...) {  // standard output is gone; main finds out too
  }
}

void TrainProgress::show(const train::StepRecord& step) {
  const auto now = std::chrono::steady_clock::now();
  if (!has_bar_ || now < next_redraw_) return;
  next_redraw_ = now + kRedrawInterval;
  const std::size_t total = epochs_ * steps_per_epoch_;
  redraw_line(fmt::format("[{}] {}/{}  loss {:.4f}  loss scale {}{}  {:.0f} samples/s", bar(step.step, total),
                          step.step, total, step.loss, step.report.loss_scale,
                          step.report.is_skipped() ? "  skipped" : "", step.samples_per_second));
}

void TrainProgress::show(const train::EpochRecord& epoch) {
  if (has_bar_) erase_line();
  const std::string skipped = epoch.skipped_steps == 0
                                  ? std::string()
                                  : fmt::format("  {} of {} steps skipped", epoch.skipped_steps, epoch.steps);
  fmt::print("epoch {:>{}}/{}  loss {:.4f}  test accuracy {:.2f} %  {:.0f} samples/s{}\n", epoch.epoch,
             std::to_string(epochs_).size(), epochs_, epoch.loss, 100 * epoch.test.accuracy, epoch.samples_per_second,
             skipped);
  std::fflush(stdout);
}

}  // namespace gradfuse::cli
