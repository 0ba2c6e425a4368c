#include "src/workload/suite.hpp"

#include <fmt/format.h>

#include <gradfuse/error.hpp>
#include <new>
#include <span>

#include "src/workload/adamw_pass.hpp"
#include "src/workload/available_memory.hpp"
#include "src/workload/interleaved.hpp"
#include "src/workload/window_bytes.hpp"
#include "src/workload/windows.hpp"

namespace gradfuse::workload {
namespace {

constexpr std::size_t kLarge = 31'000'000;
constexpr std::size_t kManyTensors = 10'000, kManyEach = 64;

struct WindowCase {
  std::string tensor_list;
  TensorShapes tensors;
  DType grad_dtype;
  std::size_t micro_batches;
};
/// Cases that are compared with each other, timed in turn.
using Group = std::vector<WindowCase>;

std::vector<Group> window_groups() {
  using enum DType;
  const auto large = [](DType dtype, std::size_t micro_batches) {
    return Group{{"one tensor", one_tensor(kLarge), dtype, micro_batches}};
  };
  return {large(kFloat16, 1),
          large(kFloat16, 4),
          large(kFloat16, 16),
          large(kBFloat16, 4),
          large(kFloat32, 4),
          {{"GPT-2", gpt2_tensors(gpt2_width_near(kLarge)), kFloat16, 4}},
          {{"one tensor", one_tensor(kManyTensors * kManyEach), kFloat16, 4},
           {fmt::format("{} x {}", kManyTensors, kManyEach), many_tensors(kManyTensors, kManyEach), kFloat16, 4}}};
}

ModelOptions model_options(const WindowCase& window_case, std::shared_ptr<const Backend> backend) {
  return {.grad_dtype = window_case.grad_dtype,
          .model_dtype = usual_model_dtype(window_case.grad_dtype),
          .backend = std::move(backend)};
}

struct RunningCase {
  RunningCase(const WindowCase& window_case, const std::shared_ptr<const Backend>& backend)
      : model(window_case.tensors, model_options(window_case, backend)),
        fused(model, window_case.micro_batches),
        unfused(model, window_case.micro_batches) {}
  SyntheticModel model;
  FusedWindow fused;
  UnfusedWindow unfused;
};

WindowResult untimed_result(const WindowCase& window_case) {
  const WindowTraffic traffic{.micro_batches = window_case.micro_batches,
                              .grad_dtype = window_case.grad_dtype,
                              .has_model_copy = usual_model_dtype(window_case.grad_dtype).has_value()};
  return {.tensor_list = window_case.tensor_list,
          .parameters = numel_of(window_case.tensors),
          .tensors = window_case.tensors.size(),
          .grad_dtype = window_case.grad_dtype,
          .micro_batches = window_case.micro_batches,
          .fused_bytes_per_parameter = traffic.fused_bytes(),
          .unfused_bytes_per_parameter = traffic.unfused_bytes(),
          .why_skipped = {}};
}

/// Runs `measure` unless the memory is too small; returns why there is nothing measured.
template <class Measure>
std::string measure_if_it_fits(const Backend& backend, std::size_t num_bytes, Measure measure) {
  // Of a GPU, whose memory says by itself what is missing, only the arrays' making needs the host's.
  std::string shortage = memory_shortage(backend.device() == Device::kCpu ? num_bytes : num_bytes / 8);
  if (!shortage.empty()) return shortage;
  try {
    measure();
  } catch (const std::bad_alloc&) {  // a limit of the process, which the machine's figures do not show
    return "ran out of memory";
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::vector<WindowResult> measure_group(const Group& group, const SuiteOptions& options, double seconds,
                                        BandwidthMeter& meter) {
  std::vector<WindowResult> results;
  std::size_t num_bytes = 0;
  for (const WindowCase& window_case : group) {
    results.push_back(untimed_result(window_case));
    num_bytes += windows_num_bytes(results.back().parameters, model_options(window_case, options.backend));
  }
  const std::string why_skipped = measure_if_it_fits(*options.backend, num_bytes, [&] {
    std::vector<std::unique_ptr<RunningCase>> running;
    // Twice a round, so that every kind of sweep has its turn also where rounds are long.
    std::vector<std::function<void()>> variants{[&] { meter.measure_next(), meter.measure_next(); }};
    meter.start_case();
    for (const WindowCase& window_case : group) {
      RunningCase& made = *running.emplace_back(std::make_unique<RunningCase>(window_case, options.backend));
      variants.emplace_back([&made] { made.fused.run(); });
      variants.emplace_back([&made] { made.unfused.run(); });
    }
    const std::vector<double> fastest = fastest_of_each(variants, {.seconds = seconds}, *options.backend);
    for (std::size_t c = 0; c < group.size(); ++c) {
      running[c]->fused.checked_report();
      running[c]->unfused.checked_report();
      results[c].fused_seconds = fastest[1 + 2 * c];
      results[c].unfused_seconds = fastest[2 + 2 * c];
      results[c].bandwidth = meter.case_bound();
    }
  });
  for (WindowResult& result : results) result.why_skipped = why_skipped;
  return results;
}

PassResult measure_adamw(const SuiteOptions& options, double seconds, BandwidthMeter& meter) {
  PassResult result{
      .name = "adamw", .parameters = kLarge, .tensors = 1, .bytes_per_parameter = kAdamWBytes, .why_skipped = {}};
  result.why_skipped = measure_if_it_fits(*options.backend, AdamWPass::num_bytes(kLarge), [&] {
    AdamWPass pass(one_tensor(kLarge), options.backend);
    const std::vector<std::function<void()>> variants{[&] { meter.measure_next(); }, [&] { pass.run(); }};
    meter.start_case();
    result.seconds = fastest_of_each(variants, {.seconds = seconds}, *options.backend)[1];
    result.bandwidth = meter.case_bound();
  });
  return result;
}

}  // namespace

SuiteResult run_suite(const SuiteOptions& options, BandwidthMeter& meter,
                      const std::function<void(const std::string&)>& progress) {
  const std::vector<Group> groups = window_groups();
  const double seconds = options.seconds / static_cast<double>(groups.size() + 1);
  meter.measure_all(1);
  SuiteResult result;
  for (const Group& group : groups) {
    const WindowCase& first = group.front();
    progress(fmt::format("window of {} micro-batches, {}, {}", first.micro_batches, dtype_name(first.grad_dtype),
                         group.back().tensor_list));
    for (WindowResult& window : measure_group(group, options, seconds, meter)) {
      result.windows.push_back(std::move(window));
    }
  }
  progress("AdamW alone");
  result.passes.push_back(measure_adamw(options, seconds, meter));
  return result;
}

}  // namespace gradfuse::workload
