// ReLU and the exact GELU, x * cdf(x) (Hendrycks & Gimpel 2016, arXiv:1606.08415). Included per arithmetic type: no
// guard, no includes.

struct Relu {
  /// NaN passes, so that a broken value is seen in the loss.
  template <class F>
  static GF_ELEMENT F value(F x) {
    return max(constant<F>(0.0f), x);
  }
  /// 0 at 0, as in PyTorch.
  template <class F>
  static GF_ELEMENT F derivative(F x) {
    return if_at_most(x, constant<F>(0.0f), constant<F>(0.0f), constant<F>(1.0f));
  }
};

struct Gelu {
  template <class F>
  static GF_ELEMENT F value(F x) {
    return x * normal(x).cdf;
  }
  template <class F>
  static GF_ELEMENT F derivative(F x) {
    const Normal<F> n = normal(x);
    return fma(x, n.density, n.cdf);
  }
};
