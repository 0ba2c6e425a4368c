// The layers' passes on every SIMD target and on the device give the bits of the scalar target.
#include "src/nn/layer_passes.hpp"

#include <functional>
#include <limits>

#include "tests/core/training.hpp"

namespace gradfuse::nn {
namespace {

using test::HostTensor;

constexpr Extent kExtents[] = {{1, 1}, {2, 10}, {5, 3}, {33, 64}, {70, 129}, {4, 1000}};

class LayerPassesOn : public test::OnEveryMachine {
 protected:
  void SetUp() override {
    OnEveryMachine::SetUp();
    if (IsSkipped()) return;
    passes_ = make_layer_passes<float>(*backend);
    reference_ = make_layer_passes<float>(*scalar_);
  }

  /// Adds a tensor that the pass works on, and returns its index.
  std::size_t add(DType dtype, std::size_t numel) {
    tensors_.push_back(test::moderate_tensor(random_, dtype, numel));
    return tensors_.size() - 1;
  }
  std::size_t add(std::size_t numel) { return add(DType::kFloat32, numel); }

  struct Data {
    std::vector<HostTensor>& tensors;
    float* operator[](std::size_t tensor) const { return static_cast<float*>(tensors[tensor].view().data); }
    double* wide(std::size_t tensor) const { return static_cast<double*>(tensors[tensor].view().data); }
  };
  /// Makes the pass on the tensors here and by the reference, and compares all of them.
  void expect_same_bits(const std::function<void(LayerPasses<float>&, const Data&)>& pass) {
    std::vector<HostTensor> got = tensors_, expected = tensors_;
    pass(*passes_, {got});
    pass(*reference_, {expected});
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(test::same_bits(got[i], expected[i])) << "tensor " << i;
      EXPECT_TRUE(got[i].guards_are_intact()) << "tensor " << i;
    }
    tensors_ = got;
  }
  void start(const Extent& extent) {
    tensors_.clear();
    trace_.emplace(__FILE__, __LINE__, testing::Message() << extent.rows << " x " << extent.cols);
  }

  std::vector<HostTensor> tensors_;
  test::Random random_{3};

