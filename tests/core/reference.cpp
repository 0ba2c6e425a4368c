#include "tests/core/reference.hpp"

#include <cmath>

#include "kernels/element/scalar.hpp"
#include "src/core/hyper_parameters.hpp"

namespace gradfuse::test {

double reference_sum(std::vector<double> terms) {
  if (terms.empty()) return 0.0;
  do {
    std::vector<double> sums;
    for (std::size_t begin = 0; begin < terms.size(); begin += 4096) {
      double lanes[256] = {};
      for (std::size_t i = begin; i < std::min(begin + 4096, terms.size()); ++i) lanes[(i - begin) % 256] += terms[i];
      for (int half = 128; half >= 1; half /= 2) {
        for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
      }
      sums.push_back(lanes[0]);
    }
    terms = std::move(sums);
  } while (terms.size() > 1);
  return terms[0];
}

void ReferenceTrainer::add_tensor(const HostTensor& param, DType model, bool has_model) {
  ReferenceTensor tensor;
  tensor.param = param;
  if (has_model) tensor.model = HostTensor(model, param.numel());
  for (HostTensor* state : {&tensor.exp_avg, &tensor.exp_avg_sq, &tensor.max_exp_avg_sq, &tensor.momentum_buffer}) {
    *state = HostTensor(DType::kFloat32, param.numel());
  }
  tensor.acc.resize(param.numel());
  tensors.push_back(std::move(tensor));
}

void ReferenceTrainer::add(const std::vector<const HostTensor*>& grads, double weight, double count) {
  total_ += count;
  if (weight == 0.0) return;
  const auto w = static_cast<float>(weight);
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (grads[t] == nullptr) continue;
    ReferenceTensor& tensor = tensors[t];
    for (std::size_t i = 0; i < tensor.acc.size(); ++i) {
      if (accumulate_ == DType::kFloat64) {
        const double g = grads[t]->get(i);
        tensor.acc[i] = tensor.has_value ? element::accumulate_later(double{w}, g, tensor.acc[i])
                                         : element::accumulate_first(double{w}, g);
      } else {
        const auto g = static_cast<float>(grads[t]->get(i));
        tensor.acc[i] = tensor.has_value ? element::accumulate_later(w, g, static_cast<float>(tensor.acc[i]))
                                         : element::accumulate_first(w, g);
      }
    }
    tensor.has_value = true;
  }
}

StepReport ReferenceTrainer::step(std::optional<double> max_norm, double loss_scale) {
  std::vector<double> tensor_sums;
  for (const ReferenceTensor& tensor : tensors) {
    std::vector<double> squares;
    for (std::size_t i = 0; tensor.has_value && i < tensor.acc.size(); ++i) {
      const double x = static_cast<float>(tensor.acc[i]);
      squares.push_back(x * x);
    }
    tensor_sums.push_back(reference_sum(squares));
  }
  StepReport report{.norm = std::sqrt(reference_sum(tensor_sums)) / (loss_scale * total_),
                    .loss_scale = static_cast<float>(loss_scale),
                    .total_count = total_};
  if (max_norm) report.clip_coef = std::min(1.0, *max_norm / (report.norm + 1e-6));
  if (total_ == 0.0) {
    report.outcome = StepOutcome::kEmptyTotal;
  } else if (!(report.norm <= std::numeric_limits<float>::max())) {
    report.outcome = StepOutcome::kNonFinite;
  }
  for (ReferenceTensor& tensor : tensors) {
    if (report.outcome == StepOutcome::kApplied && tensor.has_value) {
      update(tensor, report.clip_coef / (loss_scale * total_));
    }
    tensor.has_value = false;
  }
  total_ = 0.0;
  return report;
}

namespace {
struct AdamState {
  float p, m, v, v_max;
};
template <bool kL2, bool kAmsgrad>
AdamState adam_element(float grad, AdamState s, const element::AdamCoefs<float>& coefs) {
  element::adam_update<kL2, kAmsgrad>(grad, s.p, s.m, s.v, s.v_max, coefs);
  return s;
}
struct SgdState {
  float p, buffer;
};
template <bool kL2, element::Momentum kMomentum, bool kNesterov>
SgdState sgd_element(float grad, SgdState s, const element::SgdCoefs<float>& coefs) {
  element::sgd_update<kL2, kMomentum, kNesterov>(grad, s.p, s.buffer, coefs);
  return s;
}
template <bool kL2>
auto pick_sgd(const SgdOptions& o, bool is_first) {
  using enum element::Momentum;
  if (o.momentum == 0.0) return sgd_element<kL2, kNone, false>;
  if (is_first) return o.nesterov ? sgd_element<kL2, kFirst, true> : sgd_element<kL2, kFirst, false>;
  return o.nesterov ? sgd_element<kL2, kLater, true> : sgd_element<kL2, kLater, false>;
}
float at(const HostTensor& tensor, std::size_t i) { return static_cast<float>(tensor.get(i)); }
}  // namespace

void ReferenceTrainer::update(ReferenceTensor& tensor, double grad_scale) {
  ++tensor.step;
  for (std::size_t i = 0; i < tensor.acc.size(); ++i) {
    const auto grad = static_cast<float>(tensor.acc[i]);
    std::visit(
        [&](const auto& o) {
          const auto hyper = hyper_parameters(o);
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(o)>, SgdOptions>) {
            const auto update =
                o.weight_decay != 0.0 ? pick_sgd<true>(o, tensor.step == 1) : pick_sgd<false>(o, tensor.step == 1);
            const SgdState next = update(grad, {at(tensor.param, i), at(tensor.momentum_buffer, i)},
                                         element::sgd_coefs(hyper, grad_scale));
            tensor.param.set(i, next.p);
            tensor.momentum_buffer.set(i, next.buffer);
          } else {
            const bool l2 = !hyper.is_decoupled && o.weight_decay != 0.0;
            const auto update = l2 ? (o.amsgrad ? adam_element<true, true> : adam_element<true, false>)
                                   : (o.amsgrad ? adam_element<false, true> : adam_element<false, false>);
            const AdamState next = update(
                grad,
                {at(tensor.param, i), at(tensor.exp_avg, i), at(tensor.exp_avg_sq, i), at(tensor.max_exp_avg_sq, i)},
                element::adam_coefs(hyper, tensor.step, grad_scale));
            tensor.param.set(i, next.p);
            tensor.exp_avg.set(i, next.m);
            tensor.exp_avg_sq.set(i, next.v);
            tensor.max_exp_avg_sq.set(i, next.v_max);
          }
        },
        options_);
    if (tensor.model.numel() > 0) tensor.model.set(i, tensor.param.get(i));
  }
}

}  // namespace gradfuse::test
