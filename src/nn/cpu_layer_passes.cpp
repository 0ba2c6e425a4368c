#include "src/nn/cpu_layer_passes.hpp"

#include <algorithm>
#include <type_traits>

#include "kernels/element/lane_sum.hpp"
#include "kernels/element/scalar.hpp"
#include "src/nn/in_parallel.hpp"

namespace gradfuse::nn {
namespace {

using element::kSumLanes;

/// Calls `body(begin, count)` for runs that make up [0, numel).
template <class Body>
void for_each_run(std::size_t numel, int threads, Body body) {
  constexpr std::size_t kRun = 4096;
  in_parallel((numel + kRun - 1) / kRun, numel, threads,
              [&](std::size_t run) { body(run * kRun, std::min(kRun, numel - run * kRun)); });
}

template <class T>
void put(T value, T& to, Destination destination) {
  to = destination == Destination::kAddTo ? to + value : value;
}

/// Calls `store(c, sum)` with the sum of `value(row, c)` over the rows, for each column. Rows are read in order.
template <class S, class Value, class Store>
void for_each_column_sum(const Extent& extent, int threads, Value value, Store store) {
  constexpr std::size_t kBlock = 32;  // columns whose lanes stay in the L1 cache
  in_parallel((extent.cols + kBlock - 1) / kBlock, extent.numel(), threads, [&](std::size_t block) {
    const std::size_t begin = block * kBlock, num = std::min(kBlock, extent.cols - begin);
    S lanes[kSumLanes][kBlock] = {};
    for (std::size_t r = 0; r < extent.rows; ++r) {
      S* to = lanes[r % kSumLanes];
      for (std::size_t c = 0; c < num; ++c) to[c] += value(r, begin + c);
    }
    for (std::size_t half = kSumLanes / 2; half > 0; half /= 2) {
      for (std::size_t l = 0; l < half; ++l) {
        for (std::size_t c = 0; c < num; ++c) lanes[l][c] += lanes[l + half][c];
      }
    }
    for (std::size_t c = 0; c < num; ++c) store(begin + c, lanes[0][c]);
  });
}

/// `x_hat(row, c)` was normalised; y_grad is [rows, cols].
template <class T, class XHat>
void norm_parameter_gradients(const Extent& extent, int threads, XHat x_hat, const T* y_grad,
                              const NormGradients<T>& to) {
  for_each_column_sum<T>(
      extent, threads, [&](std::size_t r, std::size_t c) { return y_grad[r * extent.cols + c] * x_hat(r, c); },
      [&](std::size_t c, T sum) { put(sum, to.weight[c], to.destination); });
  for_each_column_sum<T>(
      extent, threads, [&](std::size_t r, std::size_t c) { return y_grad[r * extent.cols + c]; },
      [&](std::size_t c, T sum) { put(sum, to.bias[c], to.destination); });
}

template <class T>
void normalise_columns(const Extent& extent, const NormParameters<T>& params, T* x, const BatchNormed<T>& kept) {
  for (std::size_t r = 0; r < extent.rows; ++r) {
    for (std::size_t c = 0; c < extent.cols; ++c) {
      const std::size_t i = r * extent.cols + c;
      const T x_hat = element::normalised(x[i], kept.mean[c], kept.reciprocal_deviation[c]);
      kept.x_hat[i] = x_hat;
      x[i] = params.weight[c] * x_hat + params.bias[c];
    }
  }
}

/// Calls `body(formula)` with the activation's formulas.
template <class Body>
void with_activation(Activation activation, Body body) {
  switch (activation) {
    case Activation::kRelu: return body(element::Relu{});
    case Activation::kGelu: return body(element::Gelu{});
  }
}

}  // namespace

template <class T>
void CpuLayerPasses<T>::gemm(const GemmSpec& spec, const T* a, const T* b, T* c) {
  gemm_.multiply(spec, a, b, c);
}

template <class T>
void CpuLayerPasses<T>::add_row(const Extent& extent, const T* x, const T* row, T* y) {
  in_parallel(extent.rows, extent.numel(), threads_, [&](std::size_t r) {
    T* to = y + r * extent.cols;
    if (x == nullptr) {
      std::copy_n(row, extent.cols, to);
    } else {
      const T* from = x + r * extent.cols;
      for (std::size_t c = 0; c < extent.cols; ++c) to[c] = from[c] + row[c];
    }
  });
}

template <class T>
void CpuLayerPasses<T>::column_sums(const Extent& extent, const T* x, T* sums, Destination destination) {
  for_each_column_sum<T>(
      extent, threads_, [&](std::size_t r, std::size_t c) { return x[r * extent.cols + c]; },
      [&](std::size_t c, T sum) { put(sum, sums[c], destination); });
}

template <class T>
void CpuLayerPasses<T>::activate(Activation activation, std::size_t numel, const T* x, T* y) {
  if constexpr (std::is_same_v<T, float>) {
    const auto loop = loops_.activate[static_cast<std::size_t>(activation)];
    for_each_run(numel, threads_, [&](std::size_t begin, std::size_t count) { loop(x + begin, y + begin, count); });
  } else {
    with_activation(activation, [&](auto formula) {
      for (std::size_t i = 0; i < numel; ++i) y[i] = formula.value(x[i]);
    });
  }
}

template <class T>
void CpuLayerPasses<T>::activation_gradient(Activation activation, std::size_t numel, const T* x, T* grad) {
  if constexpr (std::is_same_v<T, float>) {
    const auto loop = loops_.activation_gradient[static_cast<std::size_t>(activation)];
    for_each_run(numel, threads_, [&](std::size_t begin, std::size_t count) { loop(x + begin, grad + begin, count); });
  } else {
    with_activation(activation, [&](auto formula) {
      for (std::size_t i = 0; i < numel; ++i) grad[i] = grad[i] * formula.derivative(x[i]);
    });
  }
}

template <class T>
void CpuLayerPasses<T>::layer_norm(const Extent& extent, const NormParameters<T>& params, const T* x, T* y,
                                   const RowStatistics& kept) {
  const auto cols = static_cast<double>(extent.cols);
  in_parallel(extent.rows, extent.numel(), threads_, [&](std::size_t r) {
    const T* row = x + r * extent.cols;
    T* to = y + r * extent.cols;
    const double mean =
        element::lane_sum<double>(extent.cols, [&](std::size_t c) { return static_cast<double>(row[c]); }) / cols;
    const double squares = element::lane_sum<double>(extent.cols, [&](std::size_t c) {
      const double deviation = static_cast<double>(row[c]) - mean;
      return deviation * deviation;
    });
    const double reciprocal = element::reciprocal_deviation(squares / cols);
    kept.mean[r] = mean;
    kept.reciprocal_deviation[r] = reciprocal;
    for (std::size_t c = 0; c < extent.cols; ++c) {
      to[c] = params.weight[c] * element::normalised(row[c], mean, reciprocal) + params.bias[c];
    }
  });
}

template <class T>
void CpuLayerPasses<T>::layer_norm_gradient(const Extent& extent, const T* weight, const T* x,
                                            const RowStatistics& kept, const T* y_grad, T* x_grad,
                                            Destination destination, const NormGradients<T>& gradients) {
  const auto x_hat = [&](std::size_t r, std::size_t c) {
    return element::normalised(x[r * extent.cols + c], kept.mean[r], kept.reciprocal_deviation[r]);
  };
  norm_parameter_gradients(extent, threads_, x_hat, y_grad, gradients);
  const auto cols = static_cast<double>(extent.cols);
  in_parallel(extent.rows, extent.numel(), threads_, [&](std::size_t r) {
    const T* grad = y_grad + r * extent.cols;
    const auto x_hat_grad = [&](std::size_t c) { return grad[c] * weight[c]; };
    const double sum =
        element::lane_sum<double>(extent.cols, [&](std::size_t c) { return static_cast<double>(x_hat_grad(c)); });
    const double product_sum = element::lane_sum<double>(extent.cols, [&](std::size_t c) {
      return static_cast<double>(x_hat_grad(c)) * static_cast<double>(x_hat(r, c));
    });
    const auto mean_grad = static_cast<T>(sum / cols), mean_product = static_cast<T>(product_sum / cols);
    const auto reciprocal = static_cast<T>(kept.reciprocal_deviation[r]);
    for (std::size_t c = 0; c < extent.cols; ++c) {
      put(element::norm_input_gradient(x_hat(r, c), x_hat_grad(c), mean_grad, mean_product, reciprocal),
          x_grad[r * extent.cols + c], destination);
    }
  });
}

template <class T>
void CpuLayerPasses<T>::batch_norm(const Extent& extent, const NormParameters<T>& params, double momentum, T* x,
                                   const BatchNormed<T>& kept) {
  const auto rows = static_cast<double>(extent.rows);
  for_each_column_sum<double>(
      extent, threads_, [&](std::size_t r, std::size_t c) { return static_cast<double>(x[r * extent.cols + c]); },
      [&](std::size_t c, double sum) { kept.mean[c] = sum / rows; });
  for_each_column_sum<double>(
      extent, threads_,
      [&](std::size_t r, std::size_t c) {
        const double deviation = static_cast<double>(x[r * extent.cols + c]) - kept.mean[c];
        return deviation * deviation;
      },
      [&](std::size_t c, double squares) {
        kept.reciprocal_deviation[c] = element::reciprocal_deviation(squares / rows);
        kept.running_mean[c] = element::moved_running(kept.running_mean[c], kept.mean[c], momentum);
        kept.running_var[c] = element::moved_running(kept.running_var[c], squares / (rows - 1.0), momentum);
      });
  normalise_columns(extent, params, x, kept);
}

template <class T>
void CpuLayerPasses<T>::batch_norm_inference(const Extent& extent, const NormParameters<T>& params, T* x,
                                             const BatchNormed<T>& kept) {
  for (std::size_t c = 0; c < extent.cols; ++c) {
    kept.mean[c] = kept.running_mean[c];
    kept.reciprocal_deviation[c] = element::reciprocal_deviation(kept.running_var[c]);
  }
  normalise_columns(extent, params, x, kept);
}

template <class T>
void CpuLayerPasses<T>::batch_norm_gradient(const Extent& extent, const T* weight, const BatchNormed<T>& kept, T* grad,
                                            const NormGradients<T>& gradients) {
  norm_parameter_gradients(
      extent, threads_, [&](std::size_t r, std::size_t c) { return kept.x_hat[r * extent.cols + c]; }, grad, gradients);
  const auto rows = static_cast<double>(extent.rows);
  const auto x_hat_grad = [&](std::size_t r, std::size_t c) { return grad[r * extent.cols + c] * weight[c]; };
  mean_grad_.resize(extent.cols);
  mean_product_.resize(extent.cols);
  for_each_column_sum<double>(
      extent, threads_, [&](std::size_t r, std::size_t c) { return static_cast<double>(x_hat_grad(r, c)); },
      [&](std::size_t c, double sum) { mean_grad_[c] = static_cast<T>(sum / rows); });
  for_each_column_sum<double>(
      extent, threads_,
      [&](std::size_t r, std::size_t c) {
        return static_cast<double>(x_hat_grad(r, c)) * static_cast<double>(kept.x_hat[r * extent.cols + c]);
      },
      [&](std::size_t c, double sum) { mean_product_[c] = static_cast<T>(sum / rows); });
  for (std::size_t r = 0; r < extent.rows; ++r) {
    for (std::size_t c = 0; c < extent.cols; ++c) {
      const std::size_t i = r * extent.cols + c;
      grad[i] = element::norm_input_gradient(kept.x_hat[i], x_hat_grad(r, c), mean_grad_[c], mean_product_[c],
                                             static_cast<T>(kept.reciprocal_deviation[c]));
    }
  }
}

template <class T>
void CpuLayerPasses<T>::cross_entropy(const Extent& extent, const std::int32_t* labels, T row_scale, T* logits,
                                      double* row_losses) {
  in_parallel(extent.rows, extent.numel(), threads_, [&](std::size_t r) {
    T* row = logits + r * extent.cols;
    if (labels[r] < 0) {
      std::fill_n(row, extent.cols, T(0));
      row_losses[r] = 0.0;
      return;
    }
    T& at_label = row[static_cast<std::size_t>(labels[r])];
    T largest = row[0];
    for (std::size_t c = 1; c < extent.cols; ++c) largest = element::max(row[c], largest);
    T sum;
    if constexpr (std::is_same_v<T, float>) {
      sum = loops_.sum_of_exponentials(row, largest, extent.cols);
    } else {
      sum = element::lane_sum<T>(extent.cols, [&](std::size_t c) { return element::exp(row[c] - largest); });
    }
    const T log_sum = largest + element::log_from_1(sum);
    row_losses[r] = static_cast<double>(log_sum) - static_cast<double>(at_label);
    const T label_gradient = row_scale * (element::exp(at_label - log_sum) - T(1));
    if constexpr (std::is_same_v<T, float>) {
      loops_.softmax_gradient(log_sum, row_scale, row, extent.cols);
    } else {
      for (std::size_t c = 0; c < extent.cols; ++c) row[c] = row_scale * element::exp(row[c] - log_sum);
    }
    at_label = label_gradient;
  });
}

template <class T>
void CpuLayerPasses<T>::add_losses(std::size_t rows, const double* row_losses, double* loss_sum) {
  *loss_sum += element::lane_sum<double>(rows, [&](std::size_t r) { return row_losses[r]; });
}

template class CpuLayerPasses<float>;
template class CpuLayerPasses<double>;

}  // namespace gradfuse::nn
