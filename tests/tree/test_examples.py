#!/usr/bin/env python3
"""The list of the examples, and programs whose libraries are installed after Meson has searched for them: all examples one after the
other, then the benchmarks with libraries.

The first configuration finds none of the optional libraries. A ninja of the test checks that the target exists, and writes a script in
its place instead of compiling it."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from hidden_libraries import HiddenLibraries

ROOT = pathlib.Path(__file__).resolve().parents[2]
NINJA = """#!/bin/bash
# ninja -C FOLDER TARGET
if [[ $1 == -C && $# == 3 ]]; then
  REAL -n "$@" >&2 || exit
  mkdir -p "$2/${3%/*}"
  printf '#!/bin/sh\\necho started %s\\n' "$3" >"$2/$3" && chmod +x "$2/$3"
else
  exec REAL "$@"
fi
"""


def programs(folder):
    return [f.stem for f in sorted((ROOT / folder).glob("*.cpp"))]


def needs(folder, name):
    return re.findall(r"^// needs: *(.*)", (ROOT / folder / f"{name}.cpp").read_text(), re.M)


results = []


def report(passed, what, told):
    results.append(passed)
    print(f"{'ok' if passed else 'not ok'} {len(results)} - {what}", flush=True)
    if not passed:
        print(told, file=sys.stderr)


listed = subprocess.run([ROOT / "examples/run"], capture_output=True, text=True).stdout
sections = dict(re.findall(r"^  (\w+) (.*(?:\n {10}.*)*)", listed, re.M))
silent = [name for name in programs("examples") if not re.search(r"^ +takes \d+( to \d+)? (s|min)\b", sections.get(name, ""), re.M)]
report(not silent, "examples/run lists each example and how long it takes", f"without `// takes: 20 s ...` in its head: {silent}")

with tempfile.TemporaryDirectory() as scratch:
    scratch = pathlib.Path(scratch)
    libraries = HiddenLibraries(scratch, ninja=NINJA)
    environment = libraries.environment | {"CCACHE_DISABLE": "1"}

    def start(folder, name):
        return subprocess.run([ROOT / folder / "run", name], env=environment, capture_output=True, text=True)

    for folder, plain in (("examples", "quickstart"), ("bench", "networks")):
        libraries.hide()
        first = start(folder, plain)
        log = (scratch / "build" / f"{folder}.log").read_text()
        demanding = [name for name in programs(folder) if needs(folder, name)]
        left_out = [name for name in demanding if f"{folder}/{name} is left out" in log]
        report(first.returncode == 0 and left_out == demanding, f"{folder}/run {plain}, without libraries for {' '.join(demanding)}",
               f"left out: {left_out}\n{first.stdout}{first.stderr}{log}")
        if folder == "bench" and shutil.which("mpicxx"):
            missing = subprocess.run(["bash", "-c", '. tests/tools/setup.sh; need_library mpi; echo "${missing[*]}"'], cwd=ROOT, env=environment, capture_output=True, text=True)
            report(re.search(r"all_reduce is left out for want of .*\bmpi\b", log) and missing.stdout == "libopenmpi-dev\n",
                   "an mpicxx that finds no mpi.h does not stand for the library", missing.stdout + missing.stderr + log)
        libraries.find()
        for name in programs(folder) if folder == "examples" else demanding:
            done = start(folder, name)
            report(done.returncode == 0 and f"started {folder}/{name}" in done.stdout, f"{folder}/run {name}, with them", done.stdout + done.stderr)
print(f"1..{len(results)}")
sys.exit(not all(results))
