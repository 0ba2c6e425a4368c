#!/usr/bin/env bash
# Installs, builds, trains an MLP on handwritten digits through micro-batches with FP16 gradients and dynamic loss
# scaling, then compares the fused window with the unfused chain. The second run starts at once.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_dependencies.sh
build=build/demo
if [ ! -f "$build/build.ninja" ]; then
  # A compiler newer than those that test.sh knows may warn of more: no reason to refuse.
  cmake --preset release -B "$build" -DBUILD_TESTING=OFF -DGRADFUSE_BENCH=OFF -DGRADFUSE_CUDA=OFF \
    -DGRADFUSE_WERROR=OFF >/dev/null
fi
echo "building (the first time takes a few minutes)"
cmake --build "$build" --target gradfuse_program -- --quiet

echo
echo "== training an MLP on 1,437 handwritten digits: FP16 gradients, micro-batches of 16, 4 to a window"
"$build/src/cli/gradfuse" train mlp --precision fp16 --loss-scale dynamic --micro-batch 16 --accum-steps 4

echo
echo "== fused against unfused accumulation on this machine"
"$build/src/cli/gradfuse" bench
