// How close is each pass, alone, to what this machine's memory can move?
// Names: pass/<pass>[/<dtype>]/<parameters>/manual_time; those of 1e8 parameters run only if --benchmark_filter selects
// them. Every pass keeps its values in range however often it runs.
#include <fmt/format.h>

#include <algorithm>
#include <gradfuse/passes.hpp>
#include <gradfuse/window.hpp>
#include <limits>

#include "bench/report.hpp"
#include "src/workload/adamw_pass.hpp"
#include "src/workload/window_bytes.hpp"
#include "src/workload/windows.hpp"

namespace gradfuse::bench {
namespace {

using workload::FlatArray;
using workload::one_tensor;

/// An array and the list through which passes reach it. Values have a magnitude in [1, 2).
class Array {
 public:
  Array(std::size_t numel, DType dtype)
      : memory_(one_tensor(numel), dtype, *backend(), 0), list_(memory_.views(), backend()) {}
  const TensorList& list() const { return list_; }

 private:
  FlatArray memory_;
  TensorList list_;
};

/// Times a pass on `numel` elements, gradients or operands of `dtype`, and reports its bytes.
using Pass = void (*)(benchmark::State&, std::size_t numel, DType dtype);

void add_first(benchmark::State& state, std::size_t numel, DType dtype) {
  const workload::SyntheticModel model(one_tensor(numel), {.grad_dtype = dtype, .backend = backend()});
  Window window(model.params(), {.steps = 2});
  time_each(state, [&] {
    window.add(model.grads());
    window.discard();
  });
  report(state, numel, element_size(dtype) + 4);
}

void add_later(benchmark::State& state, std::size_t numel, DType dtype) {
  const workload::SyntheticModel model(one_tensor(numel), {.grad_dtype = dtype, .backend = backend()});
  Window window(model.params(), {.steps = std::numeric_limits<std::size_t>::max()});
  window.add(model.grads());
  time_each(state, [&] { window.add(model.grads()); });
  report(state, numel, element_size(dtype) + 8);
}

/// Statistics and step of a window of one micro-batch: two passes over what is pending.
void pending_step(benchmark::State& state, std::size_t numel, DType dtype) {
  const std::optional<DType> model_dtype = workload::usual_model_dtype(dtype);
  const workload::SyntheticModel model(one_tensor(numel),
                                       {.grad_dtype = dtype, .model_dtype = model_dtype, .backend = backend()});
  workload::FusedWindow window(model, 1);
  window.run();
  time_each(state, [&] { window.run(); });
  const workload::WindowTraffic traffic{
      .micro_batches = 1, .grad_dtype = dtype, .has_model_copy = model_dtype.has_value()};
  report(state, numel, traffic.fused_bytes());
}

void stats(benchmark::State& state, std::size_t numel, DType dtype) {
  const Array x(numel, dtype);
  time_each(state, [&] { benchmark::DoNotOptimize(l2_norm(x.list())); });
  report(state, numel, element_size(dtype));
}

void max_magnitude(benchmark::State& state, std::size_t numel, DType dtype) {
  const Array x(numel, dtype);
  time_each(state, [&] { benchmark::DoNotOptimize(inf_norm(x.list())); });
  report(state, numel, element_size(dtype));
}

void unscale(benchmark::State& state, std::size_t numel, DType dtype) {
  const Array x(numel, dtype);
  bool found_nonfinite = false;
  time_each(state, [&] { scale(x.list(), x.list(), -1.0f, &found_nonfinite); });
  report(state, numel, 2 * element_size(dtype));
}

void clip_in_place(benchmark::State& state, std::size_t numel, DType dtype) {
  const Array x(numel, dtype);
  // The coefficient is below 1, so the pass runs, but rounds to 1 in float32, so that the values stay.
  time_each(state, [&] { clip(x.list(), 1000.0, 1000.0); });
  report(state, numel, 2 * element_size(dtype));
}

void add_unfused(benchmark::State& state, std::size_t numel, DType dtype) {
  const Array x(numel, dtype), y(numel, DType::kFloat32);
  time_each(state, [&] { axpby(0.5f, x.list(), 0.5f, y.list(), y.list()); });
  report(state, numel, element_size(dtype) + 8);
}

void zero_fill(benchmark::State& state, std::size_t numel, DType dtype) {
  const Array x(numel, dtype);
  time_each(state, [&] { zero(x.list()); });
  report(state, numel, element_size(dtype));
}

void cast_from_float32(benchmark::State& state, std::size_t numel, DType dtype) {
  const Array from(numel, DType::kFloat32), to(numel, dtype);
  time_each(state, [&] { cast(from.list(), to.list()); });
  report(state, numel, 4 + element_size(dtype));
}

void adamw(benchmark::State& state, std::size_t numel, DType) {
  workload::AdamWPass pass(one_tensor(numel), backend());
  pass.run();
  double fastest = std::numeric_limits<double>::infinity();  // for compare_torch.py, which takes torch's fastest step
  const std::unique_ptr<Stopwatch> stopwatch = backend()->make_stopwatch();
  for (auto _ : state) {
    stopwatch->start();
    pass.run();
    const double seconds = stopwatch->stop();
    state.SetIterationTime(seconds);
    fastest = std::min(fastest, seconds);
  }
  report(state, numel, workload::kAdamWBytes);
  state.counters["fastest_seconds"] = fastest;
}

void sgd_momentum(benchmark::State& state, std::size_t numel, DType) {
  const Array param(numel, DType::kFloat32), grad(numel, DType::kFloat32), momentum_buffer(numel, DType::kFloat32);
  std::int64_t step = 0;
  const SgdOptions options{.lr = 1e-3, .momentum = 0.9};
  for (auto _ : state) sgd_step({param.list(), grad.list(), &momentum_buffer.list()}, options, ++step);
  report(state, numel, 20);
}

void sgd_plain(benchmark::State& state, std::size_t numel, DType) {
  const Array param(numel, DType::kFloat32), grad(numel, DType::kFloat32);
  for (auto _ : state) sgd_step({param.list(), grad.list()}, SgdOptions{}, 1);
  report(state, numel, 12);
}

void add_benchmark(const std::string& name, Pass pass, std::size_t numel, DType dtype) {
  constexpr std::size_t kBytesOfTheLargest = 32;  // per parameter: a model with the states of one window
  benchmark::RegisterBenchmark(fmt::format("pass/{}/{}", name, numel).c_str(),
                               [=](benchmark::State& state) {
                                 if (has_memory(state, kBytesOfTheLargest * numel)) pass(state, numel, dtype);
                               })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

struct NamedPass {
  const char* name;
  Pass pass;
};
constexpr NamedPass kPassesPerDType[] = {
    {"add_first", add_first},    {"add_later", add_later},   {"stats_and_step", pending_step}, {"l2_norm", stats},
    {"inf_norm", max_magnitude}, {"scale", unscale},         {"clip", clip_in_place},          {"axpby", add_unfused},
    {"zero", zero_fill},         {"cast", cast_from_float32}};
constexpr NamedPass kFloat32Passes[] = {{"adamw", adamw}, {"sgd", sgd_plain}, {"sgd_momentum", sgd_momentum}};

}  // namespace
}  // namespace gradfuse::bench

int main(int argc, char** argv) {
  using namespace gradfuse;
  for (const std::size_t numel : {100'000u, 1'000'000u, 10'000'000u, 31'000'000u, 100'000'000u}) {
    for (const bench::NamedPass& pass : bench::kPassesPerDType) {
      for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
        bench::add_benchmark(fmt::format("{}/{}", pass.name, dtype_name(dtype)), pass.pass, numel, dtype);
      }
    }
    for (const bench::NamedPass& pass : bench::kFloat32Passes) {
      bench::add_benchmark(pass.name, pass.pass, numel, DType::kFloat32);
    }
  }
  return bench::run(argc, argv, "-/100000000/");
}
