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

root = pathlib.Path(__file__).resolve().parents[2]
nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
if not nvcc:
    print("1..0 # skip there is no nvcc")
    sys.exit()
failures = 0
cases = 0


def report(good, name, details=""):
    global failures, cases
    cases += 1
    failures += not good
    print(f"{'ok' if good else 'not ok'} {cases} - {name}")
    for line in details.splitlines() if not good else []:
        print("#", line)


architectures = [f"-gencode=arch=compute_{n},code=sm_{n}" for n in (80, 90, 100)]
with tempfile.TemporaryDirectory() as folder:
    program = f"{folder}/trains"
    command = [nvcc, "-std=c++20", "--expt-relaxed-constexpr", *architectures, "-Xptxas=-v", f"-I{root}/include",
               root / "tests/cuda/trains.cu", "-o", program]
    done = subprocess.run(command, capture_output=True, text=True)
    output = done.stdout + done.stderr
    report(done.returncode == 0 and "warning" not in output, "nvcc compiles training programs for sm_80, sm_90 and sm_100", output)
    spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", output)
    report(len(spills) > 30 and all(each == ("0", "0") for each in spills), f"none of {len(spills)} kernels spills registers", output)
    if done.returncode == 0:
        ran = subprocess.run([program], capture_output=True, text=True)
        if ran.stderr.startswith("gpu(0): this machine has no CUDA device"):
            report(ran.returncode == 1 and ran.stdout == "", "without a device the program says so in one line", ran.stdout + ran.stderr)
        else:
            report(ran.returncode == 0, "the program trains on the device of this machine", ran.stdout + ran.stderr)

def outcome(*commands, folder):
    """The output of the last command, or None if one of them fails, with what it said."""
    environment = os.environ | {"PATH": f"{pathlib.Path(nvcc).parent}:{os.environ['PATH']}", "CXX": "g++"}
    for command in commands:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            return None, done.stdout + done.stderr
    return done.stdout, done.stdout


with tempfile.TemporaryDirectory() as folder:
    project = shutil.copytree(root / "tests/cuda/consumer", f"{folder}/consumer")
    (pathlib.Path(project) / "subprojects").mkdir()
    (pathlib.Path(project) / "subprojects/strata").symlink_to(root)
    said, output = outcome(["meson", "setup", "by_meson"], ["ninja", "-C", "by_meson"], ["by_meson/trains"], folder=project)
    report(said is not None and (said == "" or said.startswith("gpu(0): this machine has no CUDA device")), "a subproject of Meson", output)
    said, output = outcome(["meson", "setup", "installing", root, f"--prefix={folder}/prefix"], ["meson", "install", "-C", "installing"],
                           ["cmake", "-S", ".", "-B", "by_cmake", f"-DCMAKE_PREFIX_PATH={folder}/prefix"], ["cmake", "--build", "by_cmake"],
                           ["by_cmake/trains"], folder=project)
    report(said is not None and (said == "" or said.startswith("gpu(0): this machine has no CUDA device")), "find_package of CMake", output)
print(f"1..{cases}")
sys.exit(failures > 0)
