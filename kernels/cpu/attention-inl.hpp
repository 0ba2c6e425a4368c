// Causal attention of one head, without a matrix of positions x positions: Rabe & Staats 2021 (arXiv:2112.05682), Dao
// et al. 2022 (arXiv:2205.14135). Limited by arithmetic. The order of every sum is fixed, whatever the width of the
// vectors: along a head's elements one after the other, over keys in tiles of 32 whose exponentials add up in lanes,
// over queries one after the other.

inline constexpr std::size_t kTile = element::kSumLanes;  // keys that are worked on at once
inline constexpr std::size_t kTileVectors = kTile / kLanes;
// Queries that share a load of keys and values, as many as the registers hold.
inline constexpr std::size_t kQueries = kLanes >= 16 ? 4 : 2;

struct TileRow {
  F32 v[kTileVectors];
};

/// tiles [ceil(positions / 32), head_dim, 32] from rows [positions, head_dim]; what is past the end is 0.
inline void transpose_into_tiles(const float* rows, const AttentionHead& head, float* tiles) {
  for (std::size_t first = 0; first < head.positions; first += kTile) {
    const std::size_t num = head.positions - first < kTile ? head.positions - first : kTile;
    for (std::size_t d = 0; d < head.head_dim; ++d, tiles += kTile) {
      for (std::size_t l = 0; l < kTile; ++l) tiles[l] = l < num ? rows[(first + l) * head.stride + d] : 0.0f;
    }
  }
}

/// The products of `num` rows, `stride` apart, with the 32 of a tile.
template <std::size_t kRows>
GF_ELEMENT void tile_dots(const float* rows, std::size_t stride, const float* tile, std::size_t head_dim,
                          TileRow (&dots)[kRows]) {
  for (TileRow& row : dots) {
    for (F32& v : row.v) v = splat(0.0f);
  }
  for (std::size_t d = 0; d < head_dim; ++d, tile += kTile) {
    F32 keys[kTileVectors];
    for (std::size_t v = 0; v < kTileVectors; ++v) keys[v] = load_vector(tile + v * kLanes);
    for (std::size_t r = 0; r < kRows; ++r) {
      const F32 element = splat(rows[r * stride + d]);
      for (std::size_t v = 0; v < kTileVectors; ++v) dots[r].v[v] = fma(element, keys[v], dots[r].v[v]);
    }
  }
}

GF_ELEMENT void store_row(const TileRow& row, float* to) {
  for (std::size_t v = 0; v < kTileVectors; ++v) store_vector<Store::kCached>(row.v[v], to + v * kLanes);
}
GF_ELEMENT TileRow load_row(const float* from) {
  TileRow row;
  for (std::size_t v = 0; v < kTileVectors; ++v) row.v[v] = load_vector(from + v * kLanes);
  return row;
}
/// Keys after the first `num` get no attention.
GF_ELEMENT void mask_row(TileRow& row, std::size_t num) {
  float values[kTile];
  store_row(row, values);
  for (std::size_t l = num; l < kTile; ++l) values[l] = -std::numeric_limits<float>::infinity();
  row = load_row(values);
}
GF_ELEMENT float largest_of_row(const TileRow& row) {
  F32 most = row.v[0];
  for (std::size_t v = 1; v < kTileVectors; ++v) most = max(row.v[v], most);
  return largest(most);
}
GF_ELEMENT float sum_of_row(TileRow row) {
  for (std::size_t half = kTileVectors / 2; half > 0; half /= 2) {
    for (std::size_t v = 0; v < half; ++v) row.v[v] = row.v[v] + row.v[v + half];
  }
  return fold(row.v[0]);
}

/// to[r] = factors[r] * to[r] + the rows [num, head_dim], each times its weight, for kRows of `to`. weights
/// [kRows][32].
template <std::size_t kRows>
GF_ELEMENT void add_weighted_rows(const float* weights, const float* rows, std::size_t num, const AttentionHead& head,
                                  const float* factors, float* to, std::size_t to_stride) {
  for_each_vector(0, head.head_dim, [&](std::size_t d, auto lanes) GF_ATTR {
    F32 sums[kRows];
    for (std::size_t r = 0; r < kRows; ++r) sums[r] = splat(factors[r]) * load(to + r * to_stride + d, lanes);
    for (std::size_t k = 0; k < num; ++k) {
      const F32 row = load(rows + k * head.stride + d, lanes);
      for (std::size_t r = 0; r < kRows; ++r) sums[r] = fma(splat(weights[r * kTile + k]), row, sums[r]);
    }
    for (std::size_t r = 0; r < kRows; ++r) store(sums[r], to + r * to_stride + d, lanes);
  });
}

