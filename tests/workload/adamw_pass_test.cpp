#include "src/workload/adamw_pass.hpp"

#include <gtest/gtest.h>

namespace gradfuse::workload {
namespace {

TEST(AdamWPass, RunsAgainAndAgain) {
  AdamWPass pass(many_tensors(3, 64), cpu_backend());
  for (int i = 0; i < 10; ++i) EXPECT_NO_THROW(pass.run());
  EXPECT_EQ(AdamWPass::num_bytes(10), 160u);
}

}  // namespace
}  // namespace gradfuse::workload
