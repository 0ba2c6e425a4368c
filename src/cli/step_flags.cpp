#include "src/cli/step_flags.hpp"

#include <fmt/format.h>

#include <charconv>
#include <gradfuse/error.hpp>
#include <variant>

#include "src/cli/choices.hpp"
#include "src/cli/flag_helpers.hpp"

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

}  // namespace

void add_precision_flags(CLI::App& command, StepFlags& flags, const StepDefaults& defaults, const StepHelp& help) {
  add_flag(command, "--precision", "fp32|fp16|bf16", flags.precision, defaults.precision,
           "Of the gradients and of the parameters that forward and backward read; the optimizer's are fp32 always" +
               help.precision)
      ->check(one_of({"fp32", "fp16", "bf16"}))
      ->group("Model");
  add_flag(command, "--loss-scale", "dynamic|off|NUMBER", flags.loss_scale, "dynamic",
           "Factor on the loss that keeps fp16 gradients from underflowing; dynamic starts at 65536. off unless fp16")
      ->check(CLI::Validator(check_loss_scale, ""))
      ->group("Model");
}

void add_optimizer_flags(CLI::App& command, StepFlags& flags, const StepDefaults& defaults, const StepHelp& help) {
  const auto optimizer = [](CLI::Option* option) { return option->group("Optimizer"); };
  optimizer(add_flag(command, "--optimizer", "adamw|adam|sgd", flags.optimizer,
                     "adamw has weight decay 0.01, sgd has momentum 0.9"))
      ->check(one_of({"adamw", "adam", "sgd"}));
  optimizer(add_flag(command, "--lr", "RATE", flags.lr, fmt::format("{}", defaults.adam_lr).c_str(),
                     fmt::format("Learning rate; {} with sgd", defaults.sgd_lr)));
  optimizer(add_flag(command, "--eps", "EPS", flags.eps, "1e-8", "Of adamw and adam" + help.eps));
  optimizer(add_flag(command, "--max-grad-norm", "NORM", flags.max_grad_norm,
                     "Clip the global L2 norm of the gradients to this; 0: no clipping"));
}

DType precision_of(const StepFlags& flags, const StepDefaults& defaults) {
  const std::string name = flags.precision.value_or(defaults.precision);
  return name == "fp16" ? DType::kFloat16 : name == "bf16" ? DType::kBFloat16 : DType::kFloat32;
}

LossScaler loss_scaler_of(const StepFlags& flags, const StepDefaults& defaults) {
  const bool is_fp16 = precision_of(flags, defaults) == DType::kFloat16;
  const std::string text = flags.loss_scale.value_or(is_fp16 ? "dynamic" : "off");
  if (text == "dynamic") return defaults.dynamic_scaler;
  if (text == "off") return LossScaler::off();
  double scale = 0;  // from_chars: the number does not depend on the locale
  std::from_chars(text.data(), text.data() + text.size(), scale);
  return LossScaler::fixed(scale);
}

UnfusedChain::Options optimizer_of(const StepFlags& flags, const StepDefaults& defaults) {
  const double adam_lr = flags.lr.value_or(defaults.adam_lr), eps = flags.eps.value_or(defaults.eps);
  if (flags.eps && flags.optimizer == "sgd") throw Error("--eps is of adamw and adam; sgd has none");
  if (flags.optimizer == "sgd") return SgdOptions{.lr = flags.lr.value_or(defaults.sgd_lr), .momentum = 0.9};
  if (flags.optimizer == "adam") return AdamOptions{.lr = adam_lr, .eps = eps};
  return AdamWOptions{.lr = adam_lr, .eps = eps};
}

std::optional<double> max_grad_norm_of(const StepFlags& flags) {
  return flags.max_grad_norm == 0.0 ? std::nullopt : std::optional(flags.max_grad_norm);
}

std::string describe(const UnfusedChain::Options& optimizer) {
  return std::visit(
      [](const auto& options) {
        if constexpr (requires { options.momentum; }) {
          return fmt::format("momentum {}", options.momentum);
        } else {
          return fmt::format("eps {}", options.eps);
        }
      },
      optimizer);
}

}  // namespace gradfuse::cli
