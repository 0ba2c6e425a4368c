#include "src/nn/cpu_sequence_passes.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/element/lane_sum.hpp"
#include "kernels/element/scalar.hpp"
#include "src/nn/in_parallel.hpp"

namespace gradfuse::nn {
namespace {

/// to [width] = or += the sum of `row(i)` [width] for i in [0, count), in that order; 0 for none, where it overwrites.
template <class T, class Row>
void sum_rows(std::size_t count, std::size_t width, Row row, T* to, Destination destination) {
  if (count == 0 && destination == Destination::kAddTo) return;
  for (std::size_t c = 0; c < width; ++c) {
    T sum = T(0);
    for (std::size_t i = 0; i < count; ++i) sum += row(i)[c];
    to[c] = destination == Destination::kAddTo ? to[c] + sum : sum;
  }
}

/// One head in double.
struct HeadInDouble {
  std::size_t positions, head_dim, stride, out_stride;
  double scale;
  const double *query, *key, *value;
  double *out, *log_sums;

  double score(std::size_t q, std::size_t k) const {
    double dot = 0;
    for (std::size_t d = 0; d < head_dim; ++d) dot += query[q * stride + d] * key[k * stride + d];
    return dot * scale;
  }
};

void attend(const HeadInDouble& head) {
  for (std::size_t q = 0; q < head.positions; ++q) {
    double most = head.score(q, 0), sum = 0;
    for (std::size_t k = 1; k <= q; ++k) most = std::max(most, head.score(q, k));
    double* out = head.out + q * head.out_stride;
    std::fill_n(out, head.head_dim, 0.0);
    for (std::size_t k = 0; k <= q; ++k) {
      const double weight = std::exp(head.score(q, k) - most);
      sum += weight;
      for (std::size_t d = 0; d < head.head_dim; ++d) out[d] += weight * head.value[k * head.stride + d];
    }
    for (std::size_t d = 0; d < head.head_dim; ++d) out[d] /= sum;
    head.log_sums[q] = most + std::log(sum);
  }
}

void attend_back(const HeadInDouble& head, const double* out_grad, double* query_grad, double* key_grad,
                 double* value_grad) {
  for (std::size_t p = 0; p < head.positions; ++p) {
    for (double* rows : {query_grad, key_grad, value_grad}) std::fill_n(rows + p * head.stride, head.head_dim, 0.0);
  }
  for (std::size_t q = 0; q < head.positions; ++q) {
    const double *out = head.out + q * head.out_stride, *grad = out_grad + q * head.out_stride;
    double out_dot = 0;
    for (std::size_t d = 0; d < head.head_dim; ++d) out_dot += out[d] * grad[d];
    for (std::size_t k = 0; k <= q; ++k) {
      const double probability = std::exp(head.score(q, k) - head.log_sums[q]);
      double dot = 0;
      for (std::size_t d = 0; d < head.head_dim; ++d) dot += grad[d] * head.value[k * head.stride + d];
      const double score_grad = probability * (dot - out_dot) * head.scale;
      for (std::size_t d = 0; d < head.head_dim; ++d) {
        value_grad[k * head.stride + d] += probability * grad[d];
        key_grad[k * head.stride + d] += score_grad * head.query[q * head.stride + d];
        query_grad[q * head.stride + d] += score_grad * head.key[k * head.stride + d];
      }
    }
  }
}

/// Calls `body(qkv offset, out offset, log_sums offset, number)` for each head of each sequence, in parallel.
template <class Body>
void for_each_head(const SequenceShape& shape, int threads, Body body) {
  const std::size_t work = shape.rows() * shape.width * shape.positions;
  in_parallel(shape.sequences * shape.heads, work, threads, [&](std::size_t i) {
    const std::size_t sequence = i / shape.heads, head = i % shape.heads;
    const std::size_t row = sequence * shape.positions, column = head * shape.head_dim();
    body(row * 3 * shape.width + column, row * shape.width + column, i * shape.positions, i);
  });
}

template <class Head, class T>
Head make_head(const SequenceShape& shape, const AttentionArrays<T>& arrays, std::size_t at_qkv, std::size_t at_out,
               std::size_t at_log_sums) {
  return {.positions = shape.positions,
          .head_dim = shape.head_dim(),
          .stride = 3 * shape.width,
          .out_stride = shape.width,
          .scale = static_cast<T>(1.0 / std::sqrt(static_cast<double>(shape.head_dim()))),
          .query = arrays.qkv + at_qkv,
          .key = arrays.qkv + at_qkv + shape.width,
          .value = arrays.qkv + at_qkv + 2 * shape.width,
          .out = arrays.out + at_out,
          .log_sums = arrays.log_sums + at_log_sums};
}

}  // namespace

template <class T>
void CpuSequencePasses<T>::embed(const SequenceShape& shape, const std::int32_t* ids, const T* tokens,
                                 const T* positions, T* y) {
  in_parallel(shape.rows(), shape.rows() * shape.width, threads_, [&](std::size_t row) {
    const T* token = tokens + static_cast<std::size_t>(ids[row]) * shape.width;
    const T* position = positions + row % shape.positions * shape.width;
    T* to = y + row * shape.width;
    for (std::size_t c = 0; c < shape.width; ++c) to[c] = token[c] + position[c];
  });
}

template <class T>
void CpuSequencePasses<T>::embed_gradient(const SequenceShape& shape, const std::int32_t* ids, const T* y_grad,
                                          std::size_t vocabulary, T* token_grad, Destination token_destination,
                                          std::size_t max_positions, T* position_grad,
                                          Destination position_destination) {
  first_row_.assign(vocabulary + 1, 0);
  for (std::size_t row = 0; row < shape.rows(); ++row) ++first_row_[static_cast<std::size_t>(ids[row]) + 1];
  for (std::size_t token = 0; token < vocabulary; ++token) first_row_[token + 1] += first_row_[token];
  rows_by_token_.resize(shape.rows());
  for (std::size_t row = shape.rows(); row-- > 0;) {  // backwards: then the counts end where they began
    rows_by_token_[--first_row_[static_cast<std::size_t>(ids[row]) + 1]] = row;
  }
  const std::size_t width = shape.width, work = (shape.rows() + vocabulary) * width;
  in_parallel(vocabulary, work, threads_, [&](std::size_t token) {
    const std::size_t begin = first_row_[token + 1];
    const std::size_t end = token + 1 < vocabulary ? first_row_[token + 2] : shape.rows();
    sum_rows<T>(
        end - begin, width, [&](std::size_t i) { return y_grad + rows_by_token_[begin + i] * width; },
        token_grad + token * width, token_destination);
  });
  in_parallel(max_positions, work, threads_, [&](std::size_t position) {
    sum_rows<T>(
        position < shape.positions ? shape.sequences : 0, width,
        [&](std::size_t i) { return y_grad + (i * shape.positions + position) * width; },
        position_grad + position * width, position_destination);
  });
}

template <class T>
void CpuSequencePasses<T>::attention(const SequenceShape& shape, const AttentionArrays<T>& arrays) {
  const std::size_t scratch_size = cpu::attention_scratch_size(shape.positions, shape.head_dim());
  scratch_.resize(std::max(scratch_.size(), scratch_size * shape.sequences * shape.heads));
  for_each_head(shape, threads_, [&](std::size_t at_qkv, std::size_t at_out, std::size_t at_log_sums, std::size_t i) {
    if constexpr (std::is_same_v<T, float>) {
      loops_.attention(make_head<cpu::AttentionHead>(shape, arrays, at_qkv, at_out, at_log_sums),
                       scratch_.data() + i * scratch_size);
    } else {
      attend(make_head<HeadInDouble>(shape, arrays, at_qkv, at_out, at_log_sums));
    }
  });
}

template <class T>
void CpuSequencePasses<T>::attention_gradient(const SequenceShape& shape, const AttentionArrays<T>& arrays,
                                              const T* out_grad, T* qkv_grad) {
  const std::size_t scratch_size = cpu::attention_scratch_size(shape.positions, shape.head_dim()) + shape.positions;
  scratch_.resize(std::max(scratch_.size(), scratch_size * shape.sequences * shape.heads));
  for_each_head(shape, threads_, [&](std::size_t at_qkv, std::size_t at_out, std::size_t at_log_sums, std::size_t i) {
    T* query_grad = qkv_grad + at_qkv;
    T *key_grad = query_grad + shape.width, *value_grad = query_grad + 2 * shape.width;
    if constexpr (std::is_same_v<T, float>) {
      float* scratch = scratch_.data() + i * scratch_size;
      const cpu::AttentionHeadGradient grad{out_grad + at_out, query_grad, key_grad, value_grad, scratch};
      loops_.attention_gradient(make_head<cpu::AttentionHead>(shape, arrays, at_qkv, at_out, at_log_sums), grad,
                                scratch + shape.positions);
    } else {
      attend_back(make_head<HeadInDouble>(shape, arrays, at_qkv, at_out, at_log_sums), out_grad + at_out, query_grad,
                  key_grad, value_grad);
    }
  });
}

template class CpuSequencePasses<float>;
template class CpuSequencePasses<double>;

}  // namespace gradfuse::nn
