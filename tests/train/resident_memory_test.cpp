#include <gradfuse/train/resident_memory.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace gradfuse::train {
namespace {

constexpr std::size_t kBlock = std::size_t{64} << 20;
constexpr std::size_t kSlack = std::size_t{16} << 20;  // what else the process does meanwhile

TEST(ResidentMemory, SeesABlockComeAndRemembersItsPeak) {
  const ResidentMemory before = resident_memory();
  EXPECT_GT(before.current_bytes, 0u);
  {
    std::vector<char> block(kBlock, 1);
    EXPECT_GE(resident_memory().current_bytes + kSlack, before.current_bytes + kBlock);
    EXPECT_EQ(block.back(), 1);
  }
  const ResidentMemory after = resident_memory();
  EXPECT_GE(after.peak_bytes + kSlack, before.current_bytes + kBlock);
  EXPECT_GE(after.peak_bytes + kSlack, after.current_bytes);
}

}  // namespace
}  // namespace gradfuse::train
