#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <gradfuse/nn/mlp.hpp>
#include <utility>

#include "src/backend/backend.hpp"
#include "src/nn/mlp_checks.hpp"
#include "src/nn/mlp_layout.hpp"
#include "src/nn/mlp_net.hpp"
#include "src/nn/parameter_store.hpp"

namespace gradfuse::nn {
namespace {

// Rows are independent in inference, so slices give the same answer and a large test set needs no more memory.
constexpr std::size_t kEvaluationRows = 256;

double cross_entropy(std::span<const float> logits, std::size_t label) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum) - static_cast<double>(logits[label]);
}

/// Whether the label has the largest logit, of equals the first. Against a NaN nothing wins.
bool label_wins(std::span<const float> logits, std::size_t label) {
  for (std::size_t c = 0; c < logits.size(); ++c) {
    const bool is_beaten = c < label ? logits[c] < logits[label] : logits[c] <= logits[label];
    if (!is_beaten) return false;
  }
  return true;
}

}  // namespace

struct Mlp::Impl {
  explicit Impl(const MlpOptions& from)
      : options(from),
        layout(make_layout(options)),
        net(options, layout),
        store(layout, options.precision, options.backend, initial_parameters(layout, options.seed)) {
    for (std::size_t i = 0; i < layout.layers.size(); ++i) {
      BatchNorm<float>* norm = net.batch_norm(i);
      if (norm == nullptr) continue;
      const auto statistics = [&](const char* name, float* data) {
        const TensorView view{data, layout.layers[i].outputs, DType::kFloat32, options.backend->device()};
        buffers.push_back({fmt::format("layer{}.norm.{}", i, name), view});
      };
      statistics("running_mean", norm->running_mean());
      statistics("running_var", norm->running_var());
    }
  }

  MlpOptions options;
  MlpLayout layout;
  MlpNet<float> net;
  ParameterStore store;
  std::vector<NamedBuffer> buffers;
};

Mlp::Mlp(const MlpOptions& options) {
  check_options(options);
  impl_ = std::make_unique<Impl>(options);
}
Mlp::~Mlp() = default;
Mlp::Mlp(Mlp&&) noexcept = default;
Mlp& Mlp::operator=(Mlp&&) noexcept = default;

std::span<const Parameter> Mlp::parameters() const noexcept { return impl_->store.parameters(); }
std::span<const NamedBuffer> Mlp::buffers() const noexcept { return impl_->buffers; }

void Mlp::backward(std::span<const float> features, std::span<const std::int32_t> labels, float loss_scale) {
  check_batch(impl_->options, Mode::kTraining, features, labels);
  check_loss_scale(loss_scale);
  impl_->net.backward({features, labels}, impl_->store.float_params(), loss_scale, impl_->store.grads());
  impl_->store.finish_grads();
}

double Mlp::take_loss_sum() { return impl_->net.take_loss_sum(); }

Evaluation Mlp::evaluate(std::span<const float> features, std::span<const std::int32_t> labels) {
  check_batch(impl_->options, Mode::kInference, features, labels);
  const std::size_t inputs = impl_->options.widths.front(), classes = impl_->options.widths.back();
  const float* params = impl_->store.float_params();
  std::vector<float> logits(std::min(kEvaluationRows, labels.size()) * classes);
  double loss_sum = 0;
  std::size_t num_hits = 0;
  for (std::size_t begin = 0; begin < labels.size(); begin += kEvaluationRows) {
    const std::size_t rows = std::min(kEvaluationRows, labels.size() - begin);
    const Batch<float> slice{features.subspan(begin * inputs, rows * inputs), labels.subspan(begin, rows)};
    const float* device_logits = impl_->net.forward(Mode::kInference, slice, params);
    impl_->options.backend->memory().download(logits.data(), device_logits, rows * classes * sizeof(float));
    for (std::size_t r = 0; r < rows; ++r) {
      const auto row = std::span<const float>(logits).subspan(r * classes, classes);
      const auto label = static_cast<std::size_t>(slice.labels[r]);
      loss_sum += cross_entropy(row, label);
      num_hits += label_wins(row, label) ? 1 : 0;
    }
  }
  const auto num_rows = static_cast<double>(labels.size());
  return {loss_sum / num_rows, static_cast<double>(num_hits) / num_rows};
}

}  // namespace gradfuse::nn
