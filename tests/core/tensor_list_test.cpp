// Lists of awkward shape: empty ones, empty tensors at every place, thousands of scalars. Apex and DeepSpeed lose the
// pending work when a list ends in an empty tensor (defect 1 of the acceptance cases).
#include <fmt/format.h>

#include <gradfuse/passes.hpp>

#include <cmath>

#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

using TensorListOn = OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, TensorListOn, testing::ValuesIn(all_machines()), machine_name);

TEST_P(TensorListOn, AnEmptyListIsNoWork) {
  const TensorList none({}, backend);
  bool found = false;
  zero(none);
  scale(none, none, 2.0f, &found);
  axpby(1.0f, none, 1.0f, none, none);
  clip(none, 10.0, 1.0);
  EXPECT_FALSE(found);
  EXPECT_EQ(l2_norm(none), 0.0);
  EXPECT_EQ(inf_norm(none), 0.0);
  EXPECT_TRUE(l2_norm_per_tensor(none).empty());
}

const std::vector<std::vector<std::size_t>> kShapes = {
    {0},       {0, 7},          {7, 0},       {7, 0, 7},          {7, 7, 0, 0},
    {0, 0, 0}, {5000, 0, 5000}, {0, 9000, 0}, {4096, 4096, 0, 0}, {1, 0, 1, 0, 1, 0, 8192, 0}};

TEST_P(TensorListOn, EmptyTensorsFirstInTheMiddleAndLastChangeNothing) {
  for (const std::vector<std::size_t>& shape : kShapes) {
    SCOPED_TRACE(testing::PrintToString(shape));
    std::vector<HostTensor> tensors;
    std::vector<TensorView> views;
    double num_elements = 0.0;
    for (const std::size_t numel : shape) {
      tensors.emplace_back(DType::kFloat32, numel);
      tensors.back().fill(3.0);
      views.push_back(numel == 0 ? TensorView{} : tensors.back().view());
      num_elements += static_cast<double>(numel);
    }
    const TensorList list(views, backend);
    EXPECT_EQ(l2_norm(list), std::sqrt(9.0 * num_elements));
    scale(list, list, 2.0f);
    for (std::size_t t = 0; t < shape.size(); ++t) {
      HostTensor expected(DType::kFloat32, shape[t]);
      expected.fill(6.0);
      EXPECT_TRUE(same_bits(tensors[t], expected)) << "tensor " << t;
      EXPECT_EQ(l2_norm_per_tensor(list)[t], std::sqrt(36.0 * static_cast<double>(shape[t])));
    }
  }
}

TEST_P(TensorListOn, AStepReachesEveryTensorOfASetThatEndsInEmptyOnes) {
  for (const std::vector<std::size_t>& shape : kShapes) {
    SCOPED_TRACE(testing::PrintToString(shape));
    OwnedSet set(backend);
    for (const std::size_t numel : shape) set.add(HostTensor(DType::kFloat32, numel), DType::kBFloat16);
    std::vector<HostTensor> grads = set.zero_grads(DType::kFloat16);
    for (HostTensor& grad : grads) grad.fill(2.0);
    Window window(set.params, {.steps = 2, .fixed_total = 1.0});
    Sgd optimizer(set.params, {.lr = 1.0, .momentum = 0.5});
    window.add(views_of(grads));
    window.add(views_of(grads));
    optimizer.step(window);
    for (std::size_t t = 0; t < shape.size(); ++t) {
      HostTensor expected(DType::kFloat32, shape[t]), model(DType::kBFloat16, shape[t]);
      expected.fill(-4.0);
      model.fill(-4.0);
      EXPECT_TRUE(same_bits(set.param[t], expected)) << "tensor " << t;
      EXPECT_TRUE(same_bits(set.model[t], model)) << "tensor " << t;
      EXPECT_EQ(optimizer.step_count(t), 1) << "an empty tensor with a gradient steps as any other";
    }
  }
}

TEST_P(TensorListOn, ThousandsOfScalarsAreEachScaledAndSummed) {
  for (const std::size_t num_tensors : {8193, 21000}) {
    HostTensor in(DType::kFloat32, num_tensors), out(DType::kFloat32, num_tensors);
    std::vector<ConstTensorView> from;
    std::vector<TensorView> to;
    double sum = 0.0;
    for (std::size_t t = 0; t < num_tensors; ++t) {
      in.set(t, static_cast<double>(t % 97));
      sum += in.get(t) * in.get(t);  // integers: exact in any order
      from.push_back(part_of(in.view(), t, 1));
      to.push_back(part_of(out.view(), t, 1));
    }
    const ConstTensorList list(from, backend);
    scale(list, TensorList(to, backend), 2.0f);
    for (std::size_t t = 0; t < num_tensors; ++t) ASSERT_EQ(out.get(t), 2.0 * in.get(t)) << t;
    EXPECT_EQ(l2_norm(list), std::sqrt(sum));
    EXPECT_EQ(inf_norm(list), 96.0);
  }
}

TEST_P(TensorListOn, ThousandsOfScalarsAreEachStepped) {
  for (const std::size_t num_tensors : {8193, 21000}) {
    HostTensor param(DType::kFloat32, num_tensors), grad(DType::kFloat32, num_tensors);
    param.fill(1.0);
    ParameterSet params(backend);
    std::vector<ConstTensorView> grads;
    for (std::size_t t = 0; t < num_tensors; ++t) {
      grad.set(t, static_cast<double>(t));
      params.add(
          {.name = fmt::format("scalar{}", t), .param = part_of(param.view(), t, 1), .model = {}, .group = t % 3});
      grads.push_back(part_of(grad.view(), t, 1));
    }
    Window window(params, {.steps = 2, .fixed_total = 1.0});
    Sgd optimizer(params, {.lr = 1.0});
    optimizer.group(1).lr = 2.0;
    optimizer.group(2).lr = 4.0;
    window.add(grads);
    window.add(grads);
    optimizer.step(window);
    const double lr[] = {1.0, 2.0, 4.0};
    for (std::size_t t = 0; t < num_tensors; ++t) ASSERT_EQ(param.get(t), 1.0 - lr[t % 3] * 2.0 * grad.get(t)) << t;
  }
}

TEST(TensorListMadeByDefault, GoesTogetherWithAnotherMadeByDefault) {
  std::vector<float> in{1.0f, 2.0f}, out(2);
  scale(ConstTensorList({{in.data(), 2, DType::kFloat32}}), TensorList({{out.data(), 2}}), 3.0f);
  EXPECT_EQ(out, (std::vector<float>{3.0f, 6.0f}));
}

}  // namespace
}  // namespace gradfuse::test
