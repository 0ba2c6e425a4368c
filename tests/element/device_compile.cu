// Every element formula once, instantiated in a kernel: not run, compiled.
#include "kernels/element/scalar.hpp"

namespace gradfuse::element {

__global__ void every_formula(const float* in, float* out, double* wide) {
  out[0] = accumulate_later(in[0], in[1], accumulate_first(in[0], in[1]));

  const AdamHyperParameters adam{1e-3, 0.9, 0.999, 1e-8, 0.01, true, true, false, true};
  const AdamCoefs<float> adam_c = adam_coefs(adam, 7, wide[0]);
  adam_update<false, false>(in[2], out[1], out[2], out[3], out[4], adam_c);
  adam_update<true, true>(in[2], out[1], out[2], out[3], out[4], adam_c);

  const SgdHyperParameters sgd{1e-3, 0.9, 0.0, 0.01, true, false};
  const SgdCoefs<float> sgd_c = sgd_coefs(sgd, wide[0]);
  sgd_update<false, Momentum::kNone, false>(in[3], out[5], out[6], sgd_c);
  sgd_update<true, Momentum::kFirst, true>(in[3], out[5], out[6], sgd_c);
  sgd_update<true, Momentum::kLater, false>(in[3], out[5], out[6], sgd_c);

  out[7] = float_from_float16(float16_from_float_bits(bits_of_float(in[4])));
  out[8] = float_of_bits(float_bits_from_bfloat16(bfloat16_from_float_bits(bits_of_float(in[5]))));

  wide[3] = judge(wide[1], 1024.0f, wide[2], 1.0).grad_scale;
  const LossScaleRule rule{2.0f, 0.5f, 1.0f, 65536.0f, 2000};
  out[9] = next_loss_scale({in[6], 3}, rule, in[7] > 0.0f).scale;
}

}  // namespace gradfuse::element
