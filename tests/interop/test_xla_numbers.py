#!/usr/bin/env python3
"""Modules of StableHLO, run by the CPU plugin of PyPI: each operation, loss, metric and optimizer against the reference."""
import os
import pathlib
import subprocess
import sys
from packages import PROGRAMS, check, finish_tests, need_packages

need_packages(xla_plugins="xla-cpu-pjrt==0.0.1")
import xla_plugins

plugin = pathlib.Path(next(iter(xla_plugins.__path__))) / "xla_cpu_pjrt/xla_cpu_pjrt.so"
run = subprocess.run([os.path.join(PROGRAMS, "interop_xla_numbers")], capture_output=True, text=True,
                     env=os.environ | {"STRATA_XLA_PLUGIN": str(plugin), "TF_CPP_MIN_LOG_LEVEL": "3"})
lines = run.stdout.splitlines()
for line in lines:
    check(line.startswith("good "), line.partition(" ")[2], line)
check(run.returncode == 0 and len(lines) > 100, f"the program ends, after {len(lines)} comparisons", run.stderr)
sys.exit(finish_tests())
