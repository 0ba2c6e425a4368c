#include "src/workload/stream_loops.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/workload/stream_loops.cpp"  // foreach_target.h includes this file again per target
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace gradfuse::workload {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

// As far ahead as the passes of kernels/cpu look; a bound without it would be lower than what they reach.
HWY_INLINE void prefetch_ahead(const float* at) { hwy::Prefetch(reinterpret_cast<const char*>(at) + 4096); }

template <Store kStore>
HWY_INLINE void put(hn::Vec<D> value, float* to) {
  if constexpr (kStore == Store::kStreaming) {
    hn::Stream(value, D{}, to);
  } else {
    hn::Store(value, D{}, to);
  }
}

float read(const float* from, std::size_t numel) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;  // enough to hide the latency of the addition
  for (std::size_t i = 0; i < numel; i += 4 * lanes) {
    for (std::size_t v = 0; v < 4; ++v) prefetch_ahead(from + i + v * lanes);
    sum0 = hn::Add(sum0, hn::Load(d, from + i));
    sum1 = hn::Add(sum1, hn::Load(d, from + i + lanes));
    sum2 = hn::Add(sum2, hn::Load(d, from + i + 2 * lanes));
    sum3 = hn::Add(sum3, hn::Load(d, from + i + 3 * lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
}

template <Store kStore>
void copy(const float* from, float* to, std::size_t numel) {
  const D d;
  for (std::size_t i = 0; i < numel; i += hn::Lanes(d)) {
    prefetch_ahead(from + i);
    put<kStore>(hn::Load(d, from + i), to + i);
  }
  hwy::FlushStream();
}

template <Store kStore>
void triad(const float* x, const float* y, float* to, std::size_t numel) {
  const D d;
  const auto factor = hn::Set(d, 3.0f);
  for (std::size_t i = 0; i < numel; i += hn::Lanes(d)) {
    prefetch_ahead(x + i);
    prefetch_ahead(y + i);
    put<kStore>(hn::MulAdd(factor, hn::Load(d, y + i), hn::Load(d, x + i)), to + i);
  }
  hwy::FlushStream();
}

template <Store kStore>
void update(float* data, std::size_t numel) {
  const D d;
  for (std::size_t i = 0; i < numel; i += hn::Lanes(d)) {
    prefetch_ahead(data + i);
    put<kStore>(hn::Neg(hn::Load(d, data + i)), data + i);
  }
  hwy::FlushStream();
}

void copy_with(const float* from, float* to, std::size_t numel, Store store) {
  store == Store::kStreaming ? copy<Store::kStreaming>(from, to, numel) : copy<Store::kCached>(from, to, numel);
}
void triad_with(const float* x, const float* y, float* to, std::size_t numel, Store store) {
  store == Store::kStreaming ? triad<Store::kStreaming>(x, y, to, numel) : triad<Store::kCached>(x, y, to, numel);
}
void update_with(float* data, std::size_t numel, Store store) {
  store == Store::kStreaming ? update<Store::kStreaming>(data, numel) : update<Store::kCached>(data, numel);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradfuse::workload
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradfuse::workload {
namespace {
HWY_EXPORT(read);
HWY_EXPORT(copy_with);
HWY_EXPORT(triad_with);
HWY_EXPORT(update_with);
}  // namespace

float stream_read(const float* from, std::size_t numel) { return HWY_DYNAMIC_DISPATCH(read)(from, numel); }
void stream_copy(const float* from, float* to, std::size_t numel, Store store) {
  HWY_DYNAMIC_DISPATCH(copy_with)(from, to, numel, store);
}
void stream_triad(const float* x, const float* y, float* to, std::size_t numel, Store store) {
  HWY_DYNAMIC_DISPATCH(triad_with)(x, y, to, numel, store);
}
void stream_update(float* data, std::size_t numel, Store store) {
  HWY_DYNAMIC_DISPATCH(update_with)(data, numel, store);
}

}  // namespace gradfuse::workload
#endif
