#include "src/train/epoch_order.hpp"

#include <gmock/gmock.h>

namespace gradfuse::train {
namespace {

std::vector<std::size_t> copy_of(std::span<const std::size_t> order) { return {order.begin(), order.end()}; }

TEST(EpochOrder, VisitsEachRowOnceAndInAnotherOrderEachEpoch) {
  EpochOrder order(100, 3);
  std::vector<std::size_t> rows(100);
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  const std::vector<std::size_t> first = copy_of(order.next()), second = copy_of(order.next());
  EXPECT_THAT(first, testing::UnorderedElementsAreArray(rows));
  EXPECT_THAT(second, testing::UnorderedElementsAreArray(rows));
  EXPECT_NE(first, second);
}

TEST(EpochOrder, IsThatOfTheSeedOnEveryMachine) {
  EpochOrder order(10, 0);
  EXPECT_THAT(copy_of(order.next()), testing::ElementsAre(7, 1, 0, 6, 4, 3, 2, 9, 8, 5));
}

TEST(EpochOrder, OfOneRowIsThatRow) { EXPECT_THAT(copy_of(EpochOrder(1, 7).next()), testing::ElementsAre(0)); }

}  // namespace
}  // namespace gradfuse::train
