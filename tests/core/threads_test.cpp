// Objects that share nothing but a backend, or nothing at all, may be used by different threads at the same time.
#include <thread>

#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

/// Parameters and moments after a few windows.
Snapshot train(const std::shared_ptr<const Backend>& backend, std::uint64_t seed) {
  Random random(seed);
  OwnedSet set(backend);
  for (const std::size_t numel : {9000, 17, 30000})
    set.add(moderate_tensor(random, DType::kFloat32, numel), DType::kBFloat16);
  Window window(set.params, {.steps = 2});
  AdamW optimizer(set.params, {.lr = 0.01});
  for (int w = 0; w < 6; ++w) {
    std::vector<std::vector<HostTensor>> grads(2);
    for (auto& micro_batch : grads) {
      for (const HostTensor& param : set.param)
        micro_batch.push_back(moderate_tensor(random, DType::kFloat16, param.numel()));
      window.add(views_of(micro_batch));
    }
    optimizer.step(window, {.max_grad_norm = 1.0});
  }
  return snapshot(set, optimizer);
}

TEST(Threads, TrainingDistinctObjectsAtTheSameTimeGivesTheBitsOfTrainingAlone) {
  for (const std::string& target : cpu_targets()) {
    for (const bool is_shared : {true, false}) {
      SCOPED_TRACE(testing::Message() << target << (is_shared ? ", one backend" : ", two backends"));
      const auto first = cpu_backend({.threads = 2, .target = target});
      const auto second = is_shared ? first : cpu_backend({.threads = 2, .target = target});
      const Snapshot alone[] = {train(first, 1), train(second, 2)};
      Snapshot together[2];
      std::thread one([&] { together[0] = train(first, 1); }), other([&] { together[1] = train(second, 2); });
      one.join();
      other.join();
      EXPECT_TRUE(same(together[0], alone[0]));
      EXPECT_TRUE(same(together[1], alone[1]));
    }
  }
}

}  // namespace
}  // namespace gradfuse::test
