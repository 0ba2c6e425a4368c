#!/usr/bin/env python3
"""Is AdamW alone as fast as torch's AdamW(fused=True) on the CPU?

Both update one FP32 tensor of the same number of elements with the same number of threads: gradfuse in passes_bench,
torch in a process of its own, in turn, round after round. The fastest step of each counts; noise only ever adds.

    python3 bench/compare_torch.py --bench build/release/bench/passes_bench --python .venv/bin/python
"""

import argparse
import json
import os
import sys
import time

from side_process import TORCH_MISSING, run

OPTIONS = "--bench and --python"  # that name the programs


def torch_fastest_step(numel: int, threads: int, seconds: float) -> float:
    """Seconds of the fastest step."""
    try:
        import torch
    except ImportError as error:
        print(error, file=sys.stderr)
        sys.exit(TORCH_MISSING)
    torch.set_num_threads(threads)
    param = torch.nn.Parameter(torch.full((numel,), 0.02))
    param.grad = torch.full((numel,), 1e-3)
    optimizer = torch.optim.AdamW([param], lr=1e-3, weight_decay=0.01, fused=True)
    optimizer.step()  # makes the states
    fastest = float("inf")
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        optimizer.step()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


def gradfuse_round(args: argparse.Namespace) -> float:
    command = [args.bench, f"--benchmark_filter=^pass/adamw/{args.numel}/", "--benchmark_format=json",
               f"--benchmark_min_time={args.seconds}"]
    output = run(command, args.threads, "passes_bench", OPTIONS)
    benchmarks = json.loads(output)["benchmarks"] if output.strip() else []
    if not benchmarks:
        sys.exit(f"passes_bench has no adamw benchmark of {args.numel} elements; "
                 f"`{args.bench} --benchmark_list_tests --benchmark_filter=adamw` lists those it has")
    if benchmarks[0].get("error_occurred"):
        sys.exit(f"passes_bench: {benchmarks[0]['error_message']}")
    return benchmarks[0]["fastest_seconds"]


def torch_round(args: argparse.Namespace) -> float:
    command = [args.python, __file__, "--torch-only", "--numel", str(args.numel), "--threads", str(args.threads),
               "--seconds", str(args.seconds)]
    return float(run(command, args.threads, "torch", OPTIONS))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="build/release/bench/passes_bench", help="the program passes_bench")
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch")
    parser.add_argument("--numel", type=int, default=31_000_000, help="a size that passes_bench has")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each side in each round")
    parser.add_argument("--torch-only", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if min(args.numel, args.threads, args.rounds) < 1 or not args.seconds > 0:
        parser.error("--numel, --threads, --rounds and --seconds must be positive")
    return args


def main() -> None:
    args = parse_arguments()
    if args.torch_only:
        print(torch_fastest_step(args.numel, args.threads, args.seconds))
        return
    ours, theirs = [], []
    for number in range(args.rounds):
        theirs.append(torch_round(args))  # first: it tells at once when torch is missing
        ours.append(gradfuse_round(args))
        print(f"round {number + 1}: gradfuse {ours[-1] * 1e3:.3f} ms, torch {theirs[-1] * 1e3:.3f} ms", flush=True)
    print(f"AdamW, {args.numel} elements, {args.threads} threads: gradfuse {min(ours) * 1e3:.3f} ms, "
          f"torch {min(theirs) * 1e3:.3f} ms, gradfuse / torch {min(ours) / min(theirs):.3f}")


if __name__ == "__main__":
    main()