/// The softmax of a query so far: exponentials relative to `most`, their sum.
struct SoftmaxSoFar {
  float most = -std::numeric_limits<float>::infinity();
  float sum = 0.0f;
};
/// Takes in a tile's scores, which become exponentials; returns the factor on what was gathered before.
GF_ELEMENT float take_in(SoftmaxSoFar& so_far, TileRow& scores) {
  const float tile_most = largest_of_row(scores);
  const float most = so_far.most > tile_most ? so_far.most : tile_most;
  const float factor = element::exp(so_far.most - most);
  for (F32& v : scores.v) v = exp(v - splat(most));
  so_far = {most, element::fma(so_far.sum, factor, sum_of_row(scores))};
  return factor;
}

/// kRows queries from `first` on against the tile of keys from `first_key` on, of which each sees at most `num`.
template <std::size_t kRows>
GF_ELEMENT void attend(const AttentionHead& head, std::size_t first, std::size_t first_key, const float* tile,
                       bool is_diagonal, SoftmaxSoFar* so_far) {
  TileRow scores[kRows];
  tile_dots(head.query + first * head.stride, head.stride, tile, head.head_dim, scores);
  float weights[kRows * kTile], factors[kRows];
  std::size_t num = kTile;
  for (std::size_t r = 0; r < kRows; ++r) {
    for (F32& v : scores[r].v) v = v * splat(head.scale);
    if (is_diagonal) mask_row(scores[r], num = first + r + 1 - first_key);
    factors[r] = take_in(so_far[r], scores[r]);
    store_row(scores[r], weights + r * kTile);
  }
  add_weighted_rows<kRows>(weights, head.value + first_key * head.stride, num, head, factors,
                           head.out + first * head.out_stride, head.out_stride);
}

/// Calls `body(first, first_key, tile, rows, is_diagonal)` for groups of queries and their tiles, in order; `rows` is a
/// constant: kQueries, or 1 where queries of a group do not see the same keys.
template <class Body>
GF_ELEMENT void for_each_group(const AttentionHead& head, Body body) {
  for (std::size_t first = 0; first < head.positions; first += kQueries) {
    const std::size_t num = head.positions - first < kQueries ? head.positions - first : kQueries;
    for (std::size_t first_key = 0; first_key <= first; first_key += kTile) {
      const bool is_diagonal = first_key + kTile > first;  // kQueries divides kTile: no group spans two
      if (!is_diagonal && num == kQueries) {
        body(first, first_key, std::integral_constant<std::size_t, kQueries>{}, false);
      } else {
        for (std::size_t r = 0; r < num; ++r) {
          body(first + r, first_key, std::integral_constant<std::size_t, 1>{}, is_diagonal);
        }
      }
    }
  }
}

inline void attention_loop(const AttentionHead& head, float* scratch) {
  transpose_into_tiles(head.key, head, scratch);
  SoftmaxSoFar so_far[kQueries];
  for (std::size_t q = 0; q < head.positions; ++q) std::memset(head.out + q * head.out_stride, 0, head.head_dim * 4);
  for_each_group(head, [&](std::size_t first, std::size_t first_key, auto rows, bool is_diagonal) GF_ATTR {
    SoftmaxSoFar* group = so_far + first % kQueries;
    if (first_key == 0) {
      for (std::size_t r = 0; r < rows(); ++r) group[r] = {};
    }
    attend<rows()>(head, first, first_key, scratch + first_key * head.head_dim, is_diagonal, group);
    if (!is_diagonal) return;  // else the query has seen all that it may
    const F32 sum = splat(group->sum);
    float* out = head.out + first * head.out_stride;
    for_each_vector(0, head.head_dim,
                    [&](std::size_t d, auto lanes) GF_ATTR { store(load(out + d, lanes) / sum, out + d, lanes); });
    head.log_sums[first] = group->most + element::log_from_1(group->sum);
  });
}

