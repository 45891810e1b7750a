"""What the peers share: they answer requests, one JSON object per line, and time as bench/networks.cpp does.

A request is {"model", "batch", "what", "seconds"}; `what` is predict, train (one step per call), fit (an epoch),
input (by a "loader") or workers (an epoch, together with other processes that are asked for the same).
"""
import json
import sys
import time
from typing import Callable

# Samples of an epoch, and of one that several processes share; batches in memory of the other measurements; batches that warm an epoch up.
EPOCH, WORKERS_EPOCH, BATCHES, WARM_UP = 60_000, 12_800, 16, 20


def fastest(step: Callable[[], object], batch: int, seconds: float, rounds: int = 5) -> float:
    """Samples per second in the fastest of some rounds."""
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
