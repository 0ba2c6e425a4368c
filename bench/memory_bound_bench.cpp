// What can this machine's memory move? The best of these figures is the bound in every other benchmark.
#include <fmt/format.h>

#include "bench/report.hpp"

namespace gradfuse::bench {
namespace {

void sweep(benchmark::State& state, workload::Stream stream) {
  workload::BandwidthMeter meter(backend());
  if (!std::ranges::count(meter.streams(), stream)) return state.SkipWithError("a GPU is measured by copies alone");
  std::size_t num_bytes = 0;
  time_each(state, [&] { num_bytes = meter.sweep(stream); });
  state.SetBytesProcessed(static_cast<std::int64_t>(num_bytes) * state.iterations());
}

}  // namespace
}  // namespace gradfuse::bench

int main(int argc, char** argv) {
  using namespace gradfuse;
  for (const workload::Stream stream : workload::kStreams) {
    benchmark::RegisterBenchmark(fmt::format("memory/{}", workload::stream_name(stream)).c_str(), bench::sweep, stream)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  return bench::run(argc, argv, "all");
}
