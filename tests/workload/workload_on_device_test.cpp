// What benchmarks time, on every machine.
#include <fmt/format.h>

#include "src/backend/backend.hpp"
#include "src/workload/adamw_pass.hpp"
#include "src/workload/windows.hpp"
#include "tests/core/training.hpp"

namespace gradfuse::workload {
namespace {

using WorkloadOn = test::OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, WorkloadOn, testing::ValuesIn(test::all_machines()), test::machine_name);

std::vector<float> parameters_of(const SyntheticModel& model) {
  std::vector<float> values;
  for (const Parameter& parameter : model.params().parameters()) {
    const std::size_t before = values.size();
    values.resize(before + parameter.param.numel);
    copy_to_host(*model.params().backend(), parameter.param, &values[before]);
  }
  return values;
}

TEST_P(WorkloadOn, FusedAndUnfusedWindowsDoTheSame) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32}) {
    const ModelOptions options{.grad_dtype = dtype, .model_dtype = usual_model_dtype(dtype), .backend = backend};
    const SyntheticModel fused_model(many_tensors(3, 700), options), unfused_model(many_tensors(3, 700), options);
    FusedWindow fused(fused_model, 3);
    UnfusedWindow unfused(unfused_model, 3);
    for (int step = 0; step < 2; ++step) {
      fused.run();
      unfused.run();
      EXPECT_EQ(fused.checked_report().micro_batches, 3u);
      EXPECT_NEAR(fused.checked_report().norm / unfused.checked_report().norm, 1.0, 1e-6);
    }
    const std::vector<float> a = parameters_of(fused_model), b = parameters_of(unfused_model);
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-6f) << i;
  }
}

TEST_P(WorkloadOn, APassRunsAgainAndAgainAndIsTimed) {
  AdamWPass pass(many_tensors(3, 64), backend);
  const std::unique_ptr<Stopwatch> stopwatch = backend->make_stopwatch();
  for (int i = 0; i < 3; ++i) {
    stopwatch->start();
    pass.run();
    EXPECT_GE(stopwatch->stop(), 0.0);
  }
}

}  // namespace
}  // namespace gradfuse::workload
