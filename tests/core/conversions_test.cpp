// FP16 and BF16 from and to FP32 on every target, against the arithmetic of tests/support.cpp, which scales and rounds
// where the library works on bits. Judged by bits; a NaN must stay a NaN.
#include <gradfuse/passes.hpp>

#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>

#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

using ConversionsOn = OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, ConversionsOn, testing::ValuesIn(all_machines()), machine_name);

HostTensor tensor_of_bits(const std::vector<std::uint32_t>& patterns) {
  HostTensor tensor(DType::kFloat32, patterns.size());
  for (std::size_t i = 0; i < patterns.size(); ++i) tensor.set_bits(i, patterns[i]);
  return tensor;
}
HostTensor every_pattern(DType dtype) {
  HostTensor all(dtype, 65536);
  for (std::size_t i = 0; i < all.numel(); ++i) all.set_bits(i, i);
  return all;
}

/// What the library's own tests and those of others found: NaN that carries into the sign, the largest numbers, halves.
void add_edges(std::vector<std::uint32_t>& patterns) {
  for (const std::uint32_t nan : {0x7fffffffu, 0x7f800001u, 0x7fbfffffu, 0x7fc00000u, 0x7fff8000u, 0x7f80ffffu}) {
    patterns.insert(patterns.end(), {nan, nan | 0x80000000u});
  }
  const float values[] = {0.0f,         std::numeric_limits<float>::infinity(),
                          FLT_MAX,      FLT_MIN,
                          FLT_TRUE_MIN, std::nextafter(FLT_MIN, 0.0f),
                          FLT_MIN / 2,  65504.0f,
                          65519.0f,     std::nextafter(65520.0f, 0.0f),
                          65520.0f,     65536.0f,
                          0x1p-14f,     0x1p-24f,
                          0x1p-25f,     std::nextafter(0x1p-25f, 1.0f),
                          0x1.8p-24f,   0x1.ffcp-15f,
                          0x1.fffp-15f, 1.0f};
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    patterns.insert(patterns.end(), {bits, bits | 0x80000000u});
  }
}
/// Every number halfway between two neighbours of a 16-bit format, and the FP32 numbers on either side of it.
void add_ties(std::vector<std::uint32_t>& patterns, DType dtype) {
  const HostTensor all = every_pattern(dtype);
  for (std::size_t i = 0; i < 0x7fff; ++i) {
    const double low = all.get(i), high = all.get(i + 1);
    if (!std::isfinite(high)) continue;
    const auto half = std::bit_cast<std::uint32_t>(static_cast<float>((low + high) / 2));
    for (const std::uint32_t sign : {0u, 0x80000000u}) {
      patterns.insert(patterns.end(), {(half - 1) | sign, half | sign, (half + 1) | sign});
    }
  }
}
const HostTensor& ties_and_edges() {
  static const HostTensor tensor = [] {
    std::vector<std::uint32_t> patterns;
    add_edges(patterns);
    add_ties(patterns, DType::kFloat16);
    add_ties(patterns, DType::kBFloat16);
    return tensor_of_bits(patterns);
  }();
  return tensor;
}
/// An odd stride reaches every low bit pattern beside every high one.
const HostTensor& a_million_patterns() {
  static const HostTensor tensor = [] {
    std::vector<std::uint32_t> patterns;
    for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 4099) {
      patterns.push_back(static_cast<std::uint32_t>(bits));
    }
    return tensor_of_bits(patterns);
  }();
  return tensor;
}
HostTensor rounded(const HostTensor& from, DType dtype) {
  HostTensor to(dtype, from.numel());
  for (std::size_t i = 0; i < from.numel(); ++i) to.set(i, from.get(i));
  return to;
}

