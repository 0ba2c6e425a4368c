// SGD with momentum, dampening, Nesterov and L2 decay, in the order of torch.optim.SGD (Sutskever et al. 2013 for the
// Nesterov form). Included per SIMD target: no guard, no includes.

template <class F>
struct SgdCoefs {
  F grad_scale;  // negative when the objective is maximised
  F neg_lr;
  F momentum;
  F one_minus_dampening;
  F weight_decay;
};

/// What the momentum buffer holds when the step begins. A tensor's first applied step assigns the gradient, undampened.
enum class Momentum { kNone, kFirst, kLater };

template <bool kL2, Momentum kMomentum, bool kNesterov, class F>
GF_ELEMENT void sgd_update(F grad, F& param, F& momentum_buffer, const SgdCoefs<F>& c) {
  grad = grad * c.grad_scale;
  if constexpr (kL2) grad = fma(c.weight_decay, param, grad);
  if constexpr (kMomentum == Momentum::kFirst) momentum_buffer = grad;
  if constexpr (kMomentum == Momentum::kLater) {
    momentum_buffer = fma(c.one_minus_dampening, grad, c.momentum * momentum_buffer);
  }
  if constexpr (kMomentum != Momentum::kNone) {
    if constexpr (kNesterov) {
      grad = fma(c.momentum, momentum_buffer, grad);
    } else {
      grad = momentum_buffer;
    }
  }
  param = fma(c.neg_lr, grad, param);
}
