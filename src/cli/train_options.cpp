// What the flags of `gradfuse train mlp` mean, defaults that depend on others included.
#include "src/cli/train_flags.hpp"

#include <fmt/format.h>
#include <gradfuse/error.hpp>

#include <charconv>
#include <variant>

namespace gradfuse::cli {
namespace {

LossScaler loss_scaler_of(const TrainFlags& flags, DType precision) {
  const std::string text = flags.loss_scale.value_or(precision == DType::kFloat16 ? "dynamic" : "off");
  if (text == "dynamic") return train::MlpTrainOptions{}.loss_scaler;
  if (text == "off") return LossScaler::off();
  double scale = 0;  // from_chars: the number does not depend on the locale
  std::from_chars(text.data(), text.data() + text.size(), scale);
  return LossScaler::fixed(scale);
}

DType precision_of(const TrainFlags& flags) {
  const std::string name = flags.precision.value_or(flags.is_comparison ? "fp32" : "fp16");
  return name == "fp16" ? DType::kFloat16 : name == "bf16" ? DType::kBFloat16 : DType::kFloat32;
}

UnfusedChain::Options optimizer_of(const TrainFlags& flags) {
  const double adam_lr = flags.lr.value_or(3e-3);
  // `compare_large_batch` says why.
  if (flags.eps && flags.optimizer == "sgd") throw Error("--eps is of adamw and adam; sgd has none");
  const double eps = flags.eps.value_or(flags.is_comparison ? 1e-3 : 1e-8);
  if (flags.optimizer == "sgd") return SgdOptions{.lr = flags.lr.value_or(0.1), .momentum = 0.9};
  if (flags.optimizer == "adam") return AdamOptions{.lr = adam_lr, .eps = eps};
  return AdamWOptions{.lr = adam_lr, .eps = eps};
}

std::string describe(const SgdOptions& sgd) { return fmt::format("momentum {}", sgd.momentum); }
std::string describe(const AdamOptions& adam) { return fmt::format("eps {}", adam.eps); }
std::string describe(const AdamWOptions& adamw) { return fmt::format("eps {}", adamw.eps); }

}  // namespace

train::MlpTrainOptions options_of(const TrainFlags& flags) {
  const DType precision = precision_of(flags);
  return {.micro_batch = flags.micro_batch,
          .accum_steps = flags.accum_steps,
          .epochs = flags.epochs.value_or(flags.is_comparison ? 3 : 30),
          .seed = flags.seed,
          .activation = flags.activation == "relu" ? nn::Activation::kRelu : nn::Activation::kGelu,
          .norm = flags.norm == "batch"   ? nn::Norm::kBatch
                  : flags.norm == "layer" ? nn::Norm::kLayer
                                          : nn::Norm::kNone,
          .precision = precision,
          .optimizer = optimizer_of(flags),
          .lr_scaling = flags.lr_scaling == "linear" ? train::LrScaling::kLinear
                        : flags.lr_scaling == "sqrt" ? train::LrScaling::kSqrt
                                                     : train::LrScaling::kNone,
          .max_grad_norm = flags.max_grad_norm == 0.0 ? std::nullopt : std::optional(flags.max_grad_norm),
          .loss_scaler = loss_scaler_of(flags, precision),
          .is_unfused = flags.is_unfused,
          .backend = backend_of(flags.backend)};
}

std::string describe_settings(const TrainFlags& flags, const train::MlpTrainOptions& options, std::size_t num_rows) {
  return fmt::format("seed {}, {}, norm {}, {} lr {:.4g} {}; {}", options.seed, flags.activation, flags.norm,
                     flags.optimizer, train::effective_lr(options, num_rows),
                     std::visit([](const auto& optimizer) { return describe(optimizer); }, options.optimizer),
                     describe_backend(*options.backend));
}

}  // namespace gradfuse::cli
