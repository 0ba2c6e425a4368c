#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <gradfuse/error.hpp>
#include <gradfuse/nn/transformer.hpp>

#include "src/nn/mlp_checks.hpp"
#include "src/nn/parameter_store.hpp"
#include "src/nn/transformer_net.hpp"

namespace gradfuse::nn {
namespace {

constexpr std::size_t kMaxExtent = std::size_t{1} << 24;  // products of two and any number of rows stay in 64 bits

void check_extent(const char* name, std::size_t value) {
  if (value > 0 && value <= kMaxExtent) return;
  throw Error(fmt::format("TransformerOptions::{}: {}; expected 1..{}", name, value, kMaxExtent));
}

const TransformerOptions& checked(const TransformerOptions& options) {
  check_extent("vocabulary", options.vocabulary);
  check_extent("context", options.context);
  check_extent("width", options.width);
  check_extent("layers", options.layers);
  check_extent("heads", options.heads);
  if (options.width % options.heads != 0) {
    throw Error(fmt::format("TransformerOptions: width {} is no multiple of {} heads", options.width, options.heads));
  }
  if (options.precision == DType::kFloat64) {
    throw Error("TransformerOptions::precision: float64; expected float32, float16 or bfloat16");
  }
  if (options.backend == nullptr) throw Error("TransformerOptions::backend is null; make one with cpu_backend()");
  return options;
}

void check_tokens(const char* what, std::span<const std::int32_t> tokens, std::size_t vocabulary, bool may_be_ignored) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool is_token = tokens[i] >= 0 && static_cast<std::size_t>(tokens[i]) < vocabulary;
    if (is_token || (may_be_ignored && tokens[i] == kIgnoredTarget)) continue;
    throw Error(fmt::format("{}: position {} is {}; expected 0..{}{}", what, i, tokens[i], vocabulary - 1,
                            may_be_ignored ? fmt::format(", or {} to ignore it", kIgnoredTarget) : ""));
  }
}

void check_batch(const TransformerOptions& options, const TokenBatch& batch) {
  if (batch.positions == 0 || batch.positions > options.context) {
    throw Error(
        fmt::format("sequences of {} positions; the position table has 1..{}", batch.positions, options.context));
  }
  if (batch.inputs.empty() || batch.inputs.size() % batch.positions != 0) {
    throw Error(
        fmt::format("inputs: {} tokens are no whole number of sequences of {}", batch.inputs.size(), batch.positions));
  }
  if (batch.targets.size() != batch.inputs.size()) {
    throw Error(
        fmt::format("targets: {} beside {} inputs; expected one each", batch.targets.size(), batch.inputs.size()));
  }
  check_tokens("inputs", batch.inputs, options.vocabulary, false);
  check_tokens("targets", batch.targets, options.vocabulary, true);
}

}  // namespace

std::size_t count_targets(std::span<const std::int32_t> targets) {
  return targets.size() - static_cast<std::size_t>(std::ranges::count(targets, kIgnoredTarget));
}

TransformerMemory plan_memory(const TransformerOptions& options, std::size_t sequences, std::size_t positions) {
  const TransformerLayout layout = make_layout(checked(options));
  const TransformerActivations plan = plan_activations(options, sequences, positions);
  const std::size_t half = options.precision == DType::kFloat32 ? 0 : 1;
  return {.parameters = layout.numel * (4 + half * (2 + 4)),
          .gradients = options.has_gradients ? layout.numel * (4 + half * 2) : 0,
          .scratch = layout.largest_layer * 4,
          .activations = plan.values.numel() * sizeof(float) + plan.statistics.numel() * sizeof(double) +
                         2 * sequences * positions * sizeof(std::int32_t)};
}

struct Transformer::Impl {
  explicit Impl(const TransformerOptions& from)
      : options(checked(from)),
        layout(make_layout(options)),
        net(options, layout),
        store(layout, options.precision, options.backend, initial_parameters(options, layout), options.has_gradients) {}

