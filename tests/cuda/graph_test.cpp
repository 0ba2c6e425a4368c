// A window and its step can be captured into a CUDA graph: nothing waits, nothing is allocated, and what may change
// between replays is read from device memory.
#include <functional>

#include "tests/cuda/on_cuda.hpp"

namespace gradfuse::test {
namespace {

/// A set, its gradients, and everything that trains it.
struct Training {
  Training(std::shared_ptr<const Backend> backend, std::uint64_t seed) : set(std::move(backend)) {
    Random random(seed);
    for (const std::size_t numel : {5000, 3, 70}) {
      set.add(random_tensor(random, DType::kFloat32, numel), DType::kFloat16, numel == 3 ? 1 : 0);
      for (auto& of_batch : grads) of_batch.push_back(moderate_tensor(random, DType::kFloat16, numel));
    }
    for (int b = 0; b < 3; ++b) views.push_back(views_of(grads[b]));
  }
  void window_and_step() {
    for (const auto& of_batch : views) window.add(of_batch, {.weight = 2.0});
    optimizer.step(window, {.max_grad_norm = 1.0, .scaler = &scaler});
  }

  OwnedSet set;
  std::vector<HostTensor> grads[3];
  std::vector<std::vector<ConstTensorView>> views;
  Window window{set.params, {.steps = 3}};
  AdamW optimizer{set.params, {.lr = 0.01}};
  LossScaler scaler{{.init_scale = 8.0, .growth_interval = 2}};
};

class Graph {
 public:
  Graph(cudaStream_t stream, const std::function<void()>& work) : stream_(stream) {
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    work();
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph_), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&exec_, graph_, 0), cudaSuccess);
  }
  ~Graph() {
    (void)cudaGraphExecDestroy(exec_);
    (void)cudaGraphDestroy(graph_);
  }
  void replay() const { EXPECT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess); }

 private:
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

class CudaGraph : public OnCuda {
 protected:
  template <class... Parts>
  void expect_capture_refused(Training& training, const Parts&... parts) {
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_THAT([&] { training.window_and_step(); }, throws_saying(parts...));
    cudaGraph_t graph = nullptr;
    (void)cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
  }
};

TEST_F(CudaGraph, ReplaysTrainAsCallsDo) {
  Training direct(backend, 1), captured(backend, 1);
  direct.window_and_step();
  captured.window_and_step();  // tables, states and scratch memory come to be
  const Graph graph(stream, [&] { captured.window_and_step(); });
  EXPECT_TRUE(same(snapshot(captured.set, captured.optimizer), snapshot(direct.set, direct.optimizer)))
      << "a capture changes nothing";

  for (int i = 0; i < 6; ++i) {
    SCOPED_TRACE(testing::Message() << "replay " << i);
    for (Training* training : {&direct, &captured}) {
      training->optimizer.group(0).lr = 0.01 / (1 + i);
      training->optimizer.group(1).weight_decay = 0.1 * i;
      // New gradients in the same memory; those of the fourth replay are not finite.
      Random random(static_cast<std::uint64_t>(i));
      for (auto& of_batch : training->grads) {
        for (HostTensor& grad : of_batch) grad.set(1, i == 3 ? INFINITY : 0.5 + 0.1 * i);
      }
    }
    direct.window_and_step();
    captured.optimizer.publish_options();
    graph.replay();
    const StepReport expected = direct.optimizer.last_report(), got = captured.optimizer.last_report();
    EXPECT_EQ(got.outcome, expected.outcome);
    EXPECT_EQ(got.outcome, i == 3 ? StepOutcome::kNonFinite : StepOutcome::kApplied);
    EXPECT_EQ(got.norm, expected.norm);
    EXPECT_EQ(got.loss_scale, expected.loss_scale);
    EXPECT_EQ(captured.scaler.state().scale, direct.scaler.state().scale);
    EXPECT_EQ(captured.scaler.state().growth_tracker, direct.scaler.state().growth_tracker);
    EXPECT_TRUE(same(snapshot(captured.set, captured.optimizer), snapshot(direct.set, direct.optimizer)));
  }
}

TEST_F(CudaGraph, ACaptureWithoutAWindowBeforeIsRefused) {
  Training training(backend, 2);
  expect_capture_refused(training, "captured into a graph", "one whole window");
}

TEST_F(CudaGraph, ACaptureWithOtherPointersIsRefused) {
  Training training(backend, 3);
  training.window_and_step();
  const HostTensor other = copy_of(training.grads[0][0].view());
  training.views[0][0] = other.view();
  expect_capture_refused(training, "other pointers than before");
}

TEST_F(CudaGraph, ACaptureWithOptionsThatWereNotPublishedIsRefused) {
  Training training(backend, 4);
  training.window_and_step();
  training.optimizer.group(0).lr = 0.5;
  expect_capture_refused(training, "changed on the host");
}

}  // namespace
}  // namespace gradfuse::test
