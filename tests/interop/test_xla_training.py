#!/usr/bin/env python3
"""Trainings on a PJRT plugin from PyPI and on this machine's cores: the same losses in each of 100 steps, on 1 to 8 replicas, and
files that one writes and the other reads. With --all, which takes a quarter of an hour of a core, also the reference CNN,
every layer and ResNet-20, in double."""
import os
import pathlib
import subprocess
import sys
import tempfile

from packages import PROGRAMS, ROOT, check, finish_tests
from xla_plugin import cpu_plugin

environment = os.environ | {"STRATA_XLA_PLUGIN": str(cpu_plugin()), "TF_CPP_MIN_LOG_LEVEL": "3"}
LOSSES, WEIGHTS = 1e-5, 1e-5


def train(command, at_least):
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    lines = [line.split() for line in run.stdout.splitlines()]
    check(run.returncode == 0 and len(lines) == at_least, f"{len(lines)} comparisons", run.stdout + run.stderr)
    for what, replicas, loss, weight in lines:
        print(f"# {what} x {replicas}: losses differ by {loss}, relative, weights by {weight}", flush=True)
        check(float(loss) < LOSSES and float(weight) < WEIGHTS, f"{what} on {replicas} replicas: losses and weights of the host", f"{loss} {weight}")


with tempfile.TemporaryDirectory() as folder:
    train([PROGRAMS / "interop_xla_training", folder], 21)
    if "--all" in sys.argv:
        program = pathlib.Path(folder) / "long"
        source = ROOT / "tests/long/xla_training.cpp"
        flags = ["-std=c++20", "-O2", "-march=native", "-DSTRATA_NO_SPEED_NOTICE", f"-I{ROOT}/include", "-pthread", "-ldl"]
        subprocess.run([os.environ.get("CXX", "g++"), source, "-o", program, *flags], check=True)
        for network, comparisons in {"mlp": 4, "cnn": 4, "every-layer": 4, "every-layer-of-words": 4, "resnet20": 4}.items():
            train([program, network], comparisons)
sys.exit(finish_tests())
