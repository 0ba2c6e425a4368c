// The reference model and its training loop, from the installed package.
#include <gradfuse/train/train_mlp.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto digits = gradfuse::nn::split_digits(gradfuse::nn::load_digits(argv[1]), 0);
  const auto summary = gradfuse::train::train_mlp({.epochs = 3}, digits);
  std::printf("test accuracy %.3f\n", summary.test.accuracy);
  return summary.test.accuracy > 0.9 ? 0 : 1;
}
