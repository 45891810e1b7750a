#!/usr/bin/env python3
"""nvcc compiles rules of optimizers, losses and metrics for a device, and a program that trains on the CPU. Skipped without
nvcc."""
import subprocess
import sys
import tempfile

from packages import ROOT, check, finish_tests, need_nvcc

nvcc = need_nvcc()


def compiled(*arguments):
    done = subprocess.run([*arguments, "-std=c++20", f"-I{ROOT}/include"], capture_output=True, text=True)
    return done.returncode == 0 and "warning" not in done.stdout + done.stderr, done.stdout + done.stderr


def lines_of(program):
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


with tempfile.TemporaryDirectory() as folder:
    of_nvcc = [nvcc, "--expt-relaxed-constexpr", "-arch=sm_80"]
    good, output = compiled(*of_nvcc, "-c", ROOT / "tests/interop/host_device.cu", "-o", f"{folder}/kernels.o")
    check(good, "nvcc compiles rules, losses and metrics for a device, without a warning", output)
    source = ROOT / "tests/interop/host_program.cu"
    good, output = compiled(*of_nvcc, "-O2", source, "-o", f"{folder}/by_nvcc")
    check(good, "nvcc compiles a program that trains on the CPU, without a warning", output)
    if good:
        plain, output = compiled("c++", "-x", "c++", "-O2", "-pthread", source, "-o", f"{folder}/by_cpp")
        check(plain and lines_of(f"{folder}/by_nvcc") == lines_of(f"{folder}/by_cpp"),
              "it has the weights of the same program from another compiler, bit for bit", output)
sys.exit(finish_tests())
