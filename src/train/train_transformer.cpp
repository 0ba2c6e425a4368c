#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <gradfuse/error.hpp>
#include <gradfuse/train/parameters_digest.hpp>
#include <gradfuse/train/resident_memory.hpp>
#include <gradfuse/train/train_transformer.hpp>
#include <memory>
#include <random>
#include <variant>
#include <vector>

#include "src/train/make_optimizer.hpp"
#include "src/train/window_stepper.hpp"

namespace gradfuse::train {
namespace {

std::size_t training_tokens(const nn::TokenText& text) { return text.size() / 10 * 9; }

/// Sequences with their next tokens, in memory that is used again.
class Sequences {
 public:
  explicit Sequences(std::size_t context) : context_(context), tokens_(context + 1) {}

  void clear() {
    inputs_.clear();
    targets_.clear();
  }
  void add(const nn::TokenText& text, std::size_t begin) {
    text.read(begin, tokens_);
    inputs_.insert(inputs_.end(), tokens_.begin(), tokens_.end() - 1);
    targets_.insert(targets_.end(), tokens_.begin() + 1, tokens_.end());
  }
  nn::TokenBatch batch() const { return {inputs_, targets_, context_}; }

 private:
  std::size_t context_;
  std::vector<std::int32_t> tokens_, inputs_, targets_;
};

/// What the routes differ in.
class RouteRunner {
 public:
  virtual ~RouteRunner() = default;
  virtual void add(const nn::TokenBatch& batch, float loss_scale, bool is_last) = 0;
  virtual StepReport step(const StepOptions& options) = 0;
};

class BufferRoute final : public RouteRunner {
 public:
  BufferRoute(Chain chain, nn::Transformer& model, const ParameterSet& params, const TransformerTrainOptions& options)
      : model_(model), stepper_(make_window_stepper(chain, params, options.optimizer, options.accum_steps)) {
    for (const nn::Parameter& parameter : model.parameters()) grads_.push_back(parameter.grad);
  }
  void add(const nn::TokenBatch& batch, float loss_scale, bool is_last) override {
    model_.backward(batch, loss_scale);
    stepper_->add(grads_, nn::count_targets(batch.targets), is_last);
  }
  StepReport step(const StepOptions& options) override { return stepper_->step(options); }

 private:
  nn::Transformer& model_;
  std::unique_ptr<WindowStepper> stepper_;
  std::vector<ConstTensorView> grads_;
};

class AccumulatorRoute final : public RouteRunner {
 public:
  AccumulatorRoute(nn::Transformer& model, const ParameterSet& params, const TransformerTrainOptions& options)
      : model_(model),
        is_streamed_(options.route == Route::kStreamed),
        window_(params, {.steps = options.accum_steps}),
        optimizer_(make_optimizer(params, options.optimizer)) {}
  void add(const nn::TokenBatch& batch, float loss_scale, bool is_last) override {
    const std::size_t count =
        is_streamed_ ? model_.stream(batch, window_, loss_scale) : model_.accumulate(batch, window_, loss_scale);
    // The gradients are those of the sum, so they weigh 1.
    window_.add(std::span<const Gradient>{}, {.weight = static_cast<double>(count), .is_last = is_last});
  }
  StepReport step(const StepOptions& options) override {
    optimizer_->step(window_, options);
    return optimizer_->last_report();
  }

