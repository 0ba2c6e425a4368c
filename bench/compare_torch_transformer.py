#!/usr/bin/env python3
"""How fast does the reference Transformer train, beside the same model in PyTorch on the CPU?

Both train a byte-level decoder of the same shape on random tokens or text, FP32, through micro-batches, with clipping and
AdamW: gradfuse by `gradfuse train transformer`, torch eagerly with scaled_dot_product_attention and AdamW(fused=True) in a
process of its own, in turn, round after round. The fastest step of each counts; noise only ever adds.

    python3 bench/compare_torch_transformer.py --program build/release/src/cli/gradfuse --python .venv/bin/python
"""
import argparse
import json
import os
import sys
import tempfile
import time

from side_process import TORCH_MISSING, run

OPTIONS = "--program and --python"  # that name the programs


def torch_tokens_per_second(args: argparse.Namespace) -> float:
    """Of the fastest step."""
    try:
        import torch
        import torch.nn.functional as functional
    except ImportError as error:
        print(error, file=sys.stderr)
        sys.exit(TORCH_MISSING)
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = torch.nn.LayerNorm(args.width), torch.nn.LayerNorm(args.width)
            self.qkv = torch.nn.Linear(args.width, 3 * args.width)
            self.out = torch.nn.Linear(args.width, args.width)
            self.up = torch.nn.Linear(args.width, 4 * args.width)
            self.down = torch.nn.Linear(4 * args.width, args.width)

        def forward(self, x):
            batch, positions, width = x.shape
            heads = self.qkv(self.norm1(x)).view(batch, positions, 3, args.heads, width // args.heads)
            query, key, value = heads.permute(2, 0, 3, 1, 4)
            attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            x = x + self.out(attended.transpose(1, 2).reshape(batch, positions, width))
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = torch.nn.Embedding(256, args.width)
            self.positions = torch.nn.Embedding(args.context, args.width)
            self.blocks = torch.nn.Sequential(*(Block() for _ in range(args.layers)))
            self.norm = torch.nn.LayerNorm(args.width)

        def forward(self, inputs):
            x = self.blocks(self.tokens(inputs) + self.positions.weight)
            return self.norm(x) @ self.tokens.weight.T

    model = Decoder()
    step_model = torch.compile(model) if args.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    fastest = float("inf")
    for step in range(args.steps + 1):
        batches = torch.randint(256, (args.accum_steps, args.micro_batch, args.context + 1))
        start = time.perf_counter()
        for batch in batches:
            logits = step_model(batch[:, :-1])
            loss = functional.cross_entropy(logits.reshape(-1, 256), batch[:, 1:].reshape(-1))
            (loss / args.accum_steps).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step > 0:  # the first makes the states, and compiles
            fastest = min(fastest, time.perf_counter() - start)
    return args.accum_steps * args.micro_batch * args.context / fastest


def shape_flags(args: argparse.Namespace) -> list[str]:
    names = ("width", "layers", "heads", "context", "micro-batch", "accum-steps", "steps", "threads")
    return [item for name in names for item in (f"--{name}", str(getattr(args, name.replace("-", "_"))))]


def gradfuse_round(args: argparse.Namespace) -> float:
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "run.jsonl")
        command = [args.program, "train", "transformer", "--quiet", "--validate-every", "0", "--log", log]
        run(command + shape_flags(args), args.threads, "gradfuse", OPTIONS)
        lines = [json.loads(line) for line in open(log)]
    return args.context * max(line["samples_per_second"] for line in lines[1:] if line["event"] == "step")


def torch_round(args: argparse.Namespace) -> float:
    command = [args.python, __file__, "--torch-only"] + (["--compile"] if args.compile else [])
    return float(run(command + shape_flags(args), args.threads, "torch", OPTIONS))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/src/cli/gradfuse")
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch")
    for name, default in (("width", 384), ("layers", 6), ("heads", 6), ("context", 256), ("micro-batch", 4),
                          ("accum-steps", 4), ("steps", 8), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--compile", action="store_true", help="torch.compile the model")
    parser.add_argument("--torch-only", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    if args.torch_only:
        print(torch_tokens_per_second(args))
        return
    ours, theirs = [], []
    for number in range(args.rounds):
        theirs.append(torch_round(args))  # first: it tells at once when torch is missing
        ours.append(gradfuse_round(args))
        print(f"round {number + 1}: gradfuse {ours[-1]:.0f} tokens/s, torch {theirs[-1]:.0f}", flush=True)
    print(f"width {args.width}, {args.layers} layers, context {args.context}, {args.threads} threads: gradfuse "
          f"{max(ours):.0f} tokens/s, torch {max(theirs):.0f}, gradfuse / torch {max(ours) / max(theirs):.2f}")


if __name__ == "__main__":
    main()
