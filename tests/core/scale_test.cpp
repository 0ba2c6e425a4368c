// The passes that write one value an element: scale, cast, axpby, zero.
#include <gradfuse/passes.hpp>

#include <cmath>
#include <limits>

#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

using ScaleOn = OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, ScaleOn, testing::ValuesIn(all_machines()), machine_name);

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

/// Both sides of a vector, a row of lanes, a chunk, and many chunks: the sizes at which others' loops broke.
constexpr std::size_t kSizes[] = {1,   3,   4,    5,    15,   16,    17,    333,   511,
                                  512, 513, 4095, 4096, 4097, 33333, 65535, 65536, 65537};

/// Multiplied in FP32, then rounded to the type, by the arithmetic of tests/support.cpp.
HostTensor scaled(const HostTensor& in, DType dtype, float factor) {
  HostTensor out(dtype, in.numel());
  for (std::size_t i = 0; i < in.numel(); ++i) out.set(i, factor * static_cast<float>(in.get(i)));
  return out;
}

// What a pass may store; float64 it only reads.
constexpr DType kStored[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};

TEST_P(ScaleOn, EveryPairOfTypesAndEverySizeGivesTheProductRoundedOnce) {
  Random random(1);
  for (const DType from : kGradDTypes) {
    const HostTensor all = random_tensor(random, from, 65537);
    for (const DType to : kStored) {
      SCOPED_TRACE(testing::Message() << dtype_name(from) << " to " << dtype_name(to));
      const HostTensor expected = scaled(all, to, 0.37f);
      for (const std::size_t numel : kSizes) {
        HostTensor out(to, numel);
        scale(ConstTensorList({part_of(all.view(), 0, numel)}, backend), TensorList({out.view()}, backend), 0.37f);
        EXPECT_TRUE(same_bits(out, copy_of({expected.data(), numel, to}))) << numel << " elements";
        EXPECT_TRUE(out.guards_are_intact());
      }
    }
  }
}

TEST_P(ScaleOn, InPlaceGivesTheBitsOfOutOfPlace) {
  Random random(2);
  for (const DType dtype : kStored) {
    HostTensor tensor = random_tensor(random, dtype, 9001, 3);
    const HostTensor expected = scaled(tensor, dtype, 1.7f);
    const TensorList list({tensor.view()}, backend);
    scale(list, list, 1.7f);
    EXPECT_TRUE(same_bits(tensor, expected)) << dtype_name(dtype);
    EXPECT_TRUE(tensor.guards_are_intact());
  }
}

TEST_P(ScaleOn, APowerOfTwoIsExactAndDenormalsAreKept) {
  // 2^-24 and 3 * 2^-24 are denormal in FP16, 2^-133 and 5 * 2^-133 in BF16; a flush to zero would lose them.
  const HostTensor half = tensor_of(DType::kFloat16, {0x1p-24, -0x3p-24, 0x1p-15, -0.0, 1.5, 65504.0});
  const HostTensor brain = tensor_of(DType::kBFloat16, {0x1p-133, -0x5p-133, 0x1p-127, -0.0, 1.5, 0x1p100});
  for (const HostTensor* in : {&half, &brain}) {
    HostTensor wide(DType::kFloat32, in->numel()), back(in->dtype(), in->numel());
    scale(ConstTensorList({in->view()}, backend), TensorList({wide.view()}, backend), 4.0f);
    for (std::size_t i = 0; i < in->numel(); ++i) EXPECT_EQ(wide.get(i), 4.0 * in->get(i)) << i;
    scale(ConstTensorList({wide.view()}, backend), TensorList({back.view()}, backend), 0.25f);
    EXPECT_TRUE(same_bits(back, *in));
  }
}

TEST_P(ScaleOn, EachOperandMayLieOffEveryBoundaryOfAVector) {
  Random random(3);
  for (std::size_t off = 0; off < 18; ++off) {
    SCOPED_TRACE(testing::Message() << off << " elements off");
    for (const bool in_is_off : {true, false}) {
      const HostTensor in = random_tensor(random, DType::kFloat16, 4133, in_is_off ? off : 0);
      HostTensor out(DType::kBFloat16, in.numel(), in_is_off ? 0 : off);
      scale(ConstTensorList({in.view()}, backend), TensorList({out.view()}, backend), 3.0f);
      EXPECT_TRUE(same_bits(out, scaled(in, DType::kBFloat16, 3.0f)));
      EXPECT_TRUE(out.guards_are_intact());
    }
    for (const int which : {0, 1, 2}) {
      const HostTensor x = random_tensor(random, DType::kBFloat16, 529, which == 0 ? off : 0);
      const HostTensor y = random_tensor(random, DType::kFloat32, 529, which == 1 ? off : 0);
      HostTensor out(DType::kFloat32, 529, which == 2 ? off : 0);
      axpby(0.3f, ConstTensorList({x.view()}, backend), 0.7f, ConstTensorList({y.view()}, backend),
            TensorList({out.view()}, backend));
      for (std::size_t i = 0; i < out.numel(); ++i) {
        const float by = 0.7f * static_cast<float>(y.get(i));
        ASSERT_EQ(out.get(i), std::fmaf(0.3f, static_cast<float>(x.get(i)), by)) << i;
      }
      EXPECT_TRUE(out.guards_are_intact());
    }
  }
}

