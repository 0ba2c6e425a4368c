#include <gradfuse/nn/mlp.hpp>

#include "src/nn/half_panels.hpp"
#include "src/nn/mlp_checks.hpp"
#include "src/nn/mlp_layout.hpp"
#include "src/nn/mlp_net.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace gradfuse::nn {
namespace {

// Rows are independent in inference, so slices give the same answer and a large test set needs no more memory.
constexpr std::size_t kEvaluationRows = 256;

}  // namespace

struct Mlp::Impl {
  explicit Impl(const MlpOptions& from)
      : options(from),
        layout(make_layout(options)),
        net(options, layout),
        master(initial_parameters(layout, options.seed)),
        grads(layout.numel, 0.0f) {
    if (is_half()) {
      model.resize(layout.numel);
      half_grads.resize(layout.numel);
      panels.resize(layout.numel);
      narrow(master, half_view(model));
    }
    list_parameters();
    list_buffers();
  }

  bool is_half() const { return options.precision != DType::kFloat32; }

  TensorView half_view(std::span<std::uint16_t> flat) const { return {flat.data(), flat.size(), options.precision}; }

  /// What forward and backward read: the master itself, or the model copy widened.
  std::span<const float> float_params() {
    if (!is_half()) return master;
    widen(half_view(model), panels);
    return panels;
  }

  void list_parameters() {
    for (const NamedSegment& named : layout.parameters) {
      Parameter parameter{named.name, named.shape, view_of(named.segment.of(std::span(master))), {}, {}};
      if (is_half()) {
        parameter.model = half_view(named.segment.of(std::span(model)));
        parameter.grad = half_view(named.segment.of(std::span(half_grads)));
      } else {
        parameter.grad = view_of(named.segment.of(std::span(grads)));
      }
      parameters.push_back(std::move(parameter));
    }
  }

  void list_buffers() {
    for (std::size_t i = 0; i < layout.layers.size(); ++i) {
      if (BatchNorm<float>* norm = net.batch_norm(i)) {
        buffers.push_back({fmt::format("layer{}.norm.running_mean", i), view_of(norm->running_mean())});
        buffers.push_back({fmt::format("layer{}.norm.running_var", i), view_of(norm->running_var())});
      }
    }
  }

  MlpOptions options;
  MlpLayout layout;
  MlpNet<float> net;
  // Flat, as the layout says; the lower three are empty in float32.
  std::vector<float> master, grads;
  std::vector<std::uint16_t> model, half_grads;
  std::vector<float> panels;  // the model copy, widened
  std::vector<Parameter> parameters;
  std::vector<NamedBuffer> buffers;
};

Mlp::Mlp(const MlpOptions& options) {
  check_options(options);
  impl_ = std::make_unique<Impl>(options);
}
Mlp::~Mlp() = default;
Mlp::Mlp(Mlp&&) noexcept = default;
Mlp& Mlp::operator=(Mlp&&) noexcept = default;

std::span<const Parameter> Mlp::parameters() const noexcept { return impl_->parameters; }
std::span<const NamedBuffer> Mlp::buffers() const noexcept { return impl_->buffers; }

double Mlp::backward(std::span<const float> features, std::span<const std::int32_t> labels, float loss_scale) {
  check_batch(impl_->options, Mode::kTraining, features, labels);
  check_loss_scale(loss_scale);
  const double loss = impl_->net.backward({features, labels}, impl_->float_params(), loss_scale, impl_->grads);
  if (impl_->is_half()) narrow(impl_->grads, impl_->half_view(impl_->half_grads));
  return loss;
}

Evaluation Mlp::evaluate(std::span<const float> features, std::span<const std::int32_t> labels) {
  check_batch(impl_->options, Mode::kInference, features, labels);
  const std::size_t inputs = impl_->options.widths.front(), classes = impl_->options.widths.back();
  const std::span<const float> params = impl_->float_params();
  double loss_sum = 0;
  std::size_t num_hits = 0;
  for (std::size_t begin = 0; begin < labels.size(); begin += kEvaluationRows) {
    const std::size_t rows = std::min(kEvaluationRows, labels.size() - begin);
    const Batch<float> slice{features.subspan(begin * inputs, rows * inputs), labels.subspan(begin, rows)};
    const std::span<const float> logits = impl_->net.forward(Mode::kInference, slice, params);
    for (std::size_t r = 0; r < rows; ++r) {
      const std::span<const float> row = logits.subspan(r * classes, classes);
      const auto label = static_cast<std::size_t>(slice.labels[r]);
      loss_sum += static_cast<double>(log_sum_exp(row)) - static_cast<double>(row[label]);
      num_hits += label_wins(row, label) ? 1 : 0;
    }
  }
  const auto num_rows = static_cast<double>(labels.size());
  return {loss_sum / num_rows, static_cast<double>(num_hits) / num_rows};
}

}  // namespace gradfuse::nn
