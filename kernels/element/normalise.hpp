// What layer and batch normalisation share: one is along rows, the other along columns. Statistics are FP64. Included
// by scalar.hpp: no guard, no includes.

/// Added to the variance; PyTorch's default.
inline constexpr double kNormEps = 1e-5;

GF_ELEMENT double reciprocal_deviation(double variance) { return 1.0 / sqrt(variance + kNormEps); }

template <class F>
GF_ELEMENT F normalised(F x, double mean, double reciprocal_deviation) {
  return static_cast<F>((static_cast<double>(x) - mean) * reciprocal_deviation);
}

/// Gradient of x where x_hat = (x - mean) / deviation, from the gradient of x_hat and two means over the group that was
/// normalised: of that gradient, and of its product with x_hat. Source: Ioffe & Szegedy 2015, section 3.
template <class F>
GF_ELEMENT F norm_input_gradient(F x_hat, F x_hat_grad, F mean_grad, F mean_grad_x_hat, F reciprocal_deviation) {
  return reciprocal_deviation * (x_hat_grad - mean_grad - x_hat * mean_grad_x_hat);
}

/// A running statistic after it moved by the share `momentum` of the way to what was seen.
template <class F>
GF_ELEMENT F moved_running(F running, double seen, double momentum) {
  return static_cast<F>(fma(momentum, seen - static_cast<double>(running), static_cast<double>(running)));
}
