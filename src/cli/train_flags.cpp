#include "src/cli/train_flags.hpp"

#include "src/cli/choices.hpp"

#include <fmt/format.h>

#include <charconv>

namespace gradfuse::cli {
namespace {

/// "dynamic", "off" or a number; its range is the library's business.
std::string check_loss_scale(const std::string& text) {
  if (text == "dynamic" || text == "off") return {};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size()) return {};
  return fmt::format("{} is none of dynamic, off, or a number such as 1024", text);
}

/// CLI11 reads "-3" as 2^64 - 3.
CLI::Validator whole_number(std::size_t least) {
  return CLI::Validator(
      [least](const std::string& text) {
        std::size_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool is_number = error == std::errc{} && end == text.data() + text.size();
        return is_number && value >= least ? std::string()
                                           : fmt::format("{} is no whole number from {} on", text, least);
      },
      "");
}

/// An option with a default that is always the same.
template <class T>
CLI::Option* add(CLI::App& command, const char* name, const char* type, T& value, const std::string& description) {
  return command.add_option(name, value, description)->type_name(type)->capture_default_str();
}

/// An option with a default that depends on others: `usual` is what the help shows.
template <class T>
CLI::Option* add(CLI::App& command, const char* name, const char* type, std::optional<T>& value, const char* usual,
                 const std::string& description) {
  return command.add_option(name, value, description)->type_name(type)->default_str(usual);
}

void add_batch_flags(CLI::App& command, TrainFlags& flags) {
  const auto batches = [](CLI::Option* option) { return option->group("Batches"); };
  batches(add(command, "--micro-batch", "ROWS", flags.micro_batch, "Rows of one forward and backward pass"))
      ->check(whole_number(1));
  batches(add(command, "--accum-steps", "N", flags.accum_steps, "Micro-batches accumulated before each optimizer step"))
      ->check(whole_number(1));
  batches(add(command, "--epochs", "N", flags.epochs, "30",
              "Passes over the training rows (four fifths of the data); 3 with --compare-large-batch"))
      ->check(whole_number(1));
  batches(add(command, "--seed", "N", flags.seed, "Of the initial parameters and of the order of the rows"))
      ->check(whole_number(0));
}

void add_model_flags(CLI::App& command, TrainFlags& flags) {
  const auto model = [](CLI::Option* option) { return option->group("Model"); };
  model(add(command, "--activation", "relu|gelu", flags.activation, "Of the two hidden layers of 128"))
      ->check(one_of({"relu", "gelu"}));
  model(add(command, "--norm", "none|layer|batch", flags.norm,
            "Normalisation in the hidden layers; batch: with the statistics of the micro-batch"))
      ->check(one_of({"none", "layer", "batch"}));
  model(add(command, "--precision", "fp32|fp16|bf16", flags.precision, "fp16",
            "Of the gradients and of the parameters that forward and backward read; the optimizer's are fp32 always. "
            "fp32 with --compare-large-batch"))
      ->check(one_of({"fp32", "fp16", "bf16"}));
  model(add(command, "--loss-scale", "dynamic|off|NUMBER", flags.loss_scale, "dynamic",
            "Factor on the loss that keeps fp16 gradients from underflowing; dynamic starts at 65536. off unless fp16"))
      ->check(CLI::Validator(check_loss_scale, ""));
}

void add_optimizer_flags(CLI::App& command, TrainFlags& flags) {
  const auto optimizer = [](CLI::Option* option) { return option->group("Optimizer"); };
  optimizer(add(command, "--optimizer", "adamw|adam|sgd", flags.optimizer,
                "adamw has weight decay 0.01, sgd has momentum 0.9"))
      ->check(one_of({"adamw", "adam", "sgd"}));
  optimizer(add(command, "--lr", "RATE", flags.lr, "0.003", "Learning rate; 0.1 with sgd"));
  optimizer(add(command, "--lr-scaling", "none|linear|sqrt", flags.lr_scaling,
                fmt::format("How --lr follows the effective batch (--micro-batch times --accum-steps): times the ratio "
                            "to {} rows, or its square root",
                            train::kLrBaseBatch)))
      ->check(one_of({"none", "linear", "sqrt"}));
  optimizer(add(command, "--eps", "EPS", flags.eps, "1e-8", "Of adamw and adam; 1e-3 with --compare-large-batch"));
  optimizer(add(command, "--max-grad-norm", "NORM", flags.max_grad_norm,
                "Clip the global L2 norm of the gradients to this; 0: no clipping"));
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
  add_optimizer_flags(command, flags);
  add_run_flags(command, flags);
}

}  // namespace gradfuse::cli
