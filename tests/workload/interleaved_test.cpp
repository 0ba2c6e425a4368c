#include "src/workload/interleaved.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gradfuse::workload {
namespace {

TEST(FastestOfEach, RunsTheVariantsInTurn) {
  std::string order;
  const std::vector<std::function<void()>> variants{[&] { order += 'a'; }, [&] { order += 'b'; }};
  const std::vector<double> fastest = fastest_of_each(variants, {.min_rounds = 3, .seconds = 0.0}, *cpu_backend());
  EXPECT_EQ(order, "abababab");  // one untimed round before the three
  ASSERT_EQ(fastest.size(), 2u);
  EXPECT_GE(fastest[0], 0.0);
}

TEST(FastestOfEach, KeepsTheShortestTime) {
  int call = 0;
  volatile double sink = 0.0;
  const auto slow_at_first = [&] {
    const int work = call++ < 3 ? 10'000'000 : 1;
    for (int i = 0; i < work; ++i) sink = sink + 1.0;
  };
  const std::vector<std::function<void()>> variants{slow_at_first};
  const double with_fast = fastest_of_each(variants, {.min_rounds = 4, .seconds = 0.0}, *cpu_backend())[0];
  call = 0;
  const double slow_only = fastest_of_each(variants, {.min_rounds = 2, .seconds = 0.0}, *cpu_backend())[0];
  EXPECT_LT(with_fast, slow_only);
}

}  // namespace
}  // namespace gradfuse::workload
