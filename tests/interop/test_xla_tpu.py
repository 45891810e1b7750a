#!/usr/bin/env python3
"""libtpu compiles training steps for TPUs that this machine does not have. With --install it is fetched into build/ first; a run
without it leaves the test out: 200 MB are too much for it. With --all every network is compiled for every topology, which takes
an hour of a core; otherwise MLPs are, and one convolutional network for one topology."""
import os
import pathlib
import subprocess
import sys

from packages import PROGRAMS, ROOT, check, finish_tests, go_on_with, lacks, leave_out_all, need_packages

library = os.environ.get("TPU_LIBRARY_PATH", "")
if not library:
    python = ROOT / "build/python-libtpu/bin/python"
    if "--install" in sys.argv:
        need_packages(libtpu="libtpu")
    elif lacks(["libtpu"]) and python.exists() and "STRATA_LIBTPU_TRIED" not in os.environ:
        go_on_with(python, "STRATA_LIBTPU_TRIED")
    if lacks(["libtpu"]):
        leave_out_all("there is no libtpu: tests/interop/test_xla_tpu.py --install fetches it")
    import libtpu

    library = pathlib.Path(libtpu.__file__).parent / "libtpu.so"

# Two processes may load libtpu at a time, it looks for no metadata server, and says little.
quiet = {"TPU_LIBRARY_PATH": str(library), "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "TPU_WORKER_HOSTNAMES": "localhost",
         "TPU_ACCELERATOR_TYPE": "v5litepod-8", "TPU_STDERR_LOG_LEVEL": "3", "TPU_MIN_LOG_LEVEL": "3"}


def compiles(topology, devices, *networks):
    run = subprocess.run([PROGRAMS / "interop_xla_ahead", topology, *networks], capture_output=True, text=True, env=os.environ | quiet)
    expected = [(network, str(replicas)) for network in networks for replicas in (1, devices)]
    lines = [line.split() for line in run.stdout.splitlines()]
    check(run.returncode == 0 and [(line[0], line[1]) for line in lines] == expected, f"{topology}: {', '.join(networks)} on one device and on all {devices}", run.stderr)
    for network, replicas, size, flops, accessed, seconds in lines:
        print(f"# {topology} {network} x {replicas}: {int(size):,} bytes, {float(flops):.3g} operations, {float(accessed):.3g} bytes accessed, {float(seconds):.2g} s")
        check(int(size) > 10_000 and float(flops) > 1e5, f"{topology}: {network} on {replicas} has an executable and a cost")


SLOW = ["cnn-bf16", "cnn", "images", "words", "resnet20", "mobilenet"]
# libtpu counts the 4 chips of v4:2x2x1 as 8 devices.
for topology, devices in {"v4:2x2x1": 8, "v5e:2x4": 8, "v5e:4x4": 16, "v6e:2x4": 8}.items():
    compiles(topology, devices, "mlp", "mlp-bf16")
    if "--all" in sys.argv:
        for network in SLOW:
            compiles(topology, devices, network)
    elif topology == "v5e:2x4":
        compiles(topology, devices, "cnn-bf16")
refused = subprocess.run([PROGRAMS / "interop_xla_ahead", "v5litepod-8", "mlp"], capture_output=True, text=True, env=os.environ | quiet)
check(refused.returncode == 1 and "topology: the plugin libtpu.so says (" in refused.stderr, "an unknown topology is one error", refused.stderr)
sys.exit(finish_tests())