 private:
  nn::Transformer& model_;
  bool is_streamed_;
  Window window_;
  std::unique_ptr<Optimizer> optimizer_;
};

bool has_buffer(Route route) { return route == Route::kUnfused || route == Route::kFused; }

nn::TransformerOptions model_options(const TransformerTrainOptions& options) {
  nn::TransformerOptions model = options.model;
  model.has_gradients = has_buffer(options.route);
  return model;
}

std::unique_ptr<RouteRunner> make_route(nn::Transformer& model, const ParameterSet& params,
                                        const TransformerTrainOptions& options) {
  if (!has_buffer(options.route)) return std::make_unique<AccumulatorRoute>(model, params, options);
  const Chain chain = options.route == Route::kUnfused ? Chain::kUnfused : Chain::kFused;
  return std::make_unique<BufferRoute>(chain, model, params, options);
}

ParameterSet parameters_of(const nn::Transformer& model, std::shared_ptr<const Backend> backend) {
  ParameterSet params(std::move(backend));
  for (const nn::Parameter& parameter : model.parameters()) {
    params.add({.name = parameter.name, .param = parameter.param, .model = parameter.model});
  }
  return params;
}

Sequences validation_sequences(const TransformerTrainOptions& options, const nn::TokenText& text) {
  constexpr std::size_t kMost = 32;
  const std::size_t begin = training_tokens(text), context = options.model.context;
  const std::size_t room = text.size() - begin - context;  // places where a sequence may begin
  const std::size_t num = std::clamp<std::size_t>(room / context, 1, kMost);
  Sequences sequences(context);
  for (std::size_t i = 0; i < num; ++i) sequences.add(text, begin + i * (room - 1) / std::max<std::size_t>(num - 1, 1));
  return sequences;
}

/// In nats, of the targets.
double entropy(std::span<const std::int32_t> targets, std::size_t vocabulary) {
  std::vector<double> counts(vocabulary);
  for (const std::int32_t token : targets) ++counts[static_cast<std::size_t>(token)];
  double sum = 0;
  for (const double count : counts) {
    if (count > 0) sum -= count * std::log(count / static_cast<double>(targets.size()));
  }
  return sum / static_cast<double>(targets.size());
}

double lr_of(const UnfusedChain::Options& optimizer) {
  return std::visit([](const auto& options) { return options.lr; }, optimizer);
}

void check_count(const char* name, std::size_t count) {
  if (count == 0) throw Error(fmt::format("{} is 0; it must be at least 1", name));
}

void check_divergence(const StepRecord& record, const LossScaler& scaler) {
  if (!record.report.is_skipped()) return;
  if (scaler.is_dynamic() && scaler.scale() < record.report.loss_scale) return;
  throw Error(fmt::format(
      "training has diverged: step {} (loss {}) has values that are not finite at loss scale {}, and that does not "
      "fall any further. Try a lower lr (now {}), precision bfloat16, or a dynamic loss scale",
      record.step, std::abs(record.loss), record.report.loss_scale, record.lr));
}

}  // namespace

void check_options(const TransformerTrainOptions& options, const nn::TokenText& text) {
  check_count("micro_batch", options.micro_batch);
  check_count("accum_steps", options.accum_steps);
  check_count("steps", options.steps);
  if (options.model.vocabulary < text.vocabulary()) {
    // Ids of uint16 need not use all of it: look.
    std::vector<std::int32_t> tokens(std::min<std::size_t>(text.size(), 1 << 16));
    for (std::size_t begin = 0; begin < text.size(); begin += tokens.size()) {
      const auto part = std::span(tokens).first(std::min(tokens.size(), text.size() - begin));
      text.read(begin, part);
      const auto largest = static_cast<std::size_t>(std::ranges::max(part));
      if (largest < options.model.vocabulary) continue;
      throw Error(
          fmt::format("the text has token {}, the model's vocabulary is {}", largest, options.model.vocabulary));
    }
  }
  const std::size_t needed = options.model.context + 1, for_validation = text.size() - training_tokens(text);
  if (training_tokens(text) < needed || for_validation < needed) {
    throw Error(fmt::format("the text has {} tokens, of which {} are for validation; a context of {} needs {} there",
                            text.size(), for_validation, options.model.context, needed));
  }
}

TransformerTrainSummary train_transformer(const TransformerTrainOptions& options, const nn::TokenText& text,
                                          const TransformerTrainCallbacks& callbacks) {
  using Clock = std::chrono::steady_clock;
  check_options(options, text);
  nn::Transformer model(model_options(options));
  const ParameterSet params = parameters_of(model, options.model.backend);
  const std::unique_ptr<RouteRunner> route = make_route(model, params, options);
  const Sequences validation = validation_sequences(options, text);
  LossScaler scaler = options.loss_scaler;
  std::mt19937_64 random(options.seed);
  Sequences sequences(options.model.context);
  const std::size_t places = training_tokens(text) - options.model.context;
  const double window_samples = static_cast<double>(options.micro_batch * options.accum_steps);
  const double context = static_cast<double>(options.model.context);

  TransformerTrainSummary summary;
  for (std::size_t step = 1; step <= options.steps; ++step) {
    const auto start = Clock::now();
    for (std::size_t m = 0; m < options.accum_steps; ++m) {
      sequences.clear();
      for (std::size_t s = 0; s < options.micro_batch; ++s) sequences.add(text, random() % places);
      route->add(sequences.batch(), scaler.scale(), m + 1 == options.accum_steps);
    }
    StepRecord record{.step = step, .lr = lr_of(options.optimizer)};
    record.report = route->step({.max_grad_norm = options.max_grad_norm, .scaler = &scaler});
    record.loss = model.take_loss_sum() / (window_samples * context);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    summary.seconds += seconds;
    summary.skipped_steps += record.report.is_skipped() ? 1 : 0;
    record.samples_per_second = window_samples / seconds;
    record.resident_bytes = resident_memory().current_bytes;
    if (record.report.non_finite && record.report.non_finite->tensor) {
      record.non_finite_tensor = params[*record.report.non_finite->tensor].name;
    }
    if (callbacks.on_step) callbacks.on_step(record);
    check_divergence(record, scaler);
    const bool is_last = step == options.steps;
    if (!is_last && (options.validate_every == 0 || step % options.validate_every != 0)) continue;
    summary.validation_loss = model.evaluate(validation.batch());
    if (callbacks.on_validation) callbacks.on_validation(step, summary.validation_loss);
  }
  if (callbacks.on_trained) callbacks.on_trained(model);
  summary.unigram_entropy = entropy(validation.batch().targets, options.model.vocabulary);
  summary.steps = options.steps;
  summary.samples_per_second = window_samples * static_cast<double>(options.steps) / summary.seconds;
  summary.tokens_per_second = summary.samples_per_second * context;
  summary.peak_bytes = resident_memory().peak_bytes;
  summary.loss_scale = scaler.scale();
  summary.parameters_digest = parameters_digest(params);
  return summary;
}

}  // namespace gradfuse::train
