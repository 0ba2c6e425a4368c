#!/usr/bin/env python3
"""Checks what nvcc made of the kernels: no spills, registers within their budget, vector accesses, arithmetic as promised.

    check_sass.py [--nvcc PATH] [--arch sm_90] [--markdown FILE]

Needs nvcc, and cuobjdump and nvdisasm: a CUDA Toolkit has them, and so have PyPI's nvidia-cuda-cuobjdump and
nvidia-cuda-nvdisasm, in whose environment this may run. Prints a table; --markdown writes it between the markers of a
page. Exit code 1 if a promise is broken, with what and where.
"""
import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MARKERS = ("<!-- sass: begin -->", "<!-- sass: end -->")


@dataclasses.dataclass(frozen=True)
class Promise:
    """Of one kernel. `registers`: its budget up to sm_90; `on_blackwell`: from sm_100 on, where nvcc takes more."""

    registers: int
    on_blackwell: int | None = None
    vector_loads: bool = True
    vector_stores: bool = True
    fp64: bool = False  # FP64 arithmetic is for sums of squares, scalars, and reference work in FP64

    def budget(self, arch):
        is_blackwell = int(re.search(r"\d+", arch)[0]) >= 100
        return self.on_blackwell if is_blackwell and self.on_blackwell else self.registers


# By name, the template argument with it. 128 threads a block: 80 registers are six blocks on an SM, 128 four, 168 three.
PROMISES = {
    "add_kernel<float>": Promise(80),
    "add_kernel<double>": Promise(80, fp64=True),
    "stats_kernel<float>": Promise(80, 128, vector_stores=False, fp64=True),
    "stats_kernel<double>": Promise(255, vector_stores=False, fp64=True),
    "adam_kernel<float>": Promise(128, 168),
    "adam_kernel<double>": Promise(255, fp64=True),
    "sgd_kernel<float>": Promise(128, 168),
    "sgd_kernel<double>": Promise(255, fp64=True),
    "zero_kernel": Promise(64, vector_loads=False),
    "scale_kernel": Promise(64, 80),
    "axpby_kernel": Promise(64, 80),
    "max_magnitude_kernel": Promise(64, vector_stores=False),
    # One block of 1024 threads.
    "control_kernel<AdamArgs>": Promise(64, vector_loads=False, vector_stores=False, fp64=True),
    "control_kernel<SgdArgs>": Promise(64, vector_loads=False, vector_stores=False, fp64=True),
    "prepare_kernel<AdamArgs>": Promise(64, vector_loads=False, vector_stores=False, fp64=True),
    "prepare_kernel<SgdArgs>": Promise(64, vector_loads=False, vector_stores=False, fp64=True),
    "fold_kernel": Promise(64, vector_loads=False, vector_stores=False, fp64=True),
    # The layers of a net. Along rows and columns each thread takes 4 bytes, the warp 128 or whole sectors.
    "activate_kernel<Relu>": Promise(64),
    "activate_kernel<Gelu>": Promise(64),
    "activation_gradient_kernel<Relu>": Promise(64),
    "activation_gradient_kernel<Gelu>": Promise(64),
    "add_row_kernel": Promise(64),
    "column_sums_kernel": Promise(64, vector_loads=False, vector_stores=False),
    "layer_norm_kernel": Promise(64, vector_loads=False, vector_stores=False, fp64=True),
    "layer_norm_gradient_kernel": Promise(64, vector_loads=False, vector_stores=False, fp64=True),
    "norm_parameter_gradients_kernel<LayerNormalised>": Promise(64, vector_loads=False, vector_stores=False, fp64=True),
    "norm_parameter_gradients_kernel<BatchNormalised>": Promise(64, vector_loads=False, vector_stores=False),
    "batch_norm_kernel": Promise(64, vector_loads=False, vector_stores=False, fp64=True),
    "batch_norm_inference_kernel": Promise(64, vector_loads=False, vector_stores=False, fp64=True),
    "batch_norm_gradient_kernel": Promise(64, vector_loads=False, vector_stores=False, fp64=True),
    # Limited by arithmetic: 128 threads that hold rows of a head; 168 registers are three blocks on an SM.
    "attention_kernel": Promise(168, vector_loads=False, vector_stores=False),
    "query_gradient_kernel": Promise(168, vector_loads=False, vector_stores=False),
    "key_value_gradient_kernel": Promise(168, vector_loads=False, vector_stores=False),
    "embed_kernel": Promise(64, vector_loads=False, vector_stores=False),
    "token_gradient_kernel": Promise(64, vector_loads=False, vector_stores=False),
    "position_gradient_kernel": Promise(64, vector_loads=False, vector_stores=False),
    "cross_entropy_kernel": Promise(64, vector_loads=False, vector_stores=False, fp64=True),
    "add_losses_kernel": Promise(64, vector_loads=False, vector_stores=False, fp64=True),
}


@dataclasses.dataclass
class Kernel:
    name: str
    registers: int = 0
    spill_bytes: int = 0
    counts: dict = dataclasses.field(default_factory=dict)


