// Layer and batch normalisation, and the sums over rows that gradients of biases and norms are. A warp takes a row, a
// block eight columns. Limited by memory: x is read three times, of which two come from the caches.
#include "kernels/cuda/grid.hpp"
#include "kernels/cuda/lane_sum.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/element/scalar.hpp"

namespace gradfuse::cuda {
namespace {

__device__ inline void put(float value, float* to, bool adds) { store(to, adds ? load(to) + value : value); }

__global__ void __launch_bounds__(kBlockSize) layer_norm_kernel(LayerNormArgs args) {
  const std::uint64_t cols = args.size.cols;
  const auto num_cols = static_cast<double>(cols);
  for_each_matrix_row(args.size.rows, [&](std::uint64_t row) {
    const float* x = args.x + row * cols;
    float* y = args.y + row * cols;
    const double mean =
        lane_sum<double>(cols, [&](std::uint64_t c) { return static_cast<double>(load(x + c)); }) / num_cols;
    const double squares = lane_sum<double>(cols, [&](std::uint64_t c) {
      const double deviation = static_cast<double>(load(x + c)) - mean;
      return deviation * deviation;
    });
    const double reciprocal = element::reciprocal_deviation(squares / num_cols);
    if (threadIdx.x % kWarpSize == 0) {
      store(args.mean + row, mean);
      store(args.reciprocal_deviation + row, reciprocal);
    }
    for (std::uint64_t c = threadIdx.x % kWarpSize; c < cols; c += kWarpSize) {
      store(y + c, load(args.weight + c) * element::normalised(load(x + c), mean, reciprocal) + load(args.bias + c));
    }
  });
}

__global__ void __launch_bounds__(kBlockSize) layer_norm_gradient_kernel(LayerNormGradientArgs args) {
  const std::uint64_t cols = args.size.cols;
  const auto num_cols = static_cast<double>(cols);
  for_each_matrix_row(args.size.rows, [&](std::uint64_t row) {
    const float *x = args.x + row * cols, *y_grad = args.y_grad + row * cols;
    const double mean = load(args.mean + row), reciprocal = load(args.reciprocal_deviation + row);
    const auto x_hat = [&](std::uint64_t c) { return element::normalised(load(x + c), mean, reciprocal); };
    const auto x_hat_grad = [&](std::uint64_t c) { return load(y_grad + c) * load(args.weight + c); };
    const double sum = lane_sum<double>(cols, [&](std::uint64_t c) { return static_cast<double>(x_hat_grad(c)); });
    const double product_sum = lane_sum<double>(
        cols, [&](std::uint64_t c) { return static_cast<double>(x_hat_grad(c)) * static_cast<double>(x_hat(c)); });
    const auto mean_grad = static_cast<float>(sum / num_cols),
               mean_product = static_cast<float>(product_sum / num_cols);
    for (std::uint64_t c = threadIdx.x % kWarpSize; c < cols; c += kWarpSize) {
      put(element::norm_input_gradient(x_hat(c), x_hat_grad(c), mean_grad, mean_product,
                                       static_cast<float>(reciprocal)),
          args.x_grad + row * cols + c, args.adds);
    }
  });
}

__global__ void __launch_bounds__(kColumnBlockSize)
    column_sums_kernel(MatrixSize size, const float* x, float* sums, bool adds) {
  GF_SHARED_ARRAY(scratch, float, kColumnBlockSize);
  const ColumnPlace place = place_in_columns();
  const bool is_column = place.column < size.cols;
  const float sum = column_lane_sum<float>(is_column ? size.rows : 0, place.lane, scratch,
                                           [&](std::uint64_t row) { return load(x + row * size.cols + place.column); });
  if (is_column && place.lane == 0) put(sum, sums + place.column, adds);
}

/// Where the parameters' gradients find x, normalised.
struct LayerNormalised {
  const float* x;
  const double *mean, *reciprocal_deviation;
  __device__ float operator()(std::uint64_t row, std::uint64_t i) const {
    return element::normalised(load(x + i), load(mean + row), load(reciprocal_deviation + row));
  }
};
struct BatchNormalised {
  const float* x_hat;
  __device__ float operator()(std::uint64_t, std::uint64_t i) const { return load(x_hat + i); }
};

template <class Normalised>
__global__ void __launch_bounds__(kColumnBlockSize)
    norm_parameter_gradients_kernel(MatrixSize size, Normalised x_hat, const float* y_grad, NormParameterGradients to) {
  GF_SHARED_ARRAY(scratch, float, kColumnBlockSize);
  const ColumnPlace place = place_in_columns();
  const bool is_column = place.column < size.cols;
  const std::uint64_t rows = is_column ? size.rows : 0;
  const float of_weight = column_lane_sum<float>(rows, place.lane, scratch, [&](std::uint64_t row) {
    const std::uint64_t i = row * size.cols + place.column;
    return load(y_grad + i) * x_hat(row, i);
  });
  const float of_bias = column_lane_sum<float>(
      rows, place.lane, scratch, [&](std::uint64_t row) { return load(y_grad + row * size.cols + place.column); });
  if (!is_column || place.lane != 0) return;
  put(of_weight, to.weight + place.column, to.adds);
  put(of_bias, to.bias + place.column, to.adds);
}

/// A thread's rows of its column.
__device__ inline void normalise_column(const BatchNormArgs& args, const ColumnPlace& place, double mean,
                                        double reciprocal) {
  const float weight = load(args.weight + place.column), bias = load(args.bias + place.column);
  for (std::uint64_t row = place.lane; row < args.size.rows; row += kWarpSize) {
    const std::uint64_t i = row * args.size.cols + place.column;
    const float normalised = element::normalised(load(args.x + i), mean, reciprocal);
    store(args.x_hat + i, normalised);
    store(args.x + i, weight * normalised + bias);
  }
}

__global__ void __launch_bounds__(kColumnBlockSize) batch_norm_kernel(BatchNormArgs args, double momentum) {
  GF_SHARED_ARRAY(scratch, double, kColumnBlockSize);
  const ColumnPlace place = place_in_columns();
  const bool is_column = place.column < args.size.cols;
  const std::uint64_t rows = is_column ? args.size.rows : 0;
  const auto num_rows = static_cast<double>(args.size.rows);
  const auto x = [&](std::uint64_t row) {
    return static_cast<double>(load(args.x + row * args.size.cols + place.column));
  };
  const double mean = column_lane_sum<double>(rows, place.lane, scratch, x) / num_rows;
  const double squares = column_lane_sum<double>(rows, place.lane, scratch, [&](std::uint64_t row) {
    const double deviation = x(row) - mean;
    return deviation * deviation;
  });
  if (!is_column) return;
  const double reciprocal = element::reciprocal_deviation(squares / num_rows);
  if (place.lane == 0) {
    float *running_mean = args.running_mean + place.column, *running_var = args.running_var + place.column;
    store(args.mean + place.column, mean);
    store(args.reciprocal_deviation + place.column, reciprocal);
    store(running_mean, element::moved_running(load(running_mean), mean, momentum));
    store(running_var, element::moved_running(load(running_var), squares / (num_rows - 1.0), momentum));
  }
  normalise_column(args, place, mean, reciprocal);
}

__global__ void __launch_bounds__(kColumnBlockSize) batch_norm_inference_kernel(BatchNormArgs args) {
  const ColumnPlace place = place_in_columns();
  if (place.column >= args.size.cols) return;
  const auto mean = static_cast<double>(load(args.running_mean + place.column));
  const double reciprocal = element::reciprocal_deviation(static_cast<double>(load(args.running_var + place.column)));
  if (place.lane == 0) {
    store(args.mean + place.column, mean);
    store(args.reciprocal_deviation + place.column, reciprocal);
  }
  normalise_column(args, place, mean, reciprocal);
}

__global__ void __launch_bounds__(kColumnBlockSize) batch_norm_gradient_kernel(BatchNormGradientArgs args) {
  GF_SHARED_ARRAY(scratch, double, kColumnBlockSize);
  const ColumnPlace place = place_in_columns();
  const bool is_column = place.column < args.size.cols;
  const std::uint64_t rows = is_column ? args.size.rows : 0;
  const auto num_rows = static_cast<double>(args.size.rows);
  const float weight = is_column ? load(args.weight + place.column) : 0.0f;
  const auto x_hat_grad = [&](std::uint64_t row) {
    return load(args.grad + row * args.size.cols + place.column) * weight;
  };
  const auto x_hat = [&](std::uint64_t row) { return load(args.x_hat + row * args.size.cols + place.column); };
  const double sum = column_lane_sum<double>(rows, place.lane, scratch,
                                             [&](std::uint64_t row) { return static_cast<double>(x_hat_grad(row)); });
  const double product_sum = column_lane_sum<double>(rows, place.lane, scratch, [&](std::uint64_t row) {
    return static_cast<double>(x_hat_grad(row)) * static_cast<double>(x_hat(row));
  });
  if (!is_column) return;
  const auto reciprocal = static_cast<float>(load(args.reciprocal_deviation + place.column));
  for (std::uint64_t row = place.lane; row < rows; row += kWarpSize) {
    store(args.grad + row * args.size.cols + place.column,
          element::norm_input_gradient(x_hat(row), x_hat_grad(row), static_cast<float>(sum / num_rows),
                                       static_cast<float>(product_sum / num_rows), reciprocal));
  }
}

template <class... Params, class... Args>
cudaError_t launch_for_columns(const char* name, const Target& target, std::uint64_t num_columns,
                               void (*kernel)(Params...), const Args&... args) {
  const auto num_blocks = static_cast<unsigned>((num_columns + kColumnsPerBlock - 1) / kColumnsPerBlock);
  return launch({name, num_blocks, kColumnBlockSize, target.stream}, kernel, args...);
}

}  // namespace

cudaError_t layer_norm(const Target& target, const LayerNormArgs& args) {
  return launch_for_warps("layer_norm_kernel", target, args.size.rows, layer_norm_kernel, args);
}
cudaError_t layer_norm_gradient(const Target& target, const LayerNormGradientArgs& args) {
  return launch_for_warps("layer_norm_gradient_kernel", target, args.size.rows, layer_norm_gradient_kernel, args);
}
cudaError_t column_sums(const Target& target, const MatrixSize& size, const float* x, float* sums, bool adds) {
  return launch_for_columns("column_sums_kernel", target, size.cols, column_sums_kernel, size, x, sums, adds);
}
cudaError_t layer_norm_parameter_gradients(const Target& target, const LayerNormGradientArgs& args,
                                           const NormParameterGradients& to) {
  return launch_for_columns("norm_parameter_gradients_kernel<LayerNormalised>", target, args.size.cols,
                            norm_parameter_gradients_kernel<LayerNormalised>, args.size,
                            LayerNormalised{args.x, args.mean, args.reciprocal_deviation}, args.y_grad, to);
}
cudaError_t batch_norm_parameter_gradients(const Target& target, const MatrixSize& size, const float* x_hat,
                                           const float* y_grad, const NormParameterGradients& to) {
  return launch_for_columns("norm_parameter_gradients_kernel<BatchNormalised>", target, size.cols,
                            norm_parameter_gradients_kernel<BatchNormalised>, size, BatchNormalised{x_hat}, y_grad, to);
}
cudaError_t batch_norm(const Target& target, const BatchNormArgs& args, double momentum) {
  return launch_for_columns("batch_norm_kernel", target, args.size.cols, batch_norm_kernel, args, momentum);
}
cudaError_t batch_norm_inference(const Target& target, const BatchNormArgs& args) {
  return launch_for_columns("batch_norm_inference_kernel", target, args.size.cols, batch_norm_inference_kernel, args);
}
cudaError_t batch_norm_gradient(const Target& target, const BatchNormGradientArgs& args) {
  return launch_for_columns("batch_norm_gradient_kernel", target, args.size.cols, batch_norm_gradient_kernel, args);
}

}  // namespace gradfuse::cuda
