"""What the comparisons with torch share: each side runs in a process of its own, in turn."""
import os
import subprocess
import sys

TORCH_MISSING = 3  # exit status of a process that should have had torch


def run(command: list[str], threads: int, who: str, options: str) -> str:
    """Its output; ends the comparison with a message if it fails. `options`: those that name the programs."""
    # Huge pages for torch as well: gradfuse's arrays have them, and the difference would not be the step's.
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "THP_MEM_ALLOC_ENABLE": "1"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    except OSError as error:
        sys.exit(f"cannot run {command[0]}: {error.strerror}; see {options}")
    if done.returncode == TORCH_MISSING:
        sys.exit(f"{command[0]} has no torch ({done.stderr.strip()}); install it there with "
                 "`-m pip install torch numpy`, or give another --python")
    if done.returncode != 0:
        sys.exit(f"{who} failed with status {done.returncode}:\n{done.stderr.strip()}")
    return done.stdout
