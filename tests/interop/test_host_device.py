#!/usr/bin/env python3
"""nvcc compiles rules of optimizers, losses and metrics for a device without a warning. Skipped where there is no nvcc."""
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
with tempfile.TemporaryDirectory() as folder:
    command = [nvcc, "-std=c++20", "--expt-relaxed-constexpr", "-arch=sm_80", f"-I{root}/include", "-c",
               root / "tests/interop/host_device.cu", "-o", f"{folder}/kernels.o"]
    done = subprocess.run(command, capture_output=True, text=True)
output = done.stdout + done.stderr
accepted = done.returncode == 0 and "warning" not in output
print(f"1..1\n{'ok' if accepted else 'not ok'} 1 - nvcc compiles rules, losses and metrics for a device, without a warning")
print(output)
sys.exit(not accepted)
