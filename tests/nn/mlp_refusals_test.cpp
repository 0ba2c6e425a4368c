// What an MLP refuses: with a message that names the place, and before anything changes.
#include "tests/error_of.hpp"
#include "tests/nn/support.hpp"

#include <gmock/gmock.h>
#include <gradfuse/nn/mlp.hpp>

#include <limits>
#include <string>
#include <vector>

namespace gradfuse::nn {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

MlpOptions with_widths(std::vector<std::size_t> widths) { return {.widths = std::move(widths)}; }

TEST(MlpOptionsRefused, WidthsThatAreTooFewOrZeroOrHuge) {
  EXPECT_THAT(error_of([] { Mlp(with_widths({})); }), HasSubstr("widths: 0 entries"));
  EXPECT_THAT(error_of([] { Mlp(with_widths({64})); }), HasSubstr("widths: 1 entries"));
  EXPECT_THAT(error_of([] { Mlp(with_widths({64, 0, 10})); }), HasSubstr("widths[1]: 0"));
  EXPECT_THAT(error_of([] { Mlp(with_widths({64, std::size_t{1} << 40})); }), HasSubstr("widths[1]: 1099511627776"));
}

TEST(MlpOptionsRefused, PrecisionOfFloat64AndAWindowOfNothing) {
  MlpOptions options = with_widths({2, 2});
  options.precision = DType::kFloat64;
  EXPECT_THAT(error_of([&] { Mlp{options}; }), HasSubstr("precision: float64"));
  options = with_widths({2, 2});
  options.micro_batches_per_window = 0;
  EXPECT_THAT(error_of([&] { Mlp{options}; }), HasSubstr("micro_batches_per_window: 0"));
}

/// A model that has seen a micro-batch, so that every tensor holds something that a refused call could destroy.
class MlpRefusal : public testing::Test {
 protected:
  MlpRefusal() { mlp_.backward(rows_.features, rows_.labels); }

  std::vector<float> everything() const {
    std::vector<float> all;
    const auto append = [&](ConstTensorView view) {
      const std::vector<float> values = elements<float>(view);
      all.insert(all.end(), values.begin(), values.end());
    };
    for (const Parameter& parameter : mlp_.parameters()) {
      append(parameter.param);
      append(parameter.grad);
    }
    for (const NamedBuffer& named : mlp_.buffers()) append(named.buffer);
    return all;
  }

  /// The message of backward and of evaluate, which must agree, after a look that nothing changed.
  std::string refusal(float loss_scale = 1.0f) {
    const std::vector<float> before = everything();
    std::string message = error_of([&] { mlp_.backward(rows_.features, rows_.labels, loss_scale); });
    EXPECT_EQ(everything(), before);
    if (loss_scale == 1.0f) {
      EXPECT_EQ(error_of([&] { mlp_.evaluate(rows_.features, rows_.labels); }), message);
    }
    return message;
  }

  MlpOptions options_{.widths = {3, 4, 2},
                      .activation = Activation::kRelu,
                      .norm = Norm::kBatch,
                      .precision = DType::kFloat32,
                      .seed = 0,
                      .micro_batches_per_window = 1};
  Mlp mlp_{options_};
  RandomRows rows_ = random_rows(options_, 5, 1);
};

TEST_F(MlpRefusal, OfAMicroBatchWithoutRows) {
  rows_ = {};
  EXPECT_THAT(refusal(), HasSubstr("no rows"));
}

TEST_F(MlpRefusal, OfAWrongNumberOfFeatures) {
  rows_.features.pop_back();
  EXPECT_THAT(refusal(), AllOf(HasSubstr("14 elements beside 5 labels"), HasSubstr("expected 3 for each row")));
  rows_.features.resize(18);  // whole rows, but one too many
  EXPECT_THAT(refusal(), HasSubstr("18 elements beside 5 labels"));
}

TEST_F(MlpRefusal, OfAFeatureThatIsNotFiniteNamesItsRow) {
  rows_.features[3 * 3 + 1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(refusal(), AllOf(HasSubstr("row 3, column 1"), HasSubstr("nan")));
  rows_.features[3 * 3 + 1] = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(refusal(), AllOf(HasSubstr("row 3, column 1"), HasSubstr("-inf")));
}

TEST_F(MlpRefusal, OfALabelOutOfRangeNamesItsRow) {
  rows_.labels[4] = 2;
  EXPECT_THAT(refusal(), AllOf(HasSubstr("row 4 is 2"), HasSubstr("expected 0..1")));
  rows_.labels[4] = -1;
  EXPECT_THAT(refusal(), HasSubstr("row 4 is -1"));
}

TEST_F(MlpRefusal, OfALossScaleThatIsNotPositiveAndFinite) {
  for (const float scale :
       {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(refusal(scale), HasSubstr("loss_scale"));
  }
}

TEST_F(MlpRefusal, OfOneRowOnlyInTrainingWithBatchNorm) {
  const std::vector<float> before = everything();
  const RandomRows one = random_rows(options_, 1, 1);
  EXPECT_THAT(error_of([&] { mlp_.backward(one.features, one.labels); }), HasSubstr("2 or more in training"));
  EXPECT_EQ(everything(), before);
  EXPECT_NO_THROW(mlp_.evaluate(one.features, one.labels));
  Mlp without_hidden({.widths = {3, 2}, .norm = Norm::kBatch});
  EXPECT_NO_THROW(without_hidden.backward(one.features, one.labels));
}

}  // namespace
}  // namespace gradfuse::nn
