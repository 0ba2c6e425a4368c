#!/usr/bin/env bash
# What nvcc makes of the kernels, checked by check_sass.py; arguments go to it. Where the toolkit has no cuobjdump and
# nvdisasm, PyPI's are installed into build/sass-tools. Without nvcc there is nothing to check.
set -euo pipefail
cd "$(dirname "$0")/.."

nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ ! -x "$nvcc" ]; then
  echo "skipped: no nvcc, so there are no kernels to check"
  exit 0
fi
python=python3
if ! command -v cuobjdump >/dev/null && [ ! -x "$(dirname "$nvcc")/cuobjdump" ]; then
  python=build/sass-tools/bin/python
  if [ ! -x "$python" ] || ! ls build/sass-tools/lib/python*/site-packages/nvidia/*/bin/nvdisasm >/dev/null 2>&1; then
    python3 -m venv build/sass-tools
    build/sass-tools/bin/pip install --quiet nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm
  fi
fi
exec "$python" scripts/check_sass.py --nvcc "$nvcc" "$@"