TEST_P(ConversionsOn, EverySixteenBitPatternWidensExactly) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    SCOPED_TRACE(dtype_name(dtype));
    const HostTensor from = every_pattern(dtype);
    HostTensor to(DType::kFloat32, from.numel()), back(dtype, from.numel());
    cast(ConstTensorList({from.view()}, backend), TensorList({to.view()}, backend));
    EXPECT_TRUE(same_bits(to, rounded(from, DType::kFloat32)));
    cast(ConstTensorList({to.view()}, backend), TensorList({back.view()}, backend));
    EXPECT_TRUE(same_bits(back, from));
  }
}

TEST_P(ConversionsOn, TiesAndEdgesRoundToNearestEven) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    SCOPED_TRACE(dtype_name(dtype));
    HostTensor to(dtype, ties_and_edges().numel());
    cast(ConstTensorList({ties_and_edges().view()}, backend), TensorList({to.view()}, backend));
    EXPECT_TRUE(same_bits(to, rounded(ties_and_edges(), dtype)));
  }
}

TEST_P(ConversionsOn, AMillionPatternsAcrossAllOfFloat32RoundToNearestEven) {
  static const HostTensor half = rounded(a_million_patterns(), DType::kFloat16);
  static const HostTensor brain = rounded(a_million_patterns(), DType::kBFloat16);
  for (const HostTensor* expected : {&half, &brain}) {
    SCOPED_TRACE(dtype_name(expected->dtype()));
    HostTensor to(expected->dtype(), expected->numel());
    cast(ConstTensorList({a_million_patterns().view()}, backend), TensorList({to.view()}, backend));
    EXPECT_TRUE(same_bits(to, *expected));
  }
}

TEST_P(ConversionsOn, TheModelCopyIsTheRoundedMasterInfinityAndNanIncluded) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    SCOPED_TRACE(dtype_name(dtype));
    OwnedSet set(backend);
    set.add(ties_and_edges(), dtype);
    Window window(set.params);
    Sgd optimizer(set.params, {.lr = 0.0});  // p = fma(-0, 0, p): the bits of every number, and a NaN, stay
    step_on(window, optimizer, set.zero_grads());
    EXPECT_TRUE(same_bits(set.param[0], ties_and_edges()));
    EXPECT_TRUE(same_bits(set.model[0], rounded(ties_and_edges(), dtype)));
  }
}

TEST(Conversions, NanOfAllOnesIsNotHiddenAsZero) {
  // Rounding up 0x7fffffff by integers carries into the sign: Apex and TransformerEngine make it -0.0.
  const HostTensor from = tensor_of_bits({0x7fffffffu, 0xffffffffu});
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    HostTensor to(dtype, 2);
    const auto backend = cpu_backend();
    cast(ConstTensorList({from.view()}, backend), TensorList({to.view()}, backend));
    EXPECT_TRUE(std::isnan(to.get(0)) && std::isnan(to.get(1)));
  }
}

TEST_P(ConversionsOn, CastFromFloat64GoesThroughFloat32) {
  // 1 + 2^-11 + 2^-40 is above the tie of FP16, 1 + 2^-8 + 2^-40 above that of BF16; in FP32 they are the ties.
  const HostTensor from = tensor_of(DType::kFloat64, {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-8 + 0x1p-40, 0.1, 1e300, 1e-300});
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    HostTensor to(dtype, from.numel());
    cast(ConstTensorList({from.view()}, backend), TensorList({to.view()}, backend));
    EXPECT_TRUE(same_bits(to, rounded(rounded(from, DType::kFloat32), dtype))) << dtype_name(dtype);
  }
}

TEST_P(ConversionsOn, CastToFloat64IsRefused) {
  const HostTensor from = tensor_of(DType::kFloat32, {1.0});
  HostTensor to = tensor_of(DType::kFloat64, {7.0});
  EXPECT_THROW(cast(ConstTensorList({from.view()}, backend), TensorList({to.view()}, backend)), Error);
  EXPECT_EQ(to.get(0), 7.0);
}

}  // namespace
}  // namespace gradfuse::test
