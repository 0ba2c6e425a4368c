#include "src/workload/bandwidth.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/workload/available_memory.hpp"
#include "src/workload/stream_loops.hpp"
#include "src/workload/synthetic_model.hpp"

namespace gradfuse::workload {
namespace {

constexpr std::size_t kNumel = 4 * kStreamUnit;

TEST(Streams, DoWhatTheyAreNamedAfter) {
  for (const Store store : {Store::kCached, Store::kStreaming}) {
    const FlatArray arrays({{"x", {kNumel}}, {"y", {kNumel}}, {"out", {kNumel}}}, DType::kFloat32, *cpu_backend(), 0);
    auto* x = static_cast<float*>(arrays.views()[0].data);
    auto* y = static_cast<float*>(arrays.views()[1].data);
    auto* out = static_cast<float*>(arrays.views()[2].data);
    std::fill_n(x, kNumel, 2.0f);
    std::fill_n(y, kNumel, 5.0f);
    EXPECT_EQ(stream_read(x, kNumel), 2.0f * kNumel);
    stream_triad(x, y, out, kNumel, store);
    EXPECT_EQ(std::count(out, out + kNumel, 17.0f), static_cast<std::ptrdiff_t>(kNumel));
    stream_copy(x, out, kNumel, store);
    EXPECT_EQ(std::count(out, out + kNumel, 2.0f), static_cast<std::ptrdiff_t>(kNumel));
    stream_update(out, kNumel, store);
    EXPECT_EQ(std::count(out, out + kNumel, -2.0f), static_cast<std::ptrdiff_t>(kNumel));
  }
}

TEST(BandwidthMeter, KeepsTheBestOfEveryStreamAndTheBoundOfReadCopyAndTriad) {
  BandwidthMeter meter(cpu_backend({.threads = 2, .target = {}}));
  EXPECT_EQ(meter.bound(), 0.0);
  meter.measure_all(1);
  double best = 0.0;
  for (const Stream stream : meter.streams()) {
    EXPECT_GT(meter.fastest(stream), 0.0) << stream_name(stream);
    EXPECT_GE(meter.sweep(stream), std::size_t{120} << 20);
    const bool is_update = stream == Stream::kUpdate || stream == Stream::kUpdateStreaming;
    if (!is_update) best = std::max(best, meter.fastest(stream));
  }
  EXPECT_EQ(meter.bound(), best);
  EXPECT_EQ(meter.case_bound(), best);
  meter.start_case();
  EXPECT_EQ(meter.case_bound(), 0.0);
  EXPECT_EQ(meter.bound(), best);
}

TEST(AvailableMemory, IsToldAndMissed) {
  EXPECT_GT(available_memory(), 0u);
  EXPECT_EQ(memory_shortage(1), "");
  EXPECT_NE(memory_shortage(std::size_t{1} << 60), "");
}

}  // namespace
}  // namespace gradfuse::workload
