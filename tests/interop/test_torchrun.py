#!/usr/bin/env python3
"""Processes that PyTorch's torchrun starts find their cluster, and the coordinator's port is free.

Needs torchrun in the PATH, or in build/peers-torch, which the benchmarks make. Otherwise it is skipped: PyTorch is too large for
a test, and tests/unit/cluster_launchers.cpp has the variables that torchrun sets.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
from packages import PROGRAMS, ROOT, check, finish_tests, leave_out_all

RESOLVE = PROGRAMS / "interop_resolve"
TORCHRUN = shutil.which("torchrun") or shutil.which(ROOT / "build/peers-torch/bin/torchrun")
if not TORCHRUN:
    leave_out_all("there is no torchrun")

# While torchrun runs, rank 0 binds the port that all of them found, as the coordinator will.
SCRIPT = """
set -e
"$1" any_cluster >"$2/$RANK"
[ "$RANK" != 0 ] || exec "$3" -c 'import socket, sys; socket.create_server(("", int(sys.argv[1])))' \
  "$(sed -n 's/^coordinator .*://p' "$2/0")"
"""

with tempfile.TemporaryDirectory() as folder:
    script = pathlib.Path(folder) / "script"
    script.write_text(SCRIPT)
    command = [TORCHRUN, "--nproc-per-node=3", "--no-python", "bash", script, RESOLVE, folder, sys.executable]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    check(run.returncode == 0, "rank 0 can listen at the address that the others have", run.stderr)
    texts = [(pathlib.Path(folder) / str(rank)).read_text() for rank in range(3)]
facts = [dict(line.split(" ", 1) for line in text.splitlines()) for text in texts]
check([f["task"] for f in facts] == ["worker 0", "worker 1", "worker 2"], "three workers, each with its rank")
check([f["local_rank"] for f in facts] == ["0", "1", "2"] and {f["local_size"] for f in facts} == {"3"}, "all of one host")
check(len({f["coordinator"] for f in facts}) == len({f["run_id"] for f in facts}) == 1, "that agree on coordinator and run")
sys.exit(finish_tests())
