#!/usr/bin/env python3
"""nvcc compiles rules of optimizers, losses and metrics for a device, and a program that trains on the CPU. Skipped where there is no
nvcc."""
import pathlib
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


def compiled(*arguments):
    done = subprocess.run([*arguments, "-std=c++20", f"-I{root}/include"], capture_output=True, text=True)
    return done.returncode == 0 and "warning" not in done.stdout + done.stderr, done.stdout + done.stderr


def lines_of(program):
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


with tempfile.TemporaryDirectory() as folder:
    of_nvcc = [nvcc, "--expt-relaxed-constexpr", "-arch=sm_80"]
    good, output = compiled(*of_nvcc, "-c", root / "tests/interop/host_device.cu", "-o", f"{folder}/kernels.o")
    report(good, "nvcc compiles rules, losses and metrics for a device, without a warning", output)
    source = root / "tests/interop/host_program.cu"
    good, output = compiled(*of_nvcc, "-O2", source, "-o", f"{folder}/by_nvcc")
    report(good, "nvcc compiles a program that trains on the CPU, without a warning", output)
    if good:
        plain, output = compiled("c++", "-x", "c++", "-O2", "-pthread", source, "-o", f"{folder}/by_cpp")
        report(plain and lines_of(f"{folder}/by_nvcc") == lines_of(f"{folder}/by_cpp"),
               "it has the weights of the same program from another compiler, bit for bit", output)
print(f"1..{cases}")
sys.exit(failures > 0)
