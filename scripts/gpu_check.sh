#!/usr/bin/env bash
# On a machine with an NVIDIA GPU: the whole suite on the device, and under compute-sanitizer.
# Needs a checkout, nvcc (with compute-sanitizer), cmake and a compiler; installs the rest where it may.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v nvidia-smi >/dev/null && nvidia-smi -L || { echo "skipped: no NVIDIA GPU on this machine"; exit 0; }
export PATH="$PATH:/usr/local/cuda/bin"
command -v nvcc >/dev/null || { echo "nvcc not found: install the CUDA Toolkit and put it on the PATH" >&2; exit 1; }
scripts/install_dependencies.sh --test || echo "going on with the packages that are there"

cmake --preset release -DGRADFUSE_CUDA_ARCHITECTURES=native >/dev/null
cmake --build --preset release
build/release/src/cli/gradfuse info

status=0
# The device against the reference, against the CPU's SIMD targets, and against the emulated device: the same bits.
ctest --preset release --label-regex '^(gpu|simt|core|nn|train|workload)' --parallel "$(nproc)" || status=1
for tool in memcheck racecheck initcheck synccheck; do
  echo "== compute-sanitizer $tool"
  compute-sanitizer --tool "$tool" --error-exitcode 1 --print-limit 5 \
    build/release/tests/core/gradfuse_gpu_test --gtest_filter='*WindowAddOn*:*SkippedStepOn*:*ScaleOn*:Cuda*' \
    --gtest_brief=1 || status=1
done
compute-sanitizer --tool memcheck --error-exitcode 1 --print-limit 5 build/release/tests/nn/gradfuse_gpu_nn_test \
  --gtest_brief=1 || status=1

echo "== benchmarks: each pass and the whole window against the device's copy bandwidth"
build/release/bench/passes_bench --device=cuda --benchmark_filter='/100000000/' || status=1
build/release/bench/window_bench --device=cuda --benchmark_filter='/(31000000|100000000|640000)/float16/' || status=1
build/release/src/cli/gradfuse bench --device cuda || status=1
build/release/src/cli/gradfuse train mlp --device cuda || status=1
exit $status
