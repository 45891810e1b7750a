"""Common parts of the peers: they serve requests, one JSON object per line, and measure time as bench/networks.cpp does.

A request is {"model", "batch", "what", "seconds"}; `what` is predict, train (one step per call), fit (an epoch),
input (by a "loader") or workers (an epoch, together with other processes that get the same request).
"""
import gzip
import json
import pathlib
import sys
import time
from typing import Callable

import numpy as np

# Samples per epoch; per epoch of several processes; batches in memory for other measurements; warm-up batches.
EPOCH, WORKERS_EPOCH, BATCHES, WARM_UP = 60_000, 12_800, 16, 20


def samples_of(shape: tuple, count: int) -> np.ndarray:
    """Inputs in [0, 1]: MNIST's training images if the shape matches and the second argument names their folder, else random."""
    if len(sys.argv) < 3 or shape != (28, 28, 1):
        return np.random.default_rng(1).random((count, *shape), np.float32)
    file = pathlib.Path(sys.argv[2]) / "train-images-idx3-ubyte"
    content = file.read_bytes() if file.exists() else gzip.decompress(file.with_name(file.name + ".gz").read_bytes())
    return np.frombuffer(content, np.uint8, offset=16).reshape(-1, *shape)[:count] / np.float32(255)


def fastest(step: Callable[[], object], batch: int, seconds: float, rounds: int = 5) -> float:
    """Samples per second in the fastest of several rounds."""
    step()
    best = 0.0
    for _ in range(rounds):
        start, steps, passed = time.perf_counter(), 0, 0.0
        while steps == 0 or passed < seconds / rounds:
            step()
            steps += 1
            passed = time.perf_counter() - start
        best = max(best, steps * batch / passed)
    return best


def samples_per_second(epoch: Callable[[], object], samples: int) -> float:
    start = time.perf_counter()
    epoch()
    return samples / (time.perf_counter() - start)


def serve(versions: dict[str, str], answer: Callable[[dict], dict]) -> None:
    print(json.dumps({"versions": versions}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
