#!/usr/bin/env python3
# needs: mpi openssl protozero
"""Processes that mpirun starts train over MPI to the bits of one process, and report what they waited for in vain."""
import os
import shutil
import subprocess
import sys
import time
from packages import PROGRAMS, check, finish_tests

PROGRAM = PROGRAMS / "interop_mpi"
root = ["--allow-run-as-root"] if os.getuid() == 0 else []
mpirun = [shutil.which("mpirun.openmpi") or shutil.which("mpirun"), *root, "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]


def run(processes, *arguments):
    """The lines of all processes, the whole output, and the exit status."""
    out = subprocess.run([*mpirun, "-n", str(processes), PROGRAM, *arguments], capture_output=True, text=True, timeout=120)
    return [line for line in out.stdout.splitlines() if line], out.stdout + out.stderr, out.returncode


expected = subprocess.run([PROGRAM], capture_output=True, text=True, timeout=120).stdout.strip()
for processes in (2, 4):
    for arguments in (["among"], ["among", "4096"], ["multi_worker"], ["twice"]):
        lines, text, _ = run(processes, *arguments)
        check(expected and lines == [expected] * processes, f"{processes} processes, {' '.join(arguments)}: the bits of one", text)

lines, text, _ = run(2, "much")
check(lines == ["all of it"] * 2, "a message that is passed to MPI in pieces", text)

began = time.monotonic()
lines, text, status = run(2, "late")
reason = "communication_error: gradients: process 1, for which process 0 waits in MPI, did not answer within 500 ms"
check(reason in text and status != 0, "a process that does not answer is named", text)
check(time.monotonic() - began < 60, "and all end")
sys.exit(finish_tests())
