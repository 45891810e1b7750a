#!/usr/bin/env python3
# flags: compiles
"""Each program of bench/ runs with its smallest sizes, from an empty build folder, on a machine whose optional libraries are installed
after the first configuration; so do the scripts that run them, with the peer that is quickly installed. Without optimization."""
import os
import pathlib
import subprocess
import sys
import tempfile

from hidden_libraries import HiddenLibraries

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.nice(10)  # compilers take most of the time
results = []


def report(passed, what, told=""):
    results.append(passed)
    print(f"{'ok' if passed else 'not ok'} {len(results)} - {what}", flush=True)
    if not passed:
        print(told, file=sys.stderr)


with tempfile.TemporaryDirectory() as scratch:
    scratch = pathlib.Path(scratch)
    libraries = HiddenLibraries(scratch)
    built = scratch / "build/bench/bench"

    def run(*words, needs_packages=False):
        done = subprocess.run([ROOT / "bench/run", *words], env=libraries.environment | {"STRATA_OPTIMIZATION": "0"}, capture_output=True, text=True)
        what = f"bench/run {' '.join(words)}"
        if needs_packages and done.returncode != 0 and "'pip', 'install'" in done.stderr:
            results.append(True)
            print(f"ok {len(results)} - {what} # SKIP its packages cannot be installed", flush=True)
        else:
            report(done.returncode == 0 and done.stdout.strip() != "", what, done.stdout + done.stderr)

    run("networks", "--smoke")
    first = (built / "networks").stat().st_mtime_ns
    libraries.find()
    run("sweep", "--smoke", "--peers", "none")
    report((built / "networks").stat().st_mtime_ns == first, "libraries that have come do not undo what was built")
    for file in sorted((ROOT / "bench").glob("*.cpp")):
        if file.stem != "xla_step":  # it needs a plugin: see below
            run(file.stem, "--smoke")
    run("scaling", "--smoke")
    run("compile", "--smoke")
    run("sweep", "--smoke", "--peers", "jax", needs_packages=True)
    run("xla", "--smoke", needs_packages=True)
print(f"1..{len(results)}")
sys.exit(not all(results))