COUNTED = {
    "local": r"\b(LDL|STL)\b",
    "generic": r"\b(LD|ST)\.E\b",
    "vector_loads": r"\bLDG\.E[.A-Z]*\.128\b",
    "vector_stores": r"\bSTG\.E[.A-Z]*\.128\b",
    "ffma": r"\bFFMA\b",
    "fp64": r"\b(DADD|DMUL|DFMA)\b",
}


def run(*command, tools=None):
    """Its output; it finds programs in the folder `tools` first."""
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"} if tools else None
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def find_tool(name, nvcc):
    pypi = pathlib.Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    places = [pathlib.Path(nvcc).parent, *sorted(pypi.glob("cu*/bin"))]
    found = shutil.which(name) or next((str(p / name) for p in places if (p / name).exists()), None)
    return found or sys.exit(f"{name} not found: install the CUDA Toolkit's, or PyPI's nvidia-cuda-{name}")


def short_name(mangled):
    """`adam_kernel<float>`, of a mangled name."""
    match = re.search(r"\d((?:[a-z]+_)+kernel)(I(?P<arg>[fd]|\w*?(?P<args>AdamArgs|SgdArgs|Relu|Gelu|LayerNormalised|BatchNormalised))E)?", mangled)
    if not match:
        return mangled
    arg = match["args"] or {"f": "float", "d": "double"}.get(match["arg"])
    return f"{match[1]}<{arg}>" if arg else match[1]


def read_kernels(nvcc, arch):
    cuobjdump, nvdisasm = find_tool("cuobjdump", nvcc), find_tool("nvdisasm", nvcc)
    kernels = {}
    with tempfile.TemporaryDirectory() as folder:
        for source in sorted((ROOT / "kernels/cuda").glob("*.cu")):
            compiled = pathlib.Path(folder) / (source.stem + ".o")
            log = run(nvcc, "-std=c++20", f"-arch={arch}", "-O3", "-fmad=false", "-Xptxas", "-v", f"-I{ROOT}",
                      f"-I{ROOT}/include", "-c", source, "-o", compiled)
            for entry in re.split(r"Compiling entry function '", log)[1:]:
                kernel = Kernel(short_name(entry.split("'")[0]))
                kernel.registers = int(re.search(r"Used (\d+) registers", entry)[1])
                kernel.spill_bytes = sum(map(int, re.findall(r"(\d+) bytes spill", entry)))
                kernels[kernel.name] = kernel
            sass = run(cuobjdump, "-sass", compiled, tools=pathlib.Path(nvdisasm).parent)  # which it calls
            for function in re.split(r"Function : ", sass)[1:]:
                kernel = kernels[short_name(function.split("\n")[0])]
                kernel.counts = {key: len(re.findall(pattern, function)) for key, pattern in COUNTED.items()}
    return kernels


def broken_promises(kernels, arch):
    for name in sorted(set(PROMISES) ^ set(kernels)):
        yield f"{name}: {'no such kernel' if name in PROMISES else 'nothing is promised of it'}"
    for name in sorted(set(PROMISES) & set(kernels)):
        promise, kernel = PROMISES[name], kernels[name]
        if kernel.registers > promise.budget(arch):
            yield f"{name}: {kernel.registers} registers, above its budget of {promise.budget(arch)}"
        if kernel.spill_bytes:
            yield f"{name}: {kernel.spill_bytes} bytes spilled"
        if kernel.counts["local"]:
            yield f"{name}: {kernel.counts['local']} accesses to local memory"
        if kernel.counts["generic"]:
            yield f"{name}: {kernel.counts['generic']} accesses that are not known to be to global memory"
        for key in ("vector_loads", "vector_stores"):
            if getattr(promise, key) and not kernel.counts[key]:
                yield f"{name}: no 128-bit {key.split('_')[1]}"
        if kernel.counts["fp64"] and not promise.fp64:
            yield f"{name}: {kernel.counts['fp64']} FP64 instructions"


def table(kernels, arch):
    lines = [f"Compiled for {arch} by nvcc.", "",
             "| kernel | registers | budget | spills | local | 128-bit loads | 128-bit stores | FFMA | FP64 |",
             "|---|---|---|---|---|---|---|---|---|"]
    for name, kernel in sorted(kernels.items()):
        c = kernel.counts
        budget = PROMISES[name].budget(arch) if name in PROMISES else "-"
        lines.append(f"| {name} | {kernel.registers} | {budget} | {kernel.spill_bytes} | {c['local']} | "
                     f"{c['vector_loads']} | {c['vector_stores']} | {c['ffma']} | {c['fp64']} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write the table into this page")
    arguments = parser.parse_args()

    kernels = read_kernels(arguments.nvcc, arguments.arch)
    text = table(kernels, arguments.arch)
    print(text)
    if arguments.markdown:
        page = arguments.markdown.read_text()
        before, rest = page.split(MARKERS[0])
        arguments.markdown.write_text(f"{before}{MARKERS[0]}\n{text}\n{MARKERS[1]}{rest.split(MARKERS[1])[1]}")
    broken = list(broken_promises(kernels, arguments.arch))
    for promise in broken:
        print(f"broken: {promise}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
