#include "src/train/mlp_trainer.hpp"

#include <gradfuse/train/parameters_digest.hpp>
#include <gradfuse/train/resident_memory.hpp>

#include "src/train/divergence.hpp"

#include <algorithm>
#include <chrono>
#include <variant>

namespace gradfuse::train {
namespace {

const MlpTrainOptions& checked(const MlpTrainOptions& options, const nn::DigitsSplit& data) {
  check_options(options, data);
  return options;
}

nn::MlpOptions model_options(const MlpTrainOptions& options, std::size_t num_rows) {
  std::vector<std::size_t> widths = {nn::kDigitsInputs};
  widths.insert(widths.end(), options.hidden.begin(), options.hidden.end());
  widths.push_back(nn::kDigitsClasses);
  const std::size_t per_epoch = (num_rows - 1) / options.micro_batch + 1;
  return {.widths = std::move(widths),
          .activation = options.activation,
          .norm = options.norm,
          .precision = options.precision,
          .seed = options.seed,
          .micro_batches_per_window = std::min(options.accum_steps, per_epoch),
          .backend = options.backend};
}

ParameterSet parameters_of(const nn::Mlp& model, std::shared_ptr<const Backend> backend) {
  ParameterSet params(std::move(backend));
  for (const nn::Parameter& parameter : model.parameters()) {
    params.add({.name = parameter.name, .param = parameter.param, .model = parameter.model});
  }
  return params;
}

std::vector<ConstTensorView> grads_of(const nn::Mlp& model) {
  std::vector<ConstTensorView> grads;
  for (const nn::Parameter& parameter : model.parameters()) grads.push_back(parameter.grad);
  return grads;
}

UnfusedChain::Options with_lr(UnfusedChain::Options optimizer, double lr) {
  std::visit([lr](auto& options) { options.lr = lr; }, optimizer);
  return optimizer;
}

std::string non_finite_tensor(const StepReport& report, const ParameterSet& params) {
  if (!report.non_finite || !report.non_finite->tensor) return {};
  return params[*report.non_finite->tensor].name;
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

MlpTrainer::MlpTrainer(const MlpTrainOptions& options, const nn::DigitsSplit& data)
    : options_(checked(options, data)),
      data_(data),
      model_(model_options(options, data.train.num_rows())),
      params_(parameters_of(model_, options.backend)),
      grads_(grads_of(model_)),
      lr_(effective_lr(options, data.train.num_rows())),
      stepper_(make_window_stepper(options.is_unfused ? Chain::kUnfused : Chain::kFused, params_,
                                   with_lr(options.optimizer, lr_), options.accum_steps)),
      scaler_(options.loss_scaler) {}

void MlpTrainer::add_micro_batch(std::span<const std::size_t> rows, bool is_last) {
  features_.resize(rows.size() * nn::kDigitsInputs);
  labels_.resize(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(&data_.train.features[rows[i] * nn::kDigitsInputs], nn::kDigitsInputs,
                &features_[i * nn::kDigitsInputs]);
    labels_[i] = data_.train.labels[rows[i]];
  }
  model_.backward(features_, labels_, scaler_.scale());
  stepper_->add(grads_, rows.size(), is_last);
}

StepRecord MlpTrainer::run_window(std::span<const std::size_t> rows) {
  const Clock::time_point start = Clock::now();
  for (std::size_t begin = 0; begin < rows.size(); begin += options_.micro_batch) {
    const std::size_t count = std::min(options_.micro_batch, rows.size() - begin);
    add_micro_batch(rows.subspan(begin, count), begin + count == rows.size());
  }
  StepRecord record{.epoch = epochs_ + 1, .step = ++steps_, .lr = lr_};
  record.report = stepper_->step({.max_grad_norm = options_.max_grad_norm, .scaler = &scaler_});
  record.loss = model_.take_loss_sum() / static_cast<double>(rows.size());
  const double seconds = seconds_since(start);
  seconds_ += seconds;
  skipped_steps_ += record.report.is_skipped() ? 1 : 0;
  record.non_finite_tensor = non_finite_tensor(record.report, params_);
  record.samples_per_second = static_cast<double>(rows.size()) / seconds;
  record.resident_bytes = resident_memory().current_bytes;
  record.device_bytes = device_pool(*options_.backend).used_bytes;
  return record;
}

EpochRecord MlpTrainer::run_epoch(std::span<const std::size_t> order,
                                  const std::function<void(const StepRecord&)>& on_step) {
  const std::size_t num_rows = order.size();
  const std::size_t window = rows_per_window(options_, num_rows);
  const double seconds_before = seconds_;
  DivergenceWatch watch(options_);
  EpochRecord epoch{.epoch = epochs_ + 1};
  for (std::size_t begin = 0; begin < num_rows; begin += window) {
    const std::size_t rows = std::min(window, num_rows - begin);
    const StepRecord record = run_window(order.subspan(begin, rows));
    epoch.loss += record.loss * static_cast<double>(rows) / static_cast<double>(num_rows);
    epoch.skipped_steps += record.report.is_skipped() ? 1 : 0;
    ++epoch.steps;
    if (on_step) on_step(record);
    watch.check_step(record, scaler_);
  }
  watch.check_epoch(epoch, scaler_);
  ++epochs_;
  epoch.samples_per_second = static_cast<double>(num_rows) / (seconds_ - seconds_before);
  epoch.test = model_.evaluate(data_.test.features, data_.test.labels);
  return epoch;
}

TrainSummary MlpTrainer::summary() {
  const double samples = static_cast<double>(epochs_) * static_cast<double>(data_.train.num_rows());
  return {.test = model_.evaluate(data_.test.features, data_.test.labels),
          .seconds = seconds_,
          .samples_per_second = samples / seconds_,
          .peak_bytes = resident_memory().peak_bytes,
          .device_peak_bytes = device_pool(*options_.backend).peak_bytes,
          .steps = steps_,
          .skipped_steps = skipped_steps_,
          .loss_scale = scaler_.scale(),
          .parameters_digest = parameters_digest(params_)};
}

}  // namespace gradfuse::train
