#!/usr/bin/env python3
"""Each operation, loss, metric and optimizer in modules of StableHLO on the CPU plugin of PyPI, against the reference kernels."""
from xla_plugin import run_comparisons

run_comparisons("interop_xla_numbers", count=815)