  /// @throws Error  the window does not fit the model.
  void check_window(const Window& window) const {
    if (window.params().size() == layout.parameters.size()) return;
    throw Error(fmt::format("the window's set has {} tensors, the model {} parameters; add the model's, in their order",
                            window.params().size(), layout.parameters.size()));
  }

  TransformerOptions options;
  TransformerLayout layout;
  TransformerNet<float> net;
  ParameterStore store;
  DeviceArray<float> scratch;  // of `stream`
};

Transformer::Transformer(const TransformerOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Transformer::~Transformer() = default;
Transformer::Transformer(Transformer&&) noexcept = default;
Transformer& Transformer::operator=(Transformer&&) noexcept = default;

std::span<const Parameter> Transformer::parameters() const noexcept { return impl_->store.parameters(); }

void Transformer::backward(const TokenBatch& batch, float loss_scale) {
  check_batch(impl_->options, batch);
  check_loss_scale(loss_scale);
  if (!impl_->options.has_gradients) {
    throw Error("the model was made without gradients (has_gradients = false); use accumulate or stream");
  }
  const auto count = static_cast<float>(std::max<std::size_t>(count_targets(batch.targets), 1));
  FlatTargets<float> targets(impl_->layout, impl_->store.grads());
  impl_->net.backward(batch, impl_->store.float_params(), loss_scale / count, targets);
  impl_->store.finish_grads();
}

std::size_t Transformer::accumulate(const TokenBatch& batch, Window& window, float loss_scale) {
  check_batch(impl_->options, batch);
  check_loss_scale(loss_scale);
  impl_->check_window(window);
  if (window.options().accumulate != DType::kFloat32) {
    throw Error("products go into a float32 accumulator only; make the window with one, or use stream");
  }
  AccumulatorTargets targets(window);
  impl_->net.backward(batch, impl_->store.float_params(), loss_scale, targets);
  return count_targets(batch.targets);
}

std::size_t Transformer::stream(const TokenBatch& batch, Window& window, float loss_scale) {
  check_batch(impl_->options, batch);
  check_loss_scale(loss_scale);
  impl_->check_window(window);
  impl_->scratch.grow(impl_->options.backend->memory(), impl_->layout.largest_layer);
  StreamedTargets targets(impl_->layout, impl_->scratch.data(), window);
  impl_->net.backward(batch, impl_->store.float_params(), loss_scale, targets);
  return count_targets(batch.targets);
}

double Transformer::take_loss_sum() { return impl_->net.take_loss_sum(); }

double Transformer::evaluate(const TokenBatch& batch) {
  check_batch(impl_->options, batch);
  const double before = impl_->net.take_loss_sum();
  // Sequences are independent, so slices give the same answer, and many need no more memory than a few.
  constexpr std::size_t kEvaluationRows = 1024;
  const float* params = impl_->store.float_params();
  const std::size_t rows = std::max<std::size_t>(kEvaluationRows / batch.positions, 1) * batch.positions;
  for (std::size_t begin = 0; begin < batch.inputs.size(); begin += rows) {
    const std::size_t num = std::min(rows, batch.inputs.size() - begin);
    const TokenBatch slice{batch.inputs.subspan(begin, num), batch.targets.subspan(begin, num), batch.positions};
    impl_->net.forward(slice, params);
    impl_->net.take_losses(slice, 1.0f);
  }
  const double sum = impl_->net.take_loss_sum();
  impl_->net.put_back_loss_sum(before);
  return sum / static_cast<double>(count_targets(batch.targets));
}

std::vector<float> Transformer::next_logits(std::span<const std::int32_t> inputs) {
  const std::vector<std::int32_t> targets(inputs.size(), kIgnoredTarget);
  check_batch(impl_->options, {inputs, targets, inputs.size()});
  const float* logits = impl_->net.forward({inputs, targets, inputs.size()}, impl_->store.float_params());
  std::vector<float> last(impl_->options.vocabulary);
  impl_->options.backend->memory().download(last.data(), logits + (inputs.size() - 1) * last.size(),
                                            last.size() * sizeof(float));
  return last;
}

}  // namespace gradfuse::nn
