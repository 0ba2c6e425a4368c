#pragma once
// What every benchmark reports beside its time: the bytes it has to move, and how that compares with this machine.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <gradfuse/backend.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include "src/backend/backend.hpp"
#include "src/workload/available_memory.hpp"
#include "src/workload/bandwidth.hpp"

namespace gradfuse::bench {

/// What --device=cuda chooses instead of the CPU.
inline bool is_on_gpu = false;

/// One for the process: the first GPU, or the processors that OMP_NUM_THREADS allows.
inline const std::shared_ptr<const Backend>& backend() {
  static const std::shared_ptr<const Backend> made = is_on_gpu ? cuda_backend() : cpu_backend();
  return made;
}

/// Times `body` as the device takes it.
template <class Body>
void time_each(benchmark::State& state, Body body) {
  const std::unique_ptr<Stopwatch> stopwatch = backend()->make_stopwatch();
  for (auto _ : state) {
    stopwatch->start();
    body();
    state.SetIterationTime(stopwatch->stop());
  }
}

/// Bytes per second, measured once in this process: the bound of everything it reports.
inline double memory_bandwidth() {
  static const double measured = [] {
    workload::BandwidthMeter meter(backend());
    meter.measure_all(10);
    return meter.bound();
  }();
  return measured;
}

/// Sets bytes_per_second, bytes_per_parameter, and the share of the memory bandwidth. The console prints the share with
/// "/s", since it is a rate: seconds that the bound takes in a second.
inline void report(benchmark::State& state, std::size_t parameters, std::size_t bytes_per_parameter) {
  using benchmark::Counter;
  const auto num_bytes = static_cast<double>(parameters * bytes_per_parameter);
  state.SetBytesProcessed(static_cast<std::int64_t>(parameters * bytes_per_parameter) * state.iterations());
  state.counters["bytes_per_parameter"] = static_cast<double>(bytes_per_parameter);
  state.counters["bandwidth_share"] = Counter(num_bytes / memory_bandwidth(), Counter::kIsIterationInvariantRate);
}

/// Skips the benchmark if the machine has not so much memory.
inline bool has_memory(benchmark::State& state, std::size_t num_bytes) {
  const std::string shortage = is_on_gpu ? "" : workload::memory_shortage(num_bytes);
  if (!shortage.empty()) state.SkipWithError(shortage.c_str());
  return shortage.empty();
}

/// Runs what the command line selects; without a --benchmark_filter, all but what `default_filter` leaves out.
inline int run(int argc, char** argv, const std::string& default_filter) {
  char** const end = std::remove_if(argv, argv + argc, [](const char* argument) {
    return std::string_view(argument) == "--device=cuda" && (is_on_gpu = true);
  });
  argc = static_cast<int>(end - argv);
  if (const std::string reason = why_no_cuda(); is_on_gpu && !reason.empty()) {
    std::cerr << "skipped: " << reason << '\n';
    return 0;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const BackendInfo info = describe(*backend());
  benchmark::AddCustomContext("backend", info.name);
  benchmark::AddCustomContext("device", info.device);
  benchmark::AddCustomContext("threads", std::to_string(info.threads));
  benchmark::AddCustomContext("target", info.target);
  benchmark::AddCustomContext("memory_bandwidth_bytes_per_second", std::to_string(memory_bandwidth()));
  const std::string filter = benchmark::GetBenchmarkFilter();
  benchmark::RunSpecifiedBenchmarks(filter.empty() ? default_filter : filter);
  benchmark::Shutdown();
  return 0;
}

}  // namespace gradfuse::bench
