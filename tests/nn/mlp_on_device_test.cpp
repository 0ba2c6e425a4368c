// The MLP on every machine: in float it is the one in double, and a device trains like the CPU.
#include <random>
#include <tuple>

#include "tests/core/training.hpp"
#include "tests/nn/double_net.hpp"

namespace gradfuse::nn {
namespace {

using MlpOn = test::OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, MlpOn, testing::ValuesIn(test::all_machines()), test::machine_name);

std::vector<float> on_host(const Backend& backend, const ConstTensorView& view) {
  std::vector<float> values(view.numel);
  copy_to_host(backend, view, values.data());
  return values;
}

// A float computation is the exact one on slightly other operands: each operand is off by as many u = 2^-24 as
// roundings reach it. The longest path has, per layer and direction, one sum of at most 9 terms and about 15 further
// roundings: 2 * 3 * 24 = 144. How strongly the gradient answers is measured: every parameter and feature moved by a
// random +-144 u, eight times. To that comes 144 u of the model's largest gradient, for sums that cancel: the gradient
// of a bias that batch normalisation removes again is 0, but what is added up is not.
TEST_P(MlpOn, StaysWithinWhatItsRoundingsExplain) {
  constexpr double kRoundings = 144 * 0x1p-24;
  for (const Activation activation : {Activation::kRelu, Activation::kGelu}) {
    for (const Norm norm : {Norm::kNone, Norm::kLayer, Norm::kBatch}) {
      SCOPED_TRACE(combination_name(activation, norm));
      MlpOptions options{.widths = {5, 7, 6, 4}, .activation = activation, .norm = norm, .seed = 1};
      DoubleNet exact(options);
      const double exact_loss = exact.backward();
      std::vector<double> answer(exact.layout.numel, 0.0);
      std::mt19937_64 random(7);
      const auto moved = [&](double value) { return value * (1 + (random() % 2 == 0 ? kRoundings : -kRoundings)); };
      for (int draw = 0; draw < 8; ++draw) {
        DoubleNet other(options);
        std::ranges::transform(other.params, other.params.begin(), moved);
        std::ranges::transform(other.features, other.features.begin(), moved);
        other.backward();
        for (std::size_t i = 0; i < answer.size(); ++i) {
          answer[i] = std::max(answer[i], std::abs(other.grads[i] - exact.grads[i]));
        }
      }
      options.backend = backend;
      Mlp mlp(options);
      const std::vector<float> params(exact.params.begin(), exact.params.end());
      const std::vector<float> features(exact.features.begin(), exact.features.end());
      for (std::size_t t = 0; t < mlp.parameters().size(); ++t) {
        const Segment& at = exact.layout.parameters[t].segment;
        copy_from_host(*backend, params.data() + at.offset, mlp.parameters()[t].param);
      }
      mlp.backward(features, exact.labels);
      const double largest_grad = largest(exact.grads);
      for (std::size_t t = 0; t < mlp.parameters().size(); ++t) {
        const NamedSegment& named = exact.layout.parameters[t];
        const double tolerance = largest(named.segment.of(std::span<const double>(answer))) + kRoundings * largest_grad;
        const std::vector<float> grad = on_host(*backend, mlp.parameters()[t].grad);
        for (std::size_t i = 0; i < grad.size(); ++i) {
          EXPECT_LE(std::abs(grad[i] - exact.grads[named.segment.offset + i]), tolerance) << named.name;
        }
      }
      EXPECT_NEAR(mlp.take_loss_sum() / kRows, exact_loss, kRoundings * 10) << "logits are below 10";
    }
  }
}

TEST_P(MlpOn, HalfPrecisionGradientsAreTheFloatOnesRounded) {
  for (const DType precision : {DType::kFloat16, DType::kBFloat16}) {
    MlpOptions options{.widths = {6, 9, 3}, .precision = precision, .seed = 4, .backend = backend};
    Mlp half(options);
    options.precision = DType::kFloat32;
    Mlp single(options);
    for (std::size_t t = 0; t < half.parameters().size(); ++t) {
      cast(ConstTensorList({half.parameters()[t].model}, backend), TensorList({single.parameters()[t].param}, backend));
    }
    const RandomRows rows = random_rows(options, 11, 2);
    half.backward(rows.features, rows.labels, 512.0f);
    single.backward(rows.features, rows.labels, 512.0f);
    EXPECT_EQ(half.take_loss_sum(), single.take_loss_sum());
    for (std::size_t t = 0; t < half.parameters().size(); ++t) {
      std::vector<std::uint16_t> got(half.parameters()[t].grad.numel);
      copy_to_host(*backend, half.parameters()[t].grad, got.data());
      EXPECT_EQ(got, rounded(on_host(*backend, single.parameters()[t].grad), precision));
    }
  }
}

TEST_P(MlpOn, EvaluatesAndGrowsWithTheBatch) {
  Mlp mlp({.widths = {6, 5, 3}, .norm = Norm::kBatch, .backend = backend});
  const MlpOptions shape{.widths = {6, 5, 3}};
  for (const std::size_t num_rows : {2u, 40u, 3u}) {
    const RandomRows rows = random_rows(shape, num_rows, num_rows);
    mlp.backward(rows.features, rows.labels);
    const Evaluation evaluation = mlp.evaluate(rows.features, rows.labels);
    EXPECT_TRUE(std::isfinite(evaluation.loss));
    EXPECT_EQ(mlp.evaluate(rows.features, rows.labels).loss, evaluation.loss);
  }
}

}  // namespace
}  // namespace gradfuse::nn
