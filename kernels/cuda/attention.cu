// Causal attention without a matrix of positions x positions, in the order of sums of kernels/cpu/attention-inl.hpp:
// along a head's elements one after the other, over keys in tiles of 32, which are a warp's threads, over queries one
// after the other. Limited by arithmetic. A tile of keys and values lies in shared memory; its rows are one element
// longer than a head, so that threads with neighbouring keys meet no bank conflict.
#include "kernels/cuda/grid.hpp"
#include "kernels/cuda/lane_sum.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/element/scalar.hpp"

namespace gradfuse::cuda {
namespace {

constexpr unsigned kTile = kWarpSize;
constexpr unsigned kWarps = kBlockSize / kWarpSize;
constexpr unsigned kMostPerLane = kMaxHeadDim / kWarpSize;          // elements of a row that a thread holds
constexpr unsigned kMostOfTile = kTile * kMaxHeadDim / kBlockSize;  // elements of a tile's rows

/// Where one head of one sequence lies.
struct Head {
  std::uint64_t positions, stride, out_stride;
  unsigned head_dim;
  std::uint64_t at_qkv, at_out, at_rows;  // of its first position
  const float *queries, *keys, *values;
};
/// Blocks take the tiles of a head one after the other, then those of the next.
__host__ __device__ inline std::uint64_t num_tiles(const SequenceSize& size) {
  return (size.positions + kTile - 1) / kTile;
}
__device__ inline std::uint64_t tile_of_block(const AttentionArgs& args) { return blockIdx.x % num_tiles(args.size); }
__device__ inline Head head_of_block(const AttentionArgs& args) {
  const SequenceSize& size = args.size;
  const std::uint64_t number = blockIdx.x / num_tiles(size);
  const std::uint64_t sequence = number / size.heads, head = number % size.heads;
  const auto head_dim = static_cast<unsigned>(size.width / size.heads);
  const std::uint64_t row = sequence * size.positions, column = head * head_dim;
  const std::uint64_t at_qkv = row * 3 * size.width + column;
  const float* queries = args.qkv + at_qkv;
  return {.positions = size.positions,
          .stride = size.width * 3,
          .out_stride = size.width,
          .head_dim = head_dim,
          .at_qkv = at_qkv,
          .at_out = row * size.width + column,
          .at_rows = number * size.positions,
          .queries = queries,
          .keys = queries + size.width,
          .values = queries + 2 * size.width};
}

/// A row of a head, spread over the threads of a warp.
struct SpreadRow {
  float value[kMostPerLane];
};
__device__ inline SpreadRow load_row(const float* row, unsigned head_dim) {
  SpreadRow spread;
  GF_UNROLL
  for (unsigned i = 0; i < kMostPerLane; ++i) {
    const unsigned d = i * kWarpSize + threadIdx.x % kWarpSize;
    spread.value[i] = d < head_dim ? load(row + d) : 0.0f;
  }
  return spread;
}

__device__ inline void store_row(const SpreadRow& spread, float* row, unsigned head_dim) {
  GF_UNROLL
  for (unsigned i = 0; i < kMostPerLane; ++i) {
    const unsigned d = i * kWarpSize + threadIdx.x % kWarpSize;
    if (d < head_dim) store(row + d, spread.value[i]);
  }
}

/// Keys and values of a tile in shared memory.
template <class Shared>
class Tile {
 public:
  __device__ Tile(Shared& memory, unsigned head_dim) : memory_(memory), head_dim_(head_dim), row_(head_dim + 1) {}
  /// By the whole block; those past the end are 0.
  __device__ void fill(std::uint64_t first, const Head& head) {
    for (unsigned e = threadIdx.x; e < kTile * head_dim_; e += kBlockSize) {
      const unsigned k = e / head_dim_, d = e % head_dim_;
      const bool is_there = first + k < head.positions;
      const std::uint64_t at = (first + k) * head.stride + d;
      memory_.set(k * row_ + d, is_there ? load(head.keys + at) : 0.0f);
      memory_.set((kTile + k) * row_ + d, is_there ? load(head.values + at) : 0.0f);
    }
    __syncthreads();
  }
  __device__ float key(unsigned k, unsigned d) const { return memory_.get(k * row_ + d); }
  __device__ float value(unsigned k, unsigned d) const { return memory_.get((kTile + k) * row_ + d); }

