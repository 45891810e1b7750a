#!/usr/bin/env python3
"""nvcc compiles whole training programs for sm_80, sm_90 and sm_100, without a warning, and no kernel spills registers. Without a
device, the program prints one line. The same with cuBLASLt and cuDNN if they are installed. Projects of Meson and CMake build a .cu
file. Skipped without nvcc."""
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


def check_program(source, architectures, arguments, least_kernels, what):
    """Compiles a program, checks the output of nvcc and ptxas, and runs it."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/program"
        command = [nvcc, "-std=c++20", "--expt-relaxed-constexpr", *[f"-gencode=arch=compute_{ptx},code=[{code}]" for ptx, code in architectures.items()],
                   "-Xptxas=-v", f"-I{ROOT}/include", ROOT / "tests/cuda" / source, "-o", program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        output = done.stdout + done.stderr
        check(done.returncode == 0 and "warning" not in output, f"nvcc compiles {what}", output)
        spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", output)
        check(len(spills) > least_kernels and all(each == ("0", "0") for each in spills), f"none of {len(spills)} kernels spills registers",
              output)
        if done.returncode == 0:
            ran = subprocess.run([program], capture_output=True, text=True)
            if ran.stderr.startswith("gpu(0): this machine has no CUDA device"):
                check(ran.returncode == 1 and ran.stdout == "", "without a device the program prints one line", ran.stdout + ran.stderr)
            else:
                check(ran.returncode == 0, "the program trains on the device of this machine", ran.stdout + ran.stderr)


# The code of the headers is the same from compute_80 on, so sm_100 is compiled from the PTX of compute_90, which saves 40 s.
check_program("trains.cu", {80: "sm_80", 90: "sm_90,sm_100"}, [], 30, "training programs for sm_80, sm_90 and sm_100")
for tests, architecture, least_kernels in (("kernels", "sm_90", 250), ("losses", "sm_100", 200)):
    with tempfile.TemporaryDirectory() as folder:
        command = [nvcc, "-std=c++20", "--expt-relaxed-constexpr", f"-arch={architecture}", "-ptx", f"-I{ROOT}/include", f"-I{ROOT}/tests", "-diag-suppress=186",
                   "-x", "cu", ROOT / f"tests/cuda/emulated/{tests}.cpp", "-o", f"{folder}/{tests}.ptx"]
        done = subprocess.run(command, capture_output=True, text=True)
        check(done.returncode == 0, f"nvcc compiles the tests of all {tests}", done.stdout + done.stderr)
        # nvcc compiles code that needs the address of an object of the host to a trap, without a warning.
        entries = pathlib.Path(f"{folder}/{tests}.ptx").read_text().split(".entry ")[1:] if done.returncode == 0 else []
        traps = [entry.partition("(")[0] for entry in entries if re.search(r"^\s*trap;", entry, re.MULTILINE)]
        check(len(entries) > least_kernels and not traps, f"none of {len(entries)} kernels stops with a trap", "\n".join(traps))
done = subprocess.run([nvcc, "-std=c++20", "--expt-relaxed-constexpr", "-arch=sm_90", "-ptx", f"-I{ROOT}/include", ROOT / "tests/cuda/steps.cu",
                       "-o", os.devnull], capture_output=True, text=True)
check(done.returncode == 0, "nvcc compiles train_step on the CPU", done.stdout + done.stderr)
headers = [pathlib.Path(nvcc).resolve().parents[1] / "include", pathlib.Path("/usr/local/include"), pathlib.Path("/usr/include")]
if all(any((folder / header).is_file() for folder in headers) for header in ("cublasLt.h", "cudnn_graph.h")):
    check_program("large.cu", {90: "sm_90"}, ["-DSTRATA_CUBLASLT", "-DSTRATA_CUDNN", "-lcublasLt", "-lcudnn"], 10,
                  "a training program with cuBLASLt and cuDNN")
    with tempfile.TemporaryDirectory() as folder:
        command = [nvcc, "-std=c++20", "--expt-relaxed-constexpr", "-DSTRATA_CUDNN", "-arch=sm_90", f"-I{ROOT}/include",
                   ROOT / "tests/cuda/plans.cu", "-o", f"{folder}/plans", "-lcudnn"]
        done = subprocess.run(command, capture_output=True, text=True)
        ran = subprocess.run([f"{folder}/plans"], capture_output=True, text=True) if done.returncode == 0 else done
        check(ran.returncode == 0, "cuDNN has plans for every kind of convolution that it is given, for an H100", ran.stdout + ran.stderr)


# The phrase in CUDA's documentation of errors after which a process cannot use a device any more.
toolkit = pathlib.Path(nvcc).resolve().parents[1] / "include/driver_types.h"
described = re.findall(r"/\*\*((?:(?!\*/).)*)\*/\s*(cudaError\w+)\s*=", toolkit.read_text(), re.DOTALL)
losses = {name for comment, name in described if "relaunched" in comment}
known = re.findall(r"case (cudaError\w+):", (ROOT / "include/strata/cuda/machine/hardware.cuh").read_text())
check(len(losses) > 10 and losses <= set(known), f"each of {len(losses)} errors that end the use of a device is one", str(losses - set(known)))

with tempfile.TemporaryDirectory() as folder:
    include = "#include <strata/cuda/machine/machine.hpp>\n"
    pathlib.Path(f"{folder}/a.cu").write_text(include)
    pathlib.Path(f"{folder}/b.cpp").write_text(include + "int main() {}\n")
    compiled = [subprocess.run([compiler, "-std=c++20", f"-I{ROOT}/include", *more, "-c", source, "-o", f"{folder}/{source}.o"], cwd=folder).returncode
                for compiler, source, more in ((nvcc, "a.cu", []), ("g++", "b.cpp", [f"-I{ROOT}/include/strata_emulated_cuda"]))]
    done = subprocess.run([nvcc, "a.cu.o", "b.cpp.o", "-o", "mixed", "-lboost_context"], cwd=folder, capture_output=True, text=True)
    check(compiled == [0, 0] and done.returncode != 0 and "a_program_mixes_files_of_nvcc_and_of_other_compilers" in done.stderr,
          "files of nvcc and of another compiler do not link", done.stderr)

def outcome(*commands, folder):
    """The output of the last command, or None if one of them fails; and the output of all."""
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
