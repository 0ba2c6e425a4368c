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
ctest --preset release --label-regex '^(gpu|core|simt)$' --parallel "$(nproc)" || status=1
for tool in memcheck racecheck initcheck synccheck; do
  echo "== compute-sanitizer $tool"
  compute-sanitizer --tool "$tool" --error-exitcode 1 --print-limit 5 \
    build/release/tests/core/gradfuse_gpu_test --gtest_filter='*WindowAddOn*:*SkippedStepOn*:*ScaleOn*:Cuda*' \
    --gtest_brief=1 || status=1
done
exit $status
