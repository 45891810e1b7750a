#!/usr/bin/env python3
"""The shell blocks of docs/clusters.md: the resolvers find the cluster that each of them starts."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from packages import PROGRAMS, ROOT, check, finish_tests

PAGE = (ROOT / "docs/clusters.md").read_text()
RESOLVE = PROGRAMS / "interop_resolve"


def section(title):
    """The shell block under a title."""
    text = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)[1]
    return re.search(r"^```bash\n(.*?)^```", text, re.M | re.S)[1]


def facts(text):
    return dict(line.split(" ", 1) for line in text.splitlines())


def launch():
    for line in section("One machine").splitlines():
        options, _, program = line.partition(" -- ")
        command = [*shlex.split(options), "--", RESOLVE, "any_cluster"]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        check(program.startswith("build/train") and run.returncode == 0, line, run.stderr)
        found = re.findall(r"^(\w+ \d+) *\| task (.*)$", run.stdout, re.M)
        check(found and all(name == task for name, task in found), "and any_cluster finds the place of each process", run.stdout)


def by_hand():
    script = section("By hand")
    found = []
    for line in script.splitlines():
        program = line.replace("build/train", f"{RESOLVE} tf_config")
        run = subprocess.run(["bash", "-c", program], capture_output=True, text=True)
        found.append(facts(run.stdout))
    check([f["task"] for f in found] == ["worker 0", "worker 1"], "the lines with TF_CONFIG start workers 0 and 1")
    check(len({f["run_id"] for f in found}) == len({f["members"] for f in found}) == 1, "of the same cluster")


# Sets the variables that Slurm documents for each task, and runs the program.
SRUN = """#!/bin/bash
printf '%s\\n' "$@" >"$FOLDER/arguments"
while [[ $1 == --* ]]; do shift; done
task=0
for node in 1 2 3 4; do
  for ((local = 0; local < TASKS_PER_NODE; ++local, ++task)); do
    SLURM_STEP_ID=0 SLURM_STEP_NODELIST=$SLURM_JOB_NODELIST SLURM_STEP_TASKS_PER_NODE=$SLURM_TASKS_PER_NODE \\
      SLURM_STEP_NUM_TASKS=$SLURM_NTASKS SLURM_PROCID=$task SLURM_LOCALID=$local SLURM_NODEID=$((node - 1)) \\
      "$@" >"$FOLDER/$task"
  done
done
"""


def slurm():
    script = section("Slurm")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "job").write_text(script.replace("build/train", f"{RESOLVE} any_cluster"))
        check(subprocess.run(["bash", "-n", folder / "job"]).returncode == 0, "the batch script has the syntax of bash")
        options = dict(re.findall(r"^#SBATCH --([a-z-]+)(?:=(\S+))?$", script, re.M))
        check(
            len(options) == script.count("#SBATCH") and script.startswith("#!"), "its options are written as sbatch reads them"
        )
        nodes, tasks = int(options["nodes"]), int(options["ntasks-per-node"])
        variables = {
            "SLURM_JOB_ID": "4711",
            "SLURM_JOB_NODELIST": f"node[01-{nodes:02}]",
            "SLURM_NTASKS": str(nodes * tasks),
            "SLURM_NTASKS_PER_NODE": str(tasks),
            "SLURM_TASKS_PER_NODE": f"{tasks}(x{nodes})",
            "SLURM_CPUS_PER_TASK": options["cpus-per-task"],
            "SLURM_PROCID": "0",
            "SLURM_LOCALID": "0",
        }
        variables |= {"FOLDER": str(folder), "TASKS_PER_NODE": str(tasks), "PATH": f"{folder}:{os.environ['PATH']}"}
        (folder / "srun").write_text(SRUN)
        (folder / "srun").chmod(0o755)
        run = subprocess.run(["bash", "-u", folder / "job"], env=os.environ | variables, capture_output=True, text=True)
        check(run.returncode == 0, "it runs", run.stderr)
        arguments = (folder / "arguments").read_text().splitlines()
        check(f"--cpus-per-task={options['cpus-per-task']}" in arguments, "each task gets its cores")
        found = [facts((folder / str(task)).read_text()) for task in range(nodes * tasks)]
        check([f["task"] for f in found] == [f"worker {i}" for i in range(nodes * tasks)], "every task is a worker")
        hosts = [f"node{1 + i // tasks:02}" for i in range(nodes * tasks)]
        members = found[0]["members"].split(" ")[1:]
        check([address.split(":")[0] for address in members] == hosts, "on the node where Slurm puts it")
        check(
            len(set(members)) == nodes * tasks and {f["coordinator"] for f in found} == {members[0]},
            "with an address of its own",
        )

        # Without srun, the program would wait for the others.
        (folder / "job").write_text(re.sub(r"^srun .* build/train", f"{RESOLVE} slurm", script, flags=re.M))
        run = subprocess.run(["bash", folder / "job"], env=os.environ | variables, capture_output=True, text=True)
        check(
            run.returncode == 1 and "start the program in it with srun" in run.stderr, "a batch script without srun is noticed"
        )


launch()
by_hand()
slurm()
sys.exit(finish_tests())
