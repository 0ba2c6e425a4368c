#include <gradfuse/train/parameters_digest.hpp>

#include <gmock/gmock.h>

#include <span>
#include <vector>

namespace gradfuse::train {
namespace {

std::string digest_of(std::vector<float> a, std::vector<float> b) {
  ParameterSet params;
  params.add({.name = "a", .param = view_of(std::span(a))});
  params.add({.name = "b", .param = view_of(std::span(b))});
  return parameters_digest(params);
}

TEST(ParametersDigest, OfNoBytesIsThatOfXxh3) {
  EXPECT_EQ(parameters_digest(ParameterSet()), "2d06800538d394c2");  // XXH3 64 of the empty input, seed 0
}

TEST(ParametersDigest, TellsASingleBit) {
  const std::string digest = digest_of({1.0f, 2.0f}, {0.0f});
  EXPECT_THAT(digest, testing::MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(digest.size(), 16u);
  EXPECT_EQ(digest_of({1.0f, 2.0f}, {0.0f}), digest);
  EXPECT_NE(digest_of({1.0f, 2.0f}, {-0.0f}), digest);
  EXPECT_NE(digest_of({2.0f, 1.0f}, {0.0f}), digest);
}

}  // namespace
}  // namespace gradfuse::train
