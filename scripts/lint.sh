#!/usr/bin/env bash
# clang-format on every source file, clang-tidy on those that changed since BASE (default: the last 5 commits).
#   lint.sh [BASE]      lint.sh --all
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_dependencies.sh --test
sources=(include kernels src bench tests)
git ls-files -- "${sources[@]}" | grep -E '\.(hpp|cpp|cu)$' | xargs clang-format --dry-run --Werror

if [ "${1:-}" = --all ]; then
  changed=$(git ls-files -- "${sources[@]}")
else
  base=${1:-$(git rev-list --max-count=6 HEAD | tail -n 1)}
  changed=$(git diff --name-only --diff-filter=d "$base" -- "${sources[@]}")
fi
cmake --preset clang -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
{ grep -E '\.cpp$' <<<"$changed" || true; } | { grep -v '^tests/install/consumer/' || true; } |
  xargs --no-run-if-empty --max-args=1 --max-procs="$(nproc)" clang-tidy --quiet -p build/clang