  /// Of a row with this thread's key, or value.
  __device__ float key_dot(const SpreadRow& row) const { return dot(row, (threadIdx.x % kWarpSize) * row_); }
  __device__ float value_dot(const SpreadRow& row) const { return dot(row, (kTile + threadIdx.x % kWarpSize) * row_); }

 private:
  __device__ float dot(const SpreadRow& row, unsigned at) const {
    float sum = 0.0f;
    GF_UNROLL
    for (unsigned i = 0; i < kMostPerLane; ++i) {
      for (unsigned lane = 0; lane < kWarpSize && i * kWarpSize + lane < head_dim_; ++lane) {
        const float element = __shfl_sync(kWholeWarp, row.value[i], static_cast<int>(lane));
        sum = element::fma(element, memory_.get(at + i * kWarpSize + lane), sum);
      }
    }
    return sum;
  }

  Shared& memory_;
  unsigned head_dim_, row_;
};

__device__ inline float largest_in_warp(float value) {
  GF_UNROLL
  for (int distance = kWarpSize / 2; distance >= 1; distance /= 2) {
    value = element::max(__shfl_xor_sync(kWholeWarp, value, distance), value);
  }
  return value;
}
__device__ inline float sum_in_warp(float value) {
  GF_UNROLL
  for (int distance = kWarpSize / 2; distance >= 1; distance /= 2) {
    value = value + __shfl_xor_sync(kWholeWarp, value, distance);
  }
  return value;
}

constexpr unsigned kQueriesPerWarp = kTile / kWarps;

// Three blocks allow 168 registers. Without a bound nvcc 13 takes 128 and spills.

/// A block takes a head and 32 of its queries, a warp eight of these.
__global__ void __launch_bounds__(kBlockSize, 3) attention_kernel(AttentionArgs args) {
  GF_DYNAMIC_SHARED(memory, float);
  const Head head = head_of_block(args);
  const std::uint64_t first_query = tile_of_block(args) * kTile + threadIdx.x / kWarpSize * kQueriesPerWarp;
  const unsigned lane = threadIdx.x % kWarpSize;
  Tile tile(memory, head.head_dim);

  SpreadRow sums[kQueriesPerWarp] = {};
  float most[kQueriesPerWarp], sum[kQueriesPerWarp] = {};
  GF_UNROLL
  for (unsigned r = 0; r < kQueriesPerWarp; ++r) most[r] = -__builtin_huge_valf();
  for (std::uint64_t first = 0; first <= first_query; first += kTile) {
    __syncthreads();  // the tile before is done with
    tile.fill(first, head);
    GF_UNROLL
    for (unsigned r = 0; r < kQueriesPerWarp; ++r) {
      const std::uint64_t query = first_query + r;
      if (query >= head.positions) continue;
      const unsigned num = query - first < kTile ? static_cast<unsigned>(query - first) + 1 : kTile;
      const SpreadRow row = load_row(head.queries + query * head.stride, head.head_dim);
      const float dot = tile.key_dot(row);  // by all threads, which exchange the row
      const float score = lane < num ? dot * args.scale : -__builtin_huge_valf();
      const float tile_most = largest_in_warp(score);
      const float now_most = most[r] > tile_most ? most[r] : tile_most;
      const float factor = element::exp(most[r] - now_most), weight = element::exp(score - now_most);
      most[r] = now_most;
      sum[r] = element::fma(sum[r], factor, sum_in_warp(weight));
      GF_UNROLL
      for (unsigned i = 0; i < kMostPerLane; ++i) sums[r].value[i] = factor * sums[r].value[i];
      for (unsigned k = 0; k < num; ++k) {
        const float of_key = __shfl_sync(kWholeWarp, weight, static_cast<int>(k));
        GF_UNROLL
        for (unsigned i = 0; i < kMostPerLane; ++i) {
          const unsigned d = i * kWarpSize + lane;
          if (d < head.head_dim) sums[r].value[i] = element::fma(of_key, tile.value(k, d), sums[r].value[i]);
        }
      }
    }
  }
  GF_UNROLL
  for (unsigned r = 0; r < kQueriesPerWarp; ++r) {
    const std::uint64_t query = first_query + r;
    if (query >= head.positions) continue;
    GF_UNROLL
    for (float& value : sums[r].value) value = value / sum[r];
    store_row(sums[r], args.out + head.at_out + query * head.out_stride, head.head_dim);
    if (lane == 0) store(args.log_sums + head.at_rows + query, most[r] + element::log_from_1(sum[r]));
  }
}

/// What a query's softmax hands back for this thread's key.
struct KeyGradients {
  float probability, score_grad;
};
template <class Shared>
__device__ inline KeyGradients key_gradients(const Tile<Shared>& tile, const SpreadRow& query,
                                             const SpreadRow& out_grad, float scale, float log_sum, float out_dot) {
  const float probability = element::exp(tile.key_dot(query) * scale - log_sum);
  return {probability, probability * (tile.value_dot(out_grad) - out_dot) * scale};
}

__global__ void __launch_bounds__(kBlockSize, 3)
    query_gradient_kernel(AttentionArgs args, const float* out_grad, float* out_dots, float* qkv_grad) {
  GF_DYNAMIC_SHARED(memory, float);
  const Head head = head_of_block(args);
  const std::uint64_t first_query = tile_of_block(args) * kTile + threadIdx.x / kWarpSize * kQueriesPerWarp;
  const unsigned lane = threadIdx.x % kWarpSize;
  const float *outs = args.out + head.at_out, *grads = out_grad + head.at_out;
  Tile tile(memory, head.head_dim);

  SpreadRow sums[kQueriesPerWarp] = {};
  float dots[kQueriesPerWarp] = {};
  GF_UNROLL
  for (unsigned r = 0; r < kQueriesPerWarp; ++r) {
    const std::uint64_t query = first_query + r;
    if (query >= head.positions) continue;
    const float *out = outs + query * head.out_stride, *grad = grads + query * head.out_stride;
    dots[r] = lane_sum<float>(head.head_dim, [&](std::uint64_t d) { return load(out + d) * load(grad + d); });
    if (lane == 0) store(out_dots + head.at_rows + query, dots[r]);
  }
  for (std::uint64_t first = 0; first <= first_query; first += kTile) {
    __syncthreads();
    tile.fill(first, head);
    GF_UNROLL
    for (unsigned r = 0; r < kQueriesPerWarp; ++r) {
      const std::uint64_t query = first_query + r;
      if (query >= head.positions) continue;
      const unsigned num = query - first < kTile ? static_cast<unsigned>(query - first) + 1 : kTile;
      const KeyGradients of_key = key_gradients(tile, load_row(head.queries + query * head.stride, head.head_dim),
                                                load_row(grads + query * head.out_stride, head.head_dim), args.scale,
                                                load(args.log_sums + head.at_rows + query), dots[r]);
      for (unsigned k = 0; k < num; ++k) {
        const float score_grad = __shfl_sync(kWholeWarp, of_key.score_grad, static_cast<int>(k));
        GF_UNROLL
        for (unsigned i = 0; i < kMostPerLane; ++i) {
          const unsigned d = i * kWarpSize + lane;
          if (d < head.head_dim) sums[r].value[i] = element::fma(score_grad, tile.key(k, d), sums[r].value[i]);
        }
      }
    }
  }
  GF_UNROLL
  for (unsigned r = 0; r < kQueriesPerWarp; ++r) {
    const std::uint64_t query = first_query + r;
    if (query >= head.positions) continue;
    store_row(sums[r], qkv_grad + head.at_qkv + query * head.stride, head.head_dim);
  }
}

/// A block takes a head and a tile of its keys; four queries at a time, a warp each, then all threads gather.
__global__ void __launch_bounds__(kBlockSize, 3)
    key_value_gradient_kernel(AttentionArgs args, const float* out_grad, const float* out_dots, float* qkv_grad) {
  GF_DYNAMIC_SHARED(memory, float);
  GF_SHARED_ARRAY(probabilities, float, kWarps* kTile);
  GF_SHARED_ARRAY(score_grads, float, kWarps* kTile);
  const Head head = head_of_block(args);
  const std::uint64_t first = tile_of_block(args) * kTile;
  const unsigned warp = threadIdx.x / kWarpSize;
  const float* grads = out_grad + head.at_out;
  Tile tile(memory, head.head_dim);
  tile.fill(first, head);

  float key_sums[kMostOfTile] = {}, value_sums[kMostOfTile] = {};
  for (std::uint64_t group = first; group < head.positions; group += kWarps) {
    const std::uint64_t own = group + warp;
    if (own < head.positions) {
      const KeyGradients of_key =
          key_gradients(tile, load_row(head.queries + own * head.stride, head.head_dim),
                        load_row(grads + own * head.out_stride, head.head_dim), args.scale,
                        load(args.log_sums + head.at_rows + own), load(out_dots + head.at_rows + own));
      probabilities.set(threadIdx.x, of_key.probability);
      score_grads.set(threadIdx.x, of_key.score_grad);
    }
    __syncthreads();
    for (unsigned r = 0; r < kWarps && group + r < head.positions; ++r) {
      const std::uint64_t query = group + r;
      GF_UNROLL
      for (unsigned i = 0; i < kMostOfTile; ++i) {
        const unsigned e = i * kBlockSize + threadIdx.x, k = e / head.head_dim, d = e % head.head_dim;
        if (k >= kTile || first + k > query) continue;
        const unsigned at = r * kTile + k;
        value_sums[i] = element::fma(probabilities.get(at), load(grads + query * head.out_stride + d), value_sums[i]);
        key_sums[i] = element::fma(score_grads.get(at), load(head.queries + query * head.stride + d), key_sums[i]);
      }
    }
    __syncthreads();
  }
  GF_UNROLL
  for (unsigned i = 0; i < kMostOfTile; ++i) {
    const unsigned e = i * kBlockSize + threadIdx.x, k = e / head.head_dim, d = e % head.head_dim;
    if (k >= kTile || first + k >= head.positions) continue;
    float* to = qkv_grad + head.at_qkv + args.size.width + (first + k) * head.stride + d;
    store(to, key_sums[i]);
    store(to + args.size.width, value_sums[i]);
  }
}

template <class... Params, class... Args>
cudaError_t launch_for_tiles(const char* name, const Target& target, const AttentionArgs& args,
                             void (*kernel)(Params...), const Args&... rest) {
  const SequenceSize& size = args.size;
  const LaunchShape shape{name, static_cast<unsigned>(size.sequences * size.heads * num_tiles(size)), kBlockSize,
                          target.stream,
                          static_cast<unsigned>(2 * kTile * (size.width / size.heads + 1) * sizeof(float))};
  return launch(shape, kernel, args, rest...);
}

}  // namespace

cudaError_t attention(const Target& target, const AttentionArgs& args) {
  return launch_for_tiles("attention_kernel", target, args, attention_kernel);
}
cudaError_t attention_gradient(const Target& target, const AttentionArgs& args, const float* out_grad, float* out_dots,
                               float* qkv_grad) {
  const cudaError_t status =
      launch_for_tiles("query_gradient_kernel", target, args, query_gradient_kernel, out_grad, out_dots, qkv_grad);
  if (status != cudaSuccess) return status;
  return launch_for_tiles("key_value_gradient_kernel", target, args, key_value_gradient_kernel, out_grad, out_dots,
                          qkv_grad);
}

}  // namespace gradfuse::cuda
