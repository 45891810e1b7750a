#!/usr/bin/env python3
"""tests/cuda/run without a device: stubs replace nvcc, nvidia-smi, compute-sanitizer and the programs. Checks its reports, and the
results of a run that is stopped."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "interop"))
from packages import ROOT, check, finish_tests  # noqa: E402

PASSES = "echo '[doctest] test cases: 3 | 3 passed | 0 failed'"
STEPS = """i=0; while [ $i -lt 200 ]; do echo "a warning of which there are many $i" >&2; i=$((i + 1)); done
echo "reference CNN b=64 strata 60.5"; echo "reference CNN b=64 strata,one_leaf 50.5"; echo "mlp 4096 x 4 bf16 b=8192 strata 5200.0" """
# Copies the stub of a program, or fails if there is none. It records its arguments.
NVCC = """#!/bin/sh
echo "$@" >> "$STUBS/compiled"
for each; do case $each in *.cpp|*.cu) name=$(basename "$each"); name=${name%.*};; esac; [ "$last" = -o ] && to=$each; last=$each; done
[ -e "$STUBS/$name" ] || { echo "error: there is no $name"; exit 1; }
cp "$STUBS/$name" "$to"
"""
SANITIZER = """#!/bin/sh
echo "$@" >> "$STUBS/sanitized"
while case $1 in --*) true;; *) false;; esac; do shift; done
exec "$1"
"""


class machine:
    """A tree with tests/cuda/run, stubs of the programs that it calls, and the headers of libraries."""

    def __init__(self, folder, libraries=("cublasLt.h", "cudnn_graph.h", "nccl.h")):
        self.root, self.stubs, toolkit = (pathlib.Path(folder) / name for name in ("tree", "stubs", "toolkit"))
        for each in ("tests/cuda/emulated", "tests/unit", "bench/cuda", "include/strata", "build/cuda/taken_along"):
            (self.root / each).mkdir(parents=True)
        for each in ("bin", "include"):
            (toolkit / each).mkdir(parents=True)
        self.stubs.mkdir()
        self.script = self.root / "tests/cuda/run"
        self.script.write_text((ROOT / "tests/cuda/run").read_text().replace('"/usr/', f'"{folder}/usr/'))  # no headers of this machine
        for header in libraries:
            (toolkit / "include" / header).touch()
        for name, text in {"nvcc": NVCC, "compute-sanitizer": SANITIZER, "c++": "#!/bin/sh\n",
                           "nvidia-smi": "#!/bin/sh\necho 'NVIDIA H200, 580.0'\n"}.items():
            self.write(toolkit / "bin" / name, text)
        self.path = f"{toolkit}/bin:/usr/bin:/bin"
        for name in ("kernels", "trains", "large", "losses", "nccl", "convolutions_by_library"):
            self.program(name, PASSES)
        for name in ("kernels", "losses", "nccl", "convolutions_by_library"):
            (self.root / f"tests/cuda/emulated/{name}.cpp").touch()
        self.program("steps", STEPS)
        for folder in ("bench", "tests"):  # there are two of this name
            (self.root / folder / "cuda/steps.cu").touch()
        (self.root / "bench/cuda/torch_steps.py").write_text(
            "print('reference CNN b=64 graph 81.5', flush=True)\nprint('reference CNN b=64 eager: OutOfMemoryError: 3', flush=True)\n")

    @staticmethod
    def write(file, text):
        file.write_text(text)
        file.chmod(0o755)

    def program(self, name, text):
        self.write(self.stubs / name, f"#!/bin/sh\n{text}\n")

    def start(self, *arguments):
        environment = {"PATH": self.path, "STUBS": str(self.stubs), "HOME": str(self.root)}
        return subprocess.Popen([sys.executable, self.script, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, *arguments):
        """Runs it. Returns (status, output, result)."""
        process = self.start(*arguments)
        said = process.communicate()[0]
        return process.returncode, said, self.result()

    def result(self):
        file = self.root / "build/cuda/result.json"
        return json.loads(file.read_text()) if file.exists() else {"tests": {}, "figures": {}}

    def compiled(self):
        """The number of calls of nvcc."""
        file = self.stubs / "compiled"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def limit(self, name, seconds):
        """Changes the time limit of an item."""
        text = self.script.read_text()
        limited = re.sub(rf'("{name}": \("\w+"), \d+', rf"\1, {seconds}", text)
        assert limited != text
        self.script.write_text(limited)


def with_machine(f, **options):
    with tempfile.TemporaryDirectory() as folder:
        f(machine(folder, **options))


def ten_minutes(m):
    status, said, result = m.run("--ten-minutes")
    check(status == 0 and "right: 6 tests have passed" in said, "ten minutes: a verdict", said)
    check(list(result["tests"]) == ["libraries", "kernels", "trains", "large", "steps", "racecheck_images"], "in the order of the items", said)
    check(result["figures"] == {"reference CNN b=64": {"strata": 60.5, "strata, one leaf": 50.5, "PyTorch graph": 81.5},
                                "mlp 4096 x 4 bf16 b=8192": {"strata": 5200.0}}, "figures are those of the whole output", str(result["figures"]))
    check("--tool=racecheck" in (m.stubs / "sanitized").read_text() and "keep images" in (m.stubs / "sanitized").read_text(),
          "the kernels with images in shared memory are checked for races")
    check("bench/cuda/steps.cu" in (m.stubs / "compiled").read_text(), "steps are those of the benchmark")
    before = m.compiled()
    m.run("--ten-minutes")
    check(m.compiled() == before, "programs are not compiled again")
    (m.root / "include/strata/new.hpp").touch()
    (m.root / "include/strata/new.hpp").write_text("int x;")
    m.run("--only", "kernels")
    check(m.compiled() == before + 1, "but for those of other sources, which --only names")


def stopped(m):
    m.program("steps", STEPS + "\nsleep 60")
    m.limit("steps", 5)  # also of the start of a shell, on a machine that is busy
    status, said, result = m.run("--only", "steps,losses")
    check(status == 1 and result["tests"]["steps"]["output"].startswith("no end after 5 s") and "WRONG: steps" in said, "a program without end fails", said)
    check(len(result["figures"]) == 2 and "60.5" in said, "its figures are kept", said)
    check(result["tests"]["losses"]["passed"], "the next one runs", said)


def killed(m):
    m.program("losses", 'echo $$ > "$STUBS/pid"; exec sleep 60')
    process, started = m.start("--only", "kernels,losses"), ""
    for _ in range(300):
        if (m.stubs / "pid").exists() and (started := (m.stubs / "pid").read_text()):
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    check(m.result()["tests"]["kernels"]["passed"], "the result of a test is there before the next one ends")
    os.kill(int(started), signal.SIGKILL)


def without_a_library(m):
    status, said, result = m.run("--only", "convolutions_by_library,kernels")
    check(status == 1 and "cudnn is missing: no cudnn_graph.h" in said and list(result["tests"]) == ["libraries", "kernels"],
          "a library that is expected and missing is a failure, and its test does not pass", said)
    status, said, result = m.run("--only", "convolutions_by_library,kernels", "--without", "cudnn")
    check(status == 0, "unless it is not expected", said)
    # A package of PyPI.
    package = m.root / "tests/cuda/nvidia/cudnn"  # the script's own folder is one of Python's
    for each in ("include/cudnn_graph.h", "lib/libcudnn.so.9"):
        (package / each).parent.mkdir(parents=True)
        (package / each).touch()
    status, said, result = m.run("--only", "convolutions_by_library")
    called = (m.stubs / "compiled").read_text().splitlines()[-1]
    check(status == 0 and f"-I{package}/include" in called and "-l:libcudnn.so.9" in called, "a header of Python's packages is found", said + called)


def empty_or_broken(m):
    m.program("convolutions_by_library", "echo '[doctest] test cases: 0 | 0 passed | 0 failed'")
    m.program("kernels", "echo '[doctest] test cases: 3 | 2 passed | 1 failed'; exit 1")
    (m.stubs / "losses").unlink()
    status, said, result = m.run("--only", "kernels,convolutions_by_library,losses")
    check(status == 1 and result["tests"]["convolutions_by_library"]["output"].startswith("none of its tests was run"), "a program without tests fails", said)
    check(not result["tests"]["kernels"]["passed"], "and so does one that fails", said)
    check("there is no losses" in result["tests"]["compile losses"]["output"] and "losses" not in result["tests"], "and one that does not compile", said)


def taken_along(m):
    status, said, _ = m.run("--only-compile", "--only", "kernels")
    check(status == 0 and "-arch=sm_90" in (m.stubs / "compiled").read_text(), "programs are built for sm_90", said)
    m.write(m.root / "build/cuda/programs/kernels", "#!/bin/sh\necho 'no kernel image is available for execution on the device'; exit 1\n")
    status, said, result = m.run("--only", "kernels")
    check(status == 0 and m.compiled() == 2 and result["tests"]["kernels"]["passed"], "one that does not start is compiled there", said)


with_machine(ten_minutes)
with_machine(stopped)
with_machine(killed)
with_machine(without_a_library, libraries=("cublasLt.h", "nccl.h"))
with_machine(empty_or_broken)
with_machine(taken_along)
sys.exit(finish_tests())
