// How much faster is a fused window than the unfused chain, and how close is it to its bound? Compare fused/… with
// unfused/… of the same name; --benchmark_enable_random_interleaving=true times them in turn.
// Names: window/fused|unfused/<tensor list>/<parameters>/<gradient dtype>/<micro-batches>/manual_time. Lists of 1e8
// parameters take 3 GB and minutes: they run only if --benchmark_filter selects them, as in
// --benchmark_filter='one_tensor/100000000/'.
#include <fmt/format.h>

#include <functional>
#include <variant>

#include "bench/report.hpp"
#include "src/workload/window_bytes.hpp"
#include "src/workload/windows.hpp"

namespace gradfuse::bench {
namespace {

using workload::FusedWindow;
using workload::UnfusedWindow;

struct TensorList {
  std::string name;
  std::size_t numel;
  std::function<workload::TensorShapes()> make;
};

std::vector<TensorList> tensor_lists() {
  std::vector<TensorList> lists;
  for (const std::size_t numel : {100'000u, 1'000'000u, 10'000'000u, 31'000'000u, 100'000'000u}) {
    lists.push_back({"one_tensor", numel, [numel] { return workload::one_tensor(numel); }});
    const std::size_t width = workload::gpt2_width_near(numel);
    lists.push_back({"gpt2", numel, [width] { return workload::gpt2_tensors(width); }});
  }
  lists.push_back({"one_tensor", 640'000, [] { return workload::one_tensor(640'000); }});
  lists.push_back({"10000_tensors", 640'000, [] { return workload::many_tensors(10'000, 64); }});
  return lists;
}

template <class Window>
void run_window(benchmark::State& state, const TensorList& list, DType grad_dtype, std::size_t micro_batches) {
  const workload::ModelOptions options{
      .grad_dtype = grad_dtype, .model_dtype = workload::usual_model_dtype(grad_dtype), .backend = backend()};
  const workload::TensorShapes tensors = list.make();
  const std::size_t numel = workload::numel_of(tensors);
  if (!has_memory(state, workload::windows_num_bytes(numel, options))) return;
  const workload::SyntheticModel model(tensors, options);
  Window window(model, micro_batches);
  window.run();  // touches the states
  time_each(state, [&] { window.run(); });
  window.checked_report();
  const workload::WindowTraffic traffic{
      .micro_batches = micro_batches, .grad_dtype = grad_dtype, .has_model_copy = options.model_dtype.has_value()};
  report(state, numel, std::is_same_v<Window, FusedWindow> ? traffic.fused_bytes() : traffic.unfused_bytes());
  state.counters["tensors"] = static_cast<double>(tensors.size());
}

template <class Window>
void add_benchmark(const char* kind, const TensorList& list, DType grad_dtype, std::size_t micro_batches) {
  const std::string name =
      fmt::format("window/{}/{}/{}/{}/{}", kind, list.name, list.numel, dtype_name(grad_dtype), micro_batches);
  benchmark::RegisterBenchmark(name.c_str(), run_window<Window>, list, grad_dtype, micro_batches)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace gradfuse::bench

int main(int argc, char** argv) {
  using namespace gradfuse;
  for (const bench::TensorList& list : bench::tensor_lists()) {
    for (const DType grad_dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
      for (const std::size_t micro_batches : {1u, 2u, 4u, 8u, 16u}) {
        bench::add_benchmark<bench::FusedWindow>("fused", list, grad_dtype, micro_batches);
        bench::add_benchmark<bench::UnfusedWindow>("unfused", list, grad_dtype, micro_batches);
      }
    }
  }
  return bench::run(argc, argv, "-/100000000/");
}
