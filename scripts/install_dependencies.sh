#!/usr/bin/env bash
# Installs what gradfuse needs from Debian's or Ubuntu's packages; only what is missing. As root, or with sudo.
#   install_dependencies.sh          to build and run
#   install_dependencies.sh --test   and to test: the other compiler, the test libraries, the linters
set -euo pipefail

packages=(g++ cmake ninja-build libhwy-dev libdnnl-dev libcli11-dev nlohmann-json3-dev libfmt-dev libxxhash-dev)
if [ "${1:-}" = --test ]; then
  # make: the outside project of tests/install is configured as a user would, with CMake's usual generator.
  packages+=(clang clang-tidy clang-format libomp-dev libgtest-dev libgmock-dev libbenchmark-dev git ccache make python3
    python3-venv)
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

run=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "need root or sudo to install: ${missing[*]}" >&2; exit 1; }
  run=(sudo)
fi
echo "installing: ${missing[*]}"
"${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q
"${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"
