#!/usr/bin/env python3
"""libtpu compiles training steps for TPUs that this machine does not have. With --install, it is first fetched into build/; without
it, the test is skipped: 200 MB are too much for it. With --all, every network is compiled for every topology, which takes an hour
of a core; otherwise only MLPs are, and one convolutional network for one topology."""
import os
import pathlib
import subprocess
import sys

from packages import PROGRAMS, check, finish_tests
from xla_plugin import compile_ahead, need_large_packages

library = os.environ.get("TPU_LIBRARY_PATH", "")
if not library:
    need_large_packages("test_xla_tpu.py", libtpu="libtpu")
    import libtpu

    library = pathlib.Path(libtpu.__file__).parent / "libtpu.so"

# Lets two processes load libtpu at a time, without a metadata server, and reduces its log.
quiet = {"TPU_LIBRARY_PATH": str(library), "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "TPU_WORKER_HOSTNAMES": "localhost",
         "TPU_ACCELERATOR_TYPE": "v5litepod-8", "TPU_STDERR_LOG_LEVEL": "3", "TPU_MIN_LOG_LEVEL": "3"}

SLOW = ["cnn-bf16", "words", "cnn", "images", "resnet20", "mobilenet"]
# libtpu counts the 4 chips of v4:2x2x1 as 8 devices.
for topology, devices in {"v4:2x2x1": 8, "v5e:2x4": 8, "v5e:4x4": 16, "v6e:2x4": 8}.items():
    networks = ["mlp", "mlp-bf16"]
    if "--all" in sys.argv:
        networks += SLOW
    elif topology == "v5e:2x4":
        networks += ["cnn-bf16"]
    compile_ahead("tpu", topology, topology, devices, networks, quiet)
refused = subprocess.run([PROGRAMS / "interop_xla_ahead", "tpu", "v5litepod-8", "mlp"], capture_output=True, text=True, env=os.environ | quiet)
check(refused.returncode == 1 and "topology: the plugin libtpu.so reports (" in refused.stderr, "an unknown topology is one error", refused.stderr)
sys.exit(finish_tests())
