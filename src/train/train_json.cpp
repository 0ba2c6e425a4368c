#include "src/train/train_json.hpp"

#include <nlohmann/json.hpp>

#include <variant>

namespace gradfuse::train {
namespace {

using Json = nlohmann::ordered_json;  // in the order in which a reader looks

const char* name_of(LrScaling scaling) {
  switch (scaling) {
    case LrScaling::kNone: return "none";
    case LrScaling::kLinear: return "linear";
    case LrScaling::kSqrt: return "sqrt";
  }
  return "invalid";
}
const char* name_of(nn::Activation activation) { return activation == nn::Activation::kRelu ? "relu" : "gelu"; }
const char* name_of(nn::Norm norm) {
  switch (norm) {
    case nn::Norm::kNone: return "none";
    case nn::Norm::kLayer: return "layer";
    case nn::Norm::kBatch: return "batch";
  }
  return "invalid";
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json adam_json(const char* name, const auto& o) {
  return {{"name", name},     {"lr", o.lr},   {"beta1", o.beta1},
          {"beta2", o.beta2}, {"eps", o.eps}, {"weight_decay", o.weight_decay}};
}
struct OptimizerJson {
  Json operator()(const AdamWOptions& options) const { return adam_json("adamw", options); }
  Json operator()(const AdamOptions& options) const { return adam_json("adam", options); }
  Json operator()(const SgdOptions& options) const {
    return {{"name", "sgd"},
            {"lr", options.lr},
            {"momentum", options.momentum},
            {"weight_decay", options.weight_decay},
            {"nesterov", options.nesterov}};
  }
};

Json settings_json(const MlpTrainOptions& options) {
  return {{"micro_batch", options.micro_batch},
          {"accum_steps", options.accum_steps},
          {"epochs", options.epochs},
          {"seed", options.seed},
          {"hidden", options.hidden},
          {"activation", name_of(options.activation)},
          {"norm", name_of(options.norm)},
          {"precision", dtype_name(options.precision)},
          {"optimizer", std::visit(OptimizerJson{}, options.optimizer)},
          {"lr_scaling", name_of(options.lr_scaling)},
          {"max_grad_norm", or_null(options.max_grad_norm)},
          {"dynamic_loss_scale", options.loss_scaler.is_dynamic()},
          {"init_loss_scale", options.loss_scaler.scale()},
          {"unfused", options.is_unfused}};
}

}  // namespace

std::string to_json(const StepRecord& record) {
  const StepReport& report = record.report;
  Json line = {{"event", "step"},
               {"epoch", record.epoch},
               {"step", record.step},
               {"loss", record.loss},
               {"norm", report.norm},
               {"clip_coef", report.clip_coef},
               {"loss_scale", report.loss_scale},
               {"skipped", report.is_skipped()},
               {"lr", record.lr},
               {"micro_batches", report.micro_batches},
               {"samples_per_second", record.samples_per_second},
               {"resident_bytes", record.resident_bytes},
               {"device_bytes", record.device_bytes}};
  if (report.non_finite) {
    line["non_finite"] = {
        {"micro_batch", or_null(report.non_finite->micro_batch)},
        {"tensor", record.non_finite_tensor.empty() ? Json(nullptr) : Json(record.non_finite_tensor)}};
  }
  return line.dump();
}

std::string to_json(const MlpTrainOptions& options, const TrainSummary& summary) {
  const BackendInfo backend = describe(*options.backend);
  return Json{{"event", "summary"},
              {"test_accuracy", summary.test.accuracy},
              {"test_loss", summary.test.loss},
              {"seconds", summary.seconds},
              {"samples_per_second", summary.samples_per_second},
              {"peak_bytes", summary.peak_bytes},
              {"device_peak_bytes", summary.device_peak_bytes},
              {"steps", summary.steps},
              {"skipped_steps", summary.skipped_steps},
              {"loss_scale", summary.loss_scale},
              {"parameters_digest", summary.parameters_digest},
              {"backend", backend.name},
              {"target", backend.target},
              {"threads", backend.threads},
              {"settings", settings_json(options)}}
      .dump();
}

std::string to_json(const TransformerTrainOptions& options, const TransformerTrainSummary& summary) {
  const BackendInfo backend = describe(*options.model.backend);
  const nn::TransformerOptions& model = options.model;
  constexpr const char* kRoutes[] = {"unfused", "fused", "gemm", "streamed"};
  const Json settings = {{"micro_batch", options.micro_batch},
                         {"accum_steps", options.accum_steps},
                         {"route", kRoutes[static_cast<std::size_t>(options.route)]},
                         {"seed", options.seed},
                         {"vocabulary", model.vocabulary},
                         {"context", model.context},
                         {"width", model.width},
                         {"layers", model.layers},
                         {"heads", model.heads},
                         {"tied", model.is_tied},
                         {"precision", dtype_name(model.precision)},
                         {"checkpoint_every", model.checkpoint_every},
                         {"optimizer", std::visit(OptimizerJson{}, options.optimizer)},
                         {"max_grad_norm", or_null(options.max_grad_norm)},
                         {"dynamic_loss_scale", options.loss_scaler.is_dynamic()},
                         {"init_loss_scale", options.loss_scaler.scale()}};
  return Json{{"event", "summary"},
              {"validation_loss", summary.validation_loss},
              {"unigram_entropy", summary.unigram_entropy},
              {"seconds", summary.seconds},
              {"samples_per_second", summary.samples_per_second},
              {"tokens_per_second", summary.tokens_per_second},
              {"peak_bytes", summary.peak_bytes},
              {"steps", summary.steps},
              {"skipped_steps", summary.skipped_steps},
              {"loss_scale", summary.loss_scale},
              {"parameters_digest", summary.parameters_digest},
              {"backend", backend.name},
              {"target", backend.target},
              {"threads", backend.threads},
              {"settings", settings}}
      .dump();
}

}  // namespace gradfuse::train
