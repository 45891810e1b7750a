#!/usr/bin/env python3
"""Networks that together have most layers, as modules of StableHLO on the CPU plugin of PyPI, against the reference kernels."""
from xla_plugin import run_comparisons

run_comparisons("interop_xla_networks", count=50)