TEST_P(ScaleOn, AxpbyTakesAnyTypeAndWorksInPlace) {
  Random random(4);
  for (const DType dtype : kGradDTypes) {
    const HostTensor x = random_tensor(random, dtype, 5003);
    HostTensor y = random_tensor(random, DType::kFloat32, 5003);
    HostTensor expected(DType::kFloat32, 5003);
    for (std::size_t i = 0; i < x.numel(); ++i) {
      const auto x_i = static_cast<float>(x.get(i)), y_i = static_cast<float>(y.get(i));
      expected.set(i, std::fmaf(-1.3f, x_i, 0.9f * y_i));
    }
    const TensorList y_list({y.view()}, backend);
    axpby(-1.3f, ConstTensorList({x.view()}, backend), 0.9f, y_list, y_list);
    EXPECT_TRUE(same_bits(y, expected)) << dtype_name(dtype);
  }
}

TEST_P(ScaleOn, ZeroClearsEveryTypeNanIncludedAndNothingBeside) {
  for (const DType dtype : kGradDTypes) {
    for (const std::size_t off : {0, 1, 3}) {
      HostTensor tensor(dtype, 4099, off);
      tensor.fill(kNan);
      zero(TensorList({tensor.view()}, backend));
      EXPECT_TRUE(same_bits(tensor, HostTensor(dtype, 4099))) << dtype_name(dtype);
      EXPECT_TRUE(tensor.guards_are_intact());
    }
  }
}

struct NonFiniteCase {
  std::string name;
  std::size_t tensor, element;
  double value;
};

TEST_P(ScaleOn, TheFlagSeesNanFirstInfinityLastAndMinusInfinityInTheMiddle) {
  const NonFiniteCase cases[] = {{"NaN first", 0, 0, kNan},
                                 {"inf last of the last tensor", 2, 8999, kInf},
                                 {"-inf in the middle", 1, 4500, -kInf},
                                 {"NaN at the end of a chunk", 1, 4095, kNan},
                                 {"inf in a tail", 0, 8998, kInf}};
  Random random(5);
  for (const DType dtype : kGradDTypes) {
    std::vector<HostTensor> in, out;
    for (int t = 0; t < 3; ++t) {
      in.push_back(random_tensor(random, dtype, 9000));
      out.emplace_back(DType::kFloat32, 9000);
    }
    const ConstTensorList from(views_of(in), backend);
    const TensorList to({out[0].view(), out[1].view(), out[2].view()}, backend);
    bool found = false;
    scale(from, to, 0.5f, &found);
    EXPECT_FALSE(found) << "clean tensors of " << dtype_name(dtype);
    for (const NonFiniteCase& c : cases) {
      const double before = in[c.tensor].get(c.element);
      in[c.tensor].set(c.element, c.value);
      found = false;
      scale(from, to, 0.5f, &found);
      EXPECT_TRUE(found) << c.name << ", " << dtype_name(dtype);
      in[c.tensor].set(c.element, before);
    }
    EXPECT_TRUE(found);
    scale(from, to, 0.5f, &found);
    EXPECT_TRUE(found) << "a clean pass must not lower the flag of a dirty one";
  }
}

TEST_P(ScaleOn, AFiniteProductThatOverflowsTheStoredTypeRaisesTheFlag) {
  const HostTensor half = tensor_of(DType::kFloat16, {1.0, 60000.0});
  const HostTensor single = tensor_of(DType::kFloat32, {1.0, 3e38});
  const struct {
    const HostTensor& in;
    DType out;
    float factor;
    bool overflows;
  } cases[] = {{half, DType::kFloat16, 2.0f, true},     {half, DType::kFloat32, 2.0f, false},
               {half, DType::kBFloat16, 2.0f, false},   {single, DType::kFloat32, 2.0f, true},
               {single, DType::kFloat32, 1.0f, false},  {single, DType::kBFloat16, 1.133f, true},
               {single, DType::kFloat16, 1e-35f, false}};  // 3e38 * 1.133 is finite in FP32 and rounds up in BF16
  for (const auto& c : cases) {
    HostTensor out(c.out, 2);
    bool found = false;
    scale(ConstTensorList({c.in.view()}, backend), TensorList({out.view()}, backend), c.factor, &found);
    EXPECT_EQ(found, c.overflows) << dtype_name(c.in.dtype()) << " * " << c.factor << " to " << dtype_name(c.out);
    EXPECT_EQ(std::isinf(out.get(1)), c.overflows);
  }
}

}  // namespace
}  // namespace gradfuse::test
