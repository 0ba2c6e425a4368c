#!/usr/bin/env bash
# Installs, builds and runs every test: optimised by g++ and by clang++, and under AddressSanitizer and
# UndefinedBehaviorSanitizer. Stops at the first build that fails; runs all tests of one that builds.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_dependencies.sh --test
jobs=$(nproc)

build_and_test() {  # PRESET [CTEST ARGUMENTS...]
  local preset=$1
  shift
  echo "== $preset"
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset"
  ctest --preset "$preset" --parallel "$jobs" "$@"
}

# libstdc++ is not instrumented to leak-check oneDNN's and OpenMP's process-wide state; leaks of ours are still found.
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
status=0
build_and_test release || status=1
cmake --build --preset release --target all_verify_interface_header_sets
build_and_test clang --label-exclude 'install|house|element' || status=1
build_and_test asan --label-exclude 'house|element' || status=1
exit $status
