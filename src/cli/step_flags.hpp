#pragma once
// The flags that say how gradients become a step, for every model: precision, loss scale, optimizer, clipping.
#include <gradfuse/loss_scaler.hpp>
#include <gradfuse/unfused_chain.hpp>

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

namespace gradfuse::cli {

/// What is empty has a default that depends on other flags.
struct StepFlags {
  std::optional<std::string> precision;
  std::optional<std::string> loss_scale;
  std::string optimizer = "adamw";
  std::optional<double> lr;
  std::optional<double> eps;
  double max_grad_norm = 1.0;
};

/// What goes without saying for a command.
struct StepDefaults {
  const char* precision;
  double adam_lr, sgd_lr, eps;
  LossScaler dynamic_scaler;
};

/// What the help says beside the defaults.
struct StepHelp {
  std::string precision = {}, eps = {};
};

/// --precision and --loss-scale, in the group "Model". `flags` must live as long as the command.
void add_precision_flags(CLI::App& command, StepFlags& flags, const StepDefaults& defaults, const StepHelp& help);
/// --optimizer, --lr, --eps and --max-grad-norm, in the group "Optimizer".
void add_optimizer_flags(CLI::App& command, StepFlags& flags, const StepDefaults& defaults, const StepHelp& help);

DType precision_of(const StepFlags& flags, const StepDefaults& defaults);
/// @throws Error  the scale is out of its range.
LossScaler loss_scaler_of(const StepFlags& flags, const StepDefaults& defaults);
/// @throws Error  --eps with sgd, which has none.
UnfusedChain::Options optimizer_of(const StepFlags& flags, const StepDefaults& defaults);
std::optional<double> max_grad_norm_of(const StepFlags& flags);

/// "eps 1e-08", "momentum 0.9"
std::string describe(const UnfusedChain::Options& optimizer);

}  // namespace gradfuse::cli
