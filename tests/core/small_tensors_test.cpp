// Many small tensors side by side in one array, of which a backend may take several in one go: nothing may depend on
// whether it does. With a gap between them it cannot.
#include <fmt/format.h>

#include <limits>

#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

constexpr std::size_t kTensors = 90, kEach = 64;  // 64 values of FP32 leave no gap in the accumulator

using SmallTensorsOn = OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, SmallTensorsOn, testing::ValuesIn(all_machines()), machine_name);

/// Tensors with a distance of `gap` elements, in one array of each kind.
class Arrays {
 public:
  Arrays(std::shared_ptr<const Backend> backend, std::size_t gap) : gap_(gap), params(std::move(backend)) {
    for (std::size_t t = 0; t < kTensors; ++t) {
      params.add({.name = fmt::format("t{}", t),
                  .param = part(param_, t),
                  .model = part(model_, t),
                  .group = t / 8 % 4 == 3 ? 1u : 0u});
    }
  }
  TensorView part(const HostTensor& array, std::size_t tensor) const {
    return part_of(array.view(), tensor * (kEach + gap_), kEach);
  }
  /// An array of gradients; the same values whatever the gap.
  HostTensor grads(std::uint64_t seed) const {
    Random random(seed);
    HostTensor array(DType::kFloat16, kTensors * (kEach + gap_));
    for (std::size_t t = 0; t < kTensors; ++t) copy_tensor(part(array, t), moderate(random).view());
    return array;
  }
  std::vector<HostTensor> results(Optimizer& optimizer) const {
    std::vector<HostTensor> all;
    for (std::size_t t = 0; t < kTensors; ++t) {
      all.push_back(copy_of(part(param_, t)));
      all.push_back(copy_of(part(model_, t)));
      for (const OptimizerState& state : optimizer.state(t)) all.push_back(copy_of(state.view));
    }
    return all;
  }

 private:
  static HostTensor moderate(Random& random) { return moderate_tensor(random, DType::kFloat16, kEach); }

  std::size_t gap_;
  HostTensor param_{DType::kFloat32, kTensors*(kEach + gap_)}, model_{DType::kBFloat16, kTensors*(kEach + gap_)};

 public:
  ParameterSet params;
};

/// A micro-batch of the tensors in [first, end), as a list or with a view a tensor.
void add(Window& window, const Arrays& arrays, const HostTensor& grads, std::size_t first, std::size_t end,
         bool is_list) {
  std::vector<Gradient> list;
  std::vector<ConstTensorView> views(kTensors);
  for (std::size_t t = first; t < end; ++t) {
    list.push_back({t, arrays.part(grads, t)});
    views[t] = arrays.part(grads, t);
  }
  is_list ? window.add(list) : window.add(views);
}

TEST_P(SmallTensorsOn, NeighboursGetTheBitsOfLoneTensors) {
  Arrays joined(backend, 0), apart(backend, 1);
  Window joined_window(joined.params, {.steps = 3}), apart_window(apart.params, {.steps = 3});
  AdamW joined_optimizer(joined.params, {.lr = 0.1}), apart_optimizer(apart.params, {.lr = 0.1});
  Random random(7);
  for (std::uint64_t window = 0; window < 12; ++window) {
    std::vector<HostTensor> memory;  // pending gradients live until the step
    for (std::uint64_t b = 0; b < 3; ++b) {
      const auto first = static_cast<std::size_t>(uniform(random, 0, kTensors - 1));
      const auto end = static_cast<std::size_t>(uniform(random, static_cast<std::int64_t>(first), kTensors));
      const bool is_list = uniform(random, 0, 1) == 0;
      for (auto& [arrays, to] : {std::pair{&joined, &joined_window}, std::pair{&apart, &apart_window}}) {
        memory.push_back(arrays->grads(3 * window + b));
        add(*to, *arrays, memory.back(), first, end, is_list);
      }
    }
    joined_optimizer.step(joined_window, {.max_grad_norm = 0.5});
    apart_optimizer.step(apart_window, {.max_grad_norm = 0.5});
    ASSERT_EQ(joined_optimizer.last_report().norm, apart_optimizer.last_report().norm) << "window " << window;
  }
  const std::vector<HostTensor> got = joined.results(joined_optimizer), expected = apart.results(apart_optimizer);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_TRUE(same_bits(got[i], expected[i])) << "result " << i;
}

TEST_P(SmallTensorsOn, TheOneThatIsNotFiniteFirstIsNamedThoughItsNeighboursFollow) {
  for (const DType accumulate : {DType::kFloat32, DType::kFloat64}) {
    Arrays arrays(backend, 0);
    Window window(arrays.params, {.steps = 3, .accumulate = accumulate});
    Sgd optimizer(arrays.params);
    HostTensor first = arrays.grads(1), later = arrays.grads(2);
    first.set(41 * kEach + 5, std::numeric_limits<double>::infinity());
    later.fill(std::numeric_limits<double>::infinity());
    const MicroBatch micro_batch{.weight = 0.318309886};  // in FP64 the products have bits of all kinds
    for (const HostTensor* grads : {&first, &later, &later}) {
      std::vector<ConstTensorView> views;
      for (std::size_t t = 0; t < kTensors; ++t) views.push_back(arrays.part(*grads, t));
      window.add(views, micro_batch);
    }
    optimizer.step(window);
    ASSERT_EQ(optimizer.last_report().outcome, StepOutcome::kNonFinite);
    EXPECT_EQ(optimizer.last_report().non_finite->tensor, 41u);
    EXPECT_EQ(optimizer.last_report().non_finite->micro_batch, 0u);
  }
}

}  // namespace
}  // namespace gradfuse::test
