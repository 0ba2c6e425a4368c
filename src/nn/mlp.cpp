#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <gradfuse/nn/mlp.hpp>
#include <gradfuse/passes.hpp>
#include <optional>
#include <utility>

#include "src/backend/backend.hpp"
#include "src/nn/mlp_checks.hpp"
#include "src/nn/mlp_layout.hpp"
#include "src/nn/mlp_net.hpp"

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

/// A pass between two arrays of parameters, made again and again.
class Cast {
 public:
  Cast(const TensorView& from, const TensorView& to, const std::shared_ptr<const Backend>& backend)
      : from_({from}, backend), to_({to}, backend) {}
  void operator()() const { cast(from_, to_); }

 private:
  ConstTensorList from_;
  TensorList to_;
};

}  // namespace

struct Mlp::Impl {
  explicit Impl(const MlpOptions& from) : options(from), layout(make_layout(options)), net(options, layout) {
    master.grow(memory(), layout.numel);
    grads.grow(memory(), layout.numel);
    const std::vector<float> initial = initial_parameters(layout, options.seed);
    memory().upload(master.data(), initial.data(), layout.numel * sizeof(float));
    if (is_half()) make_half();
    list_parameters();
    list_buffers();
  }

  const DeviceMemory& memory() const { return options.backend->memory(); }
  bool is_half() const { return options.precision != DType::kFloat32; }
  TensorView view(void* data, const Segment& segment, DType dtype) const {
    return {static_cast<std::byte*>(data) + segment.offset * element_size(dtype), segment.numel, dtype,
            options.backend->device()};
  }

  void make_half() {
    model.grow(memory(), layout.numel);
    half_grads.grow(memory(), layout.numel);
    panels.grow(memory(), layout.numel);
    const Segment all{0, layout.numel};
    const TensorView model_view = view(model.data(), all, options.precision);
    widen_model.emplace(model_view, view(panels.data(), all, DType::kFloat32), options.backend);
    narrow_grads.emplace(view(grads.data(), all, DType::kFloat32), view(half_grads.data(), all, options.precision),
                         options.backend);
    Cast(view(master.data(), all, DType::kFloat32), model_view, options.backend)();
  }

  /// What forward and backward read: the master itself, or the model copy widened.
  const float* float_params() {
    if (!is_half()) return master.data();
    (*widen_model)();
    return panels.data();
  }

  void list_parameters() {
    for (const NamedSegment& named : layout.parameters) {
      Parameter parameter{named.name, named.shape, view(master.data(), named.segment, DType::kFloat32), {}, {}};
      if (is_half()) {
        parameter.model = view(model.data(), named.segment, options.precision);
        parameter.grad = view(half_grads.data(), named.segment, options.precision);
      } else {
        parameter.grad = view(grads.data(), named.segment, DType::kFloat32);
      }
      parameters.push_back(std::move(parameter));
    }
  }

  void list_buffers() {
    for (std::size_t i = 0; i < layout.layers.size(); ++i) {
      BatchNorm<float>* norm = net.batch_norm(i);
      if (norm == nullptr) continue;
      const Segment columns{0, layout.layers[i].outputs};
      buffers.push_back(
          {fmt::format("layer{}.norm.running_mean", i), view(norm->running_mean(), columns, DType::kFloat32)});
      buffers.push_back(
          {fmt::format("layer{}.norm.running_var", i), view(norm->running_var(), columns, DType::kFloat32)});
    }
  }

  MlpOptions options;
  MlpLayout layout;
  MlpNet<float> net;
  // Flat, as the layout says; the lower three are empty in float32.
  DeviceArray<float> master, grads;
  DeviceArray<std::uint16_t> model, half_grads;
  DeviceArray<float> panels;  // the model copy, widened
  std::optional<Cast> widen_model, narrow_grads;
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

void Mlp::backward(std::span<const float> features, std::span<const std::int32_t> labels, float loss_scale) {
  check_batch(impl_->options, Mode::kTraining, features, labels);
  check_loss_scale(loss_scale);
  impl_->net.backward({features, labels}, impl_->float_params(), loss_scale, impl_->grads.data());
  if (impl_->is_half()) (*impl_->narrow_grads)();
}

double Mlp::take_loss_sum() { return impl_->net.take_loss_sum(); }

Evaluation Mlp::evaluate(std::span<const float> features, std::span<const std::int32_t> labels) {
  check_batch(impl_->options, Mode::kInference, features, labels);
  const std::size_t inputs = impl_->options.widths.front(), classes = impl_->options.widths.back();
  const float* params = impl_->float_params();
  std::vector<float> logits(std::min(kEvaluationRows, labels.size()) * classes);
  double loss_sum = 0;
  std::size_t num_hits = 0;
  for (std::size_t begin = 0; begin < labels.size(); begin += kEvaluationRows) {
    const std::size_t rows = std::min(kEvaluationRows, labels.size() - begin);
    const Batch<float> slice{features.subspan(begin * inputs, rows * inputs), labels.subspan(begin, rows)};
    const float* device_logits = impl_->net.forward(Mode::kInference, slice, params);
    impl_->memory().download(logits.data(), device_logits, rows * classes * sizeof(float));
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
