// The README's first program, as an outside project would build it.
#include <gradfuse/loss_scaler.hpp>
#include <gradfuse/optimizer.hpp>
#include <gradfuse/parameter_set.hpp>
#include <gradfuse/window.hpp>

#include <cstdio>
#include <vector>

int main() {
  std::vector<float> weight(1000, 1.0f), grad(weight.size());

  gradfuse::ParameterSet params;
  params.add({.name = "weight", .param = gradfuse::view_of(weight)});
  gradfuse::Window window(params, {.steps = 4});
  gradfuse::AdamW optimizer(params, {.lr = 1e-2});
  gradfuse::LossScaler scaler;

  for (int micro_batch = 0; micro_batch < 4; ++micro_batch) {
    const float tokens = 10.0f + static_cast<float>(micro_batch);  // the gradient is that of a mean over so many tokens
    for (float& g : grad) g = 0.5f * scaler.scale();
    const gradfuse::ConstTensorView grads[] = {gradfuse::view_of(grad)};
    window.add(grads, {.weight = tokens});
  }
  optimizer.step(window, {.max_grad_norm = 1.0, .scaler = &scaler});

  const gradfuse::StepReport& report = optimizer.last_report();
  std::printf("norm %.3f, clipped by %.3f, weight[0] = %.4f\n", report.norm, report.clip_coef, double{weight[0]});
  return report.is_skipped() || !(weight[0] < 1.0f);
}
