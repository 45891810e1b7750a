#!/usr/bin/env python3
"""nvcc compiles whole training programs for sm_80, sm_90 and sm_100, without a warning, and no kernel spills registers. Without a
device the program says so in one line. Projects of Meson and CMake build a .cu file. Skipped where there is no nvcc."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "interop"))
from packages import ROOT, check, finish_tests, need_nvcc  # noqa: E402

nvcc = need_nvcc()


architectures = [f"-gencode=arch=compute_{n},code=sm_{n}" for n in (80, 90, 100)]
with tempfile.TemporaryDirectory() as folder:
    program = f"{folder}/trains"
    command = [nvcc, "-std=c++20", "--expt-relaxed-constexpr", *architectures, "-Xptxas=-v", f"-I{ROOT}/include",
               ROOT / "tests/cuda/trains.cu", "-o", program]
    done = subprocess.run(command, capture_output=True, text=True)
    output = done.stdout + done.stderr
    check(done.returncode == 0 and "warning" not in output, "nvcc compiles training programs for sm_80, sm_90 and sm_100", output)
    spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", output)
    check(len(spills) > 30 and all(each == ("0", "0") for each in spills), f"none of {len(spills)} kernels spills registers", output)
    if done.returncode == 0:
        ran = subprocess.run([program], capture_output=True, text=True)
        if ran.stderr.startswith("gpu(0): this machine has no CUDA device"):
            check(ran.returncode == 1 and ran.stdout == "", "without a device the program says so in one line", ran.stdout + ran.stderr)
        else:
            check(ran.returncode == 0, "the program trains on the device of this machine", ran.stdout + ran.stderr)

def outcome(*commands, folder):
    """The output of the last command, or None if one of them fails, with what it said."""
    environment = os.environ | {"PATH": f"{pathlib.Path(nvcc).parent}:{os.environ['PATH']}", "CXX": "g++"}
    for command in commands:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            return None, done.stdout + done.stderr
    return done.stdout, done.stdout


with tempfile.TemporaryDirectory() as folder:
    project = shutil.copytree(ROOT / "tests/cuda/consumer", f"{folder}/consumer")
    (pathlib.Path(project) / "subprojects").mkdir()
    (pathlib.Path(project) / "subprojects/strata").symlink_to(ROOT)
    said, output = outcome(["meson", "setup", "by_meson"], ["ninja", "-C", "by_meson"], ["by_meson/trains"], folder=project)
    check(said is not None and (said == "" or said.startswith("gpu(0): this machine has no CUDA device")), "a subproject of Meson", output)
    said, output = outcome(["meson", "setup", "installing", ROOT, f"--prefix={folder}/prefix"], ["meson", "install", "-C", "installing"],
                           ["cmake", "-S", ".", "-B", "by_cmake", f"-DCMAKE_PREFIX_PATH={folder}/prefix"], ["cmake", "--build", "by_cmake"],
                           ["by_cmake/trains"], folder=project)
    check(said is not None and (said == "" or said.startswith("gpu(0): this machine has no CUDA device")), "find_package of CMake", output)
sys.exit(finish_tests())
