#!/usr/bin/env python3
"""A PJRT plugin from PyPI trains what this machine's cores train: the same losses in each of 100 steps, on 1 to 4 replicas, and
files that the one writes and the other reads."""
import os
import subprocess
import sys
import tempfile

from packages import PROGRAMS, check, finish_tests
from xla_plugin import cpu_plugin

plugin = cpu_plugin()
LOSSES, WEIGHTS = 1e-5, 1e-5

with tempfile.TemporaryDirectory() as name:
    run = subprocess.run([PROGRAMS / "interop_xla_training", name], capture_output=True, text=True, env=os.environ | {"STRATA_XLA_PLUGIN": str(plugin)})
    lines = [line.split() for line in run.stdout.splitlines()]
    check(run.returncode == 0 and len(lines) == 19, "all networks train", run.stdout + run.stderr)
    for what, replicas, loss, weight in lines:
        check(float(loss) < LOSSES and float(weight) < WEIGHTS, f"{what} on {replicas} replicas: losses and weights of the host", f"{loss} {weight}")
sys.exit(finish_tests())
