#!/usr/bin/env python3
# needs: mpi
"""Processes that mpirun starts find their cluster, with Open MPI, and with MPICH if it is installed."""
import os
import re
import shlex
import shutil
import subprocess
import sys
from packages import PROGRAMS, ROOT, check, finish_tests, leave_out

RESOLVE = PROGRAMS / "interop_resolve"


def info_of(launcher, *options, **variables):
    """The cluster that each process finds, and the whole output."""
    script = 'echo "$("$0" "$@" 2>&1 | tr "\\n" ";")"'  # one write, so that lines of processes do not mix
    command = [*launcher, "-n", "4", "sh", "-c", script, RESOLVE, "mpirun", *options]
    run = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, timeout=300)
    lines = [line for line in run.stdout.splitlines() if line]
    return [dict(fact.split(" ", 1) for fact in line.split(";") if " " in fact) for line in sorted(lines)], run.stdout + run.stderr


def test(name, launcher, is_local):
    address = {} if is_local else {"STRATA_COORDINATOR": "127.0.0.1:20000"}
    facts, text = info_of(launcher, **address)
    check(
        sorted(f.get("task", "") for f in facts) == [f"worker {i}" for i in range(4)],
        f"{name}: four workers",
        text,
    )
    check(sorted(f.get("rank", "") for f in facts) == list("0123"), f"{name}: each with its rank")
    check(sorted(f.get("local_rank", "") for f in facts) == list("0123"), f"{name}: and its place on this host")
    check(len({f.get("coordinator") for f in facts}) == 1, f"{name}: that agree on the coordinator")
    check(len({f.get("run_id") for f in facts}) == 1, f"{name}: and on the run")
    facts, _ = info_of(launcher, "ps=1", "chief", **address)
    check(
        sorted(f.get("task", "") for f in facts) == ["chief 0", "ps 0", "worker 0", "worker 1"],
        f"{name}: roles are given out by rank",
    )
    return {f.get("run_id") for f in facts}


root = ["--allow-run-as-root"] if os.getuid() == 0 else []
open_mpi = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
local = [open_mpi, *root, "--oversubscribe"]
check(test("Open MPI", local, True) != test("Open MPI, again", local, True), "another run has another id")
_, text = info_of([*local, "-x", "STRATA_COORDINATOR=nowhere"])
check(text.count("mpirun: STRATA_COORDINATOR: 'nowhere' has no port: write host:port") == 4, "a wrong address is named by all")

# The line of the documentation, with hosts that exist here.
page = (ROOT / "docs/clusters.md").read_text()
_, *options, program = shlex.split(re.search(r"^mpirun .*$", page, re.M)[0])
options[options.index("--host") + 1] = "localhost:8"
options[options.index("-n") : options.index("-n") + 2] = []
facts, text = info_of([*local, *options])
check(program == "build/train" and len(facts) == 4, "the line in docs/clusters.md starts processes", text)
check({f.get("coordinator") for f in facts} == {"node1:20000"}, "that find the coordinator it names", text)

mpich = shutil.which("mpiexec.hydra")
if mpich:
    test("MPICH", [mpich], False)
    _, text = info_of([mpich])
    check(
        text.count("mpirun: the address of process 0 is unknown: set STRATA_COORDINATOR") == 4, "MPICH: an address is asked for"
    )
else:
    leave_out("MPICH", "not installed")
sys.exit(finish_tests())