/// to[k] += the rows, each times its weight for k, for `num` k. weights [kRows][32].
template <std::size_t kRows>
GF_ELEMENT void spread_rows(const float* weights, const float* rows, std::size_t row_stride, std::size_t num,
                            const AttentionHead& head, float* to) {
  for_each_vector(0, head.head_dim, [&](std::size_t d, auto lanes) GF_ATTR {
    F32 loaded[kRows];
    for (std::size_t r = 0; r < kRows; ++r) loaded[r] = load(rows + r * row_stride + d, lanes);
    for (std::size_t k = 0; k < num; ++k) {
      F32 sum = load(to + k * head.stride + d, lanes);
      for (std::size_t r = 0; r < kRows; ++r) sum = fma(splat(weights[r * kTile + k]), loaded[r], sum);
      store(sum, to + k * head.stride + d, lanes);
    }
  });
}

/// As `attend`, backwards; `out_dots`: of the output with its gradient, by row of the group.
template <std::size_t kRows>
GF_ELEMENT void attend_back(const AttentionHead& head, const AttentionHeadGradient& grad, std::size_t first,
                            std::size_t first_key, const float* key_tile, const float* value_tile, bool is_diagonal) {
  TileRow scores[kRows], products[kRows];
  const float* out_grad = grad.out + first * head.out_stride;
  tile_dots(head.query + first * head.stride, head.stride, key_tile, head.head_dim, scores);
  tile_dots(out_grad, head.out_stride, value_tile, head.head_dim, products);
  float probabilities[kRows * kTile], score_grads[kRows * kTile], ones[kRows];
  std::size_t num = kTile;
  for (std::size_t r = 0; r < kRows; ++r) {
    for (F32& v : scores[r].v) v = v * splat(head.scale);
    if (is_diagonal) mask_row(scores[r], num = first + r + 1 - first_key);
    const F32 log_sum = splat(head.log_sums[first + r]), out_dot = splat(grad.out_dots[first + r]);
    for (std::size_t v = 0; v < kTileVectors; ++v) {
      const F32 probability = exp(scores[r].v[v] - log_sum);
      scores[r].v[v] = probability;
      products[r].v[v] = probability * (products[r].v[v] - out_dot) * splat(head.scale);
    }
    store_row(scores[r], probabilities + r * kTile);
    store_row(products[r], score_grads + r * kTile);
    ones[r] = 1.0f;
  }
  spread_rows<kRows>(probabilities, out_grad, head.out_stride, num, head, grad.value + first_key * head.stride);
  spread_rows<kRows>(score_grads, head.query + first * head.stride, head.stride, num, head,
                     grad.key + first_key * head.stride);
  add_weighted_rows<kRows>(score_grads, head.key + first_key * head.stride, num, head, ones,
                           grad.query + first * head.stride, head.stride);
}

inline void attention_gradient_loop(const AttentionHead& head, const AttentionHeadGradient& grad, float* scratch) {
  const std::size_t tiles = (head.positions + kTile - 1) / kTile * kTile * head.head_dim;
  float *key_tiles = scratch, *value_tiles = scratch + tiles;
  transpose_into_tiles(head.key, head, key_tiles);
  transpose_into_tiles(head.value, head, value_tiles);
  for (std::size_t p = 0; p < head.positions; ++p) {
    for (float* rows : {grad.query, grad.key, grad.value}) std::memset(rows + p * head.stride, 0, head.head_dim * 4);
    const float *out = head.out + p * head.out_stride, *out_grad = grad.out + p * head.out_stride;
    grad.out_dots[p] = element::lane_sum<float>(head.head_dim, [&](std::size_t d) { return out[d] * out_grad[d]; });
  }
  for_each_group(head, [&](std::size_t first, std::size_t first_key, auto rows, bool is_diagonal) GF_ATTR {
    const std::size_t at = first_key * head.head_dim;
    attend_back<rows()>(head, grad, first, first_key, key_tiles + at, value_tiles + at, is_diagonal);
  });
}
