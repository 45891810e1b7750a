#!/usr/bin/env python3
"""The list of the examples, and programs whose libraries came after Meson had looked for them: all examples one after the other, then
the benchmarks with libraries.

The first configuration sees none of the optional libraries: a compiler and a pkg-config of the test deny them until a file is
deleted. A ninja of the test makes sure that the target exists, and puts a script in its place instead of compiling it."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HIDDEN = "protozero|gloo|png|jpeg|zip|grpc|mpi"
# The last argument of a compiler that Meson calls is a source file, or one is among them.
COMPILER = """#!/bin/bash
if [ -e "$STRATA_HIDES" ]; then
  for argument; do
    if [[ $argument =~ ^-l(gloo)$ ]] || { [[ $argument == *.cpp && -e $argument ]] && grep -qE '(include|INCLUDE).*(HIDDEN)' "$argument"; }; then exit 1; fi
  done
fi
exec REAL "$@"
"""
PKG_CONFIG = """#!/bin/bash
if [ -e "$STRATA_HIDES" ] && [[ "$*" =~ lib(png|jpeg|zip)|grpc|mpi ]]; then exit 1; fi
exec REAL "$@"
"""
MISSING = """#!/bin/bash
if [ -e "$STRATA_HIDES" ]; then exit 1; fi
exec REAL "$@"
"""
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
    tools, hides = scratch / "tools", scratch / "hides"
    tools.mkdir()
    hides.touch()
    gxx = os.environ.get("GXX", "g++")
    for name, text in ((gxx, COMPILER), ("pkg-config", PKG_CONFIG), ("ninja", NINJA), ("mpicxx", MISSING), ("mpic++", MISSING)):
        if real := shutil.which(name):
            (tools / name).write_text(text.replace("REAL", real).replace("HIDDEN", HIDDEN))
            (tools / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "STRATA_BUILD": str(scratch / "build"), "STRATA_HIDES": str(hides),
                                "CCACHE_DISABLE": "1"}

    def start(folder, name):
        return subprocess.run([ROOT / folder / "run", name], env=environment, capture_output=True, text=True)

    for folder, plain in (("examples", "quickstart"), ("bench", "networks")):
        hides.touch()
        first = start(folder, plain)
        log = (scratch / "build" / f"{folder}.log").read_text()
        demanding = [name for name in programs(folder) if needs(folder, name)]
        left_out = [name for name in demanding if f"{folder}/{name} is left out" in log]
        report(first.returncode == 0 and left_out == demanding, f"{folder}/run {plain}, without libraries for {' '.join(demanding)}",
               f"left out: {left_out}\n{first.stdout}{first.stderr}{log}")
        hides.unlink()
        for name in programs(folder) if folder == "examples" else demanding:
            done = start(folder, name)
            report(done.returncode == 0 and f"started {folder}/{name}" in done.stdout, f"{folder}/run {name}, with them", done.stdout + done.stderr)
print(f"1..{len(results)}")
sys.exit(not all(results))
