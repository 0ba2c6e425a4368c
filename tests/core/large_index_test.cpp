// Beyond 2^31 and 2^32 elements: the work table's arithmetic, and one real pass, without the memory of either.
#include <sys/mman.h>

#include <gradfuse/passes.hpp>

#include <cmath>
#include <cstring>

#include "src/backend/work_table.hpp"
#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

constexpr std::size_t kTwo31 = std::size_t{1} << 31, kTwo32 = std::size_t{1} << 32;

void expect_each_element_once(const WorkTable& table, const std::vector<std::size_t>& numels) {
  std::size_t index = 0;
  std::int64_t total = 0;
  for (std::size_t tensor = 0; tensor < numels.size(); ++tensor) {
    EXPECT_EQ(table.chunks_of(tensor).begin, index);
    std::int64_t next = 0;
    while (index < table.chunks().size() && table.chunks()[index].tensor == tensor) {
      const Chunk& chunk = table.chunks()[index++];
      ASSERT_EQ(chunk.begin, next);
      ASSERT_TRUE(chunk.numel > 0 && chunk.numel <= kChunkSize);
      next += chunk.numel;
    }
    EXPECT_EQ(next, static_cast<std::int64_t>(numels[tensor])) << "tensor " << tensor;
    EXPECT_EQ(table.chunks_of(tensor).end, index);
    total += next;
  }
  EXPECT_EQ(index, table.chunks().size());
  EXPECT_EQ(table.numel(), total);
}

void expect_partition(const WorkTable& table, ChunkRange range, std::size_t num_threads) {
  std::size_t next = range.begin;
  for (std::size_t thread = 0; thread < num_threads; ++thread) {
    const ChunkRange part = table.part(range, thread, num_threads);
    ASSERT_EQ(part.begin, next) << "thread " << thread << " of " << num_threads;
    ASSERT_GE(part.end, part.begin);
    next = part.end;
  }
  ASSERT_EQ(next, range.end) << num_threads << " threads";
}

TEST(LargeIndex, ChunksCoverEachElementOfHugeTensorsOnce) {
  for (const std::vector<std::size_t>& numels :
       {std::vector{kTwo31 - 1}, {kTwo31}, {kTwo32 + 1}, {5, kTwo31 - 1, 0, kTwo31, kTwo32 + 1, 0, 7, 0}}) {
    const WorkTable table(numels);
    expect_each_element_once(table, numels);
    for (const std::size_t num_threads : {1, 2, 3, 7, 64, 4096})
      expect_partition(table, table.all_chunks(), num_threads);
  }
}

TEST(LargeIndex, ThreadsGetAboutTheSameWork) {
  const WorkTable table(std::vector<std::size_t>{kTwo31, 3, kTwo32 + 1});
  for (const std::size_t num_threads : {2, 7, 64}) {
    const auto fair = static_cast<double>(table.chunks().size()) / static_cast<double>(num_threads);
    for (std::size_t thread = 0; thread < num_threads; ++thread) {
      const ChunkRange part = table.part(table.all_chunks(), thread, num_threads);
      EXPECT_LE(std::fabs(static_cast<double>(part.end - part.begin) - fair), 2.0);
    }
  }
}

TEST(LargeIndex, PartsCoverEveryRangeWithMoreThreadsThanChunksToo) {
  const std::vector<std::size_t> numels{1, 0, 4096, 4097, 0, 1, 1, 1, 20000, 0};
  const WorkTable table(numels);
  expect_each_element_once(table, numels);
  for (std::size_t begin = 0; begin <= table.chunks().size(); ++begin) {
    for (std::size_t end = begin; end <= table.chunks().size(); ++end) {
      for (const std::size_t num_threads : {1, 2, 3, 5, 7, 16, 100, 4096})
        expect_partition(table, {begin, end}, num_threads);
    }
  }
}

TEST(LargeIndex, APassReachesTheElementsBeyondTwoToThe32) {
  constexpr std::size_t kNumel = kTwo32 + 4097, kNumBytes = kNumel * sizeof(BFloat16);
  void* memory = ::mmap(nullptr, kNumBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no address space for 8 GiB: " << std::strerror(errno);
  ::madvise(memory, kNumBytes, MADV_NOHUGEPAGE);  // so that what is only read is the one page of zeros
  auto* elements = static_cast<BFloat16*>(memory);
  elements[0] = {0x4040};           // 3
  elements[kTwo31] = {0x4080};      // 4
  elements[kTwo32] = {0x4140};      // 12
  elements[kNumel - 1] = {0x42a8};  // 84: 3^2 + 4^2 + 12^2 + 84^2 = 85^2
  {
    const ConstTensorList list({{memory, kNumel, DType::kBFloat16}}, cpu_backend());
    EXPECT_EQ(l2_norm(list), 85.0);
  }
  ::munmap(memory, kNumBytes);
}

}  // namespace
}  // namespace gradfuse::test
