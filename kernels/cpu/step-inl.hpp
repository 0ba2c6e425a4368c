// Loops of the optimizer steps. Limited by memory: 12 bytes in and 12 out an element for Adam's parameter and moments,
// beside the value (4 accumulated, 2 pending).

GF_ELEMENT AdamCoefs<F32> splat(const element::AdamCoefs<float>& c) {
  return {splat(c.grad_scale),
          splat(c.one_minus_beta1),
          splat(c.beta2),
          splat(c.one_minus_beta2),
          splat(c.inv_sqrt_bias_correction2),
          splat(c.eps),
          splat(c.neg_step_size),
          splat(c.decay),
          splat(c.weight_decay)};
}
GF_ELEMENT SgdCoefs<F32> splat(const element::SgdCoefs<float>& c) {
  return {splat(c.grad_scale), splat(c.neg_lr), splat(c.momentum), splat(c.one_minus_dampening), splat(c.weight_decay)};
}

// The coefficients are spread inside the lambdas: captured, they would pass through memory for each run.
template <bool kL2, bool kAmsgrad>
void adam_loop(const element::AdamCoefs<float>& coefs, const ValueRun& run, const AdamRun& to, std::size_t numel) {
  with_value(run, numel, [&](const auto& value) GF_ATTR {
    const AdamCoefs<F32> c = splat(coefs);
    const AdamRun at = to;
    for_each_vector(0, numel, [&](std::size_t i, auto lanes) GF_ATTR {
      F32 p = load(at.param + i, lanes), m = load(at.exp_avg + i, lanes), v = load(at.exp_avg_sq + i, lanes);
      F32 v_max = v;
      if constexpr (kAmsgrad) v_max = load(at.max_exp_avg_sq + i, lanes);
      adam_update<kL2, kAmsgrad>(value.load_at(i, lanes), p, m, v, v_max, c);
      store(p, at.param + i, lanes);
      store(m, at.exp_avg + i, lanes);
      store(v, at.exp_avg_sq + i, lanes);
      if constexpr (kAmsgrad) store(v_max, at.max_exp_avg_sq + i, lanes);
    });
  });
}

template <bool kL2, Momentum kMomentum, bool kNesterov>
void sgd_loop(const element::SgdCoefs<float>& coefs, const ValueRun& run, const SgdRun& to, std::size_t numel) {
  with_value(run, numel, [&](const auto& value) GF_ATTR {
    const SgdCoefs<F32> c = splat(coefs);
    const SgdRun at = to;
    for_each_vector(0, numel, [&](std::size_t i, auto lanes) GF_ATTR {
      F32 p = load(at.param + i, lanes), buffer = p;
      if constexpr (kMomentum == Momentum::kLater) buffer = load(at.momentum_buffer + i, lanes);
      sgd_update<kL2, kMomentum, kNesterov>(value.load_at(i, lanes), p, buffer, c);
      store(p, at.param + i, lanes);
      if constexpr (kMomentum != Momentum::kNone) store(buffer, at.momentum_buffer + i, lanes);
    });
  });
}