 private:
  std::shared_ptr<const Backend> scalar_ = cpu_backend({.threads = 1, .target = "scalar"});
  std::unique_ptr<LayerPasses<float>> passes_, reference_;
  std::optional<testing::ScopedTrace> trace_;
};
INSTANTIATE_TEST_SUITE_P(EveryMachine, LayerPassesOn, testing::ValuesIn(test::all_machines()), test::machine_name);

TEST_P(LayerPassesOn, RowsAndColumnsOfABias) {
  for (const Extent& extent : kExtents) {
    start(extent);
    const std::size_t bias = add(extent.cols), y = add(extent.numel()), sums = add(extent.cols);
    const std::size_t alone = add(extent.numel());
    expect_same_bits([&](auto& passes, const Data& data) {
      passes.column_sums(extent, data[y], data[sums], Destination::kOverwrite);
      passes.column_sums(extent, data[y], data[sums], Destination::kAddTo);
      passes.add_row(extent, data[y], data[bias], data[y]);
      passes.add_row(extent, nullptr, data[bias], data[alone]);
    });
    for (std::size_t i = 0; i < extent.numel(); ++i) {
      ASSERT_EQ(tensors_[alone].get(i), tensors_[bias].get(i % extent.cols));
    }
  }
}

TEST_P(LayerPassesOn, Activations) {
  for (const Activation activation : {Activation::kRelu, Activation::kGelu}) {
    for (const std::size_t numel : {1u, 3u, 4u, 31u, 1000u, 4099u}) {
      start({1, numel});
      const std::size_t x = add(numel), y = add(numel), grad = add(numel);
      const double specials[] = {0.0,
                                 -0.0,
                                 1e-42,
                                 30.0,
                                 -30.0,
                                 1e30,
                                 -1e30,
                                 std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN()};
      for (std::size_t i = 0; i < std::size(specials) && numel > 100; ++i) tensors_[x].set(7 * i, specials[i]);
      for (std::size_t i = 100; i < numel; ++i) tensors_[x].set(i, 6.0 * tensors_[x].get(i));
      expect_same_bits([&](auto& passes, const Data& data) {
        passes.activate(activation, numel, data[x], data[y]);
        passes.activation_gradient(activation, numel, data[x], data[grad]);
      });
    }
  }
}

TEST_P(LayerPassesOn, LayerNorm) {
  for (const Extent& extent : kExtents) {
    start(extent);
    const std::size_t weight = add(extent.cols), bias = add(extent.cols), x = add(extent.numel()),
                      y = add(extent.numel()), mean = add(DType::kFloat64, extent.rows),
                      reciprocal = add(DType::kFloat64, extent.rows), y_grad = add(extent.numel()),
                      x_grad = add(extent.numel()), weight_grad = add(extent.cols), bias_grad = add(extent.cols);
    expect_same_bits([&](auto& passes, const Data& data) {
      const RowStatistics kept{data.wide(mean), data.wide(reciprocal)};
      passes.layer_norm(extent, {data[weight], data[bias]}, data[x], data[y], kept);
      passes.layer_norm_gradient(extent, data[weight], data[x], kept, data[y_grad], data[x_grad], Destination::kAddTo,
                                 {data[weight_grad], data[bias_grad], Destination::kAddTo});
      passes.layer_norm_gradient(extent, data[weight], data[x], kept, data[y_grad], data[y_grad],
                                 Destination::kOverwrite, {data[weight_grad], data[bias_grad]});
    });
  }
}

TEST_P(LayerPassesOn, BatchNorm) {
  for (const Extent& extent : kExtents) {
    if (extent.rows == 1) continue;  // whose variance nobody knows
    start(extent);
    const std::size_t weight = add(extent.cols), bias = add(extent.cols), x = add(extent.numel()),
                      x_hat = add(extent.numel()), mean = add(DType::kFloat64, extent.cols),
                      reciprocal = add(DType::kFloat64, extent.cols), running_mean = add(extent.cols),
                      running_var = add(extent.cols), grad = add(extent.numel()), weight_grad = add(extent.cols),
                      bias_grad = add(extent.cols), other = add(extent.numel()), other_x_hat = add(extent.numel());
    for (std::size_t c = 0; c < extent.cols; ++c) tensors_[running_var].set(c, 1.5);
    const auto kept_in = [&](const Data& data, std::size_t to) {
      return BatchNormed<float>{data[to], data.wide(mean), data.wide(reciprocal), data[running_mean],
                                data[running_var]};
    };
    expect_same_bits([&](auto& passes, const Data& data) {
      const BatchNormed<float> kept = kept_in(data, x_hat);
      passes.batch_norm(extent, {data[weight], data[bias]}, 0.1, data[x], kept);
      passes.batch_norm_gradient(extent, data[weight], kept, data[grad], {data[weight_grad], data[bias_grad]});
    });
    expect_same_bits([&](auto& passes, const Data& data) {
      passes.batch_norm_inference(extent, {data[weight], data[bias]}, data[other], kept_in(data, other_x_hat));
    });
  }
}

TEST_P(LayerPassesOn, CrossEntropy) {
  for (const Extent& extent : kExtents) {
    start(extent);
    const std::size_t logits = add(extent.numel()), losses = add(DType::kFloat64, extent.rows),
                      loss_sum = add(DType::kFloat64, 1), labels = add(extent.rows);
    for (std::size_t r = 0; r < extent.rows; ++r) {
      const bool is_ignored = r % 5 == 2;  // -100
      tensors_[labels].set_bits(r, is_ignored ? 0xffffff9cu : (7 * r + 3) % extent.cols);
    }
    expect_same_bits([&](auto& passes, const Data& data) {
      const auto* label_data = reinterpret_cast<const std::int32_t*>(data[labels]);
      passes.cross_entropy(extent, label_data, 1024.0f, data[logits], data.wide(losses));
      passes.add_losses(extent.rows, data.wide(losses), data.wide(loss_sum));
    });
  }
}

// The order of the sums is the library's own business: the bound is that of any order, as in gemm_test.cpp.
TEST_P(LayerPassesOn, MatrixProductsWithinTheBoundOfTheirSums) {
  for (const Stored a_stored : {Stored::kPlain, Stored::kTransposed}) {
    for (const Stored b_stored : {Stored::kPlain, Stored::kTransposed}) {
      for (const Destination destination : {Destination::kOverwrite, Destination::kAddTo}) {
        const std::size_t m = 17, n = 9, k = 33;
        start({m, n});
        const std::size_t a = add(m * k), b = add(k * n), c = add(m * n);
        if (destination == Destination::kOverwrite) tensors_[c].fill(std::numeric_limits<double>::quiet_NaN());
        std::vector<HostTensor> got = tensors_;
        const Data data{got};
        make_layer_passes<float>(*backend)->gemm({m, n, k, a_stored, b_stored, destination}, data[a], data[b], data[c]);
        const double terms = static_cast<double>(k + 3) * 0x1p-24;
        for (std::size_t i = 0; i < m; ++i) {
          for (std::size_t j = 0; j < n; ++j) {
            double sum = destination == Destination::kAddTo ? tensors_[c].get(i * n + j) : 0.0;
            double magnitude = std::abs(sum);
            for (std::size_t l = 0; l < k; ++l) {
              const double term = tensors_[a].get(a_stored == Stored::kPlain ? i * k + l : l * m + i) *
                                  tensors_[b].get(b_stored == Stored::kPlain ? l * n + j : j * k + l);
              sum += term;
              magnitude += std::abs(term);
            }
            ASSERT_LE(std::abs(got[c].get(i * n + j) - sum), terms / (1 - terms) * magnitude) << i << ", " << j;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace gradfuse::nn
