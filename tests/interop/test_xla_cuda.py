#!/usr/bin/env python3
"""The CUDA plugin compiles training steps for GPUs that this machine does not have, from the descriptions of GPUs in its file.
With --install, it is first fetched into build/, with NVIDIA's assembler: 260 MB. Without the plugin, the test is skipped. With
--all, every network is compiled, which takes minutes of a core; otherwise only MLPs are."""
import os
import pathlib
import subprocess
import sys
import tempfile

from packages import PROGRAMS, check, finish_tests
from xla_plugin import compile_ahead, need_large_packages

need_large_packages("test_xla_cuda.py", jax_plugins="jax-cuda13-pjrt", nvidia="nvidia-cuda-nvcc")
import jax_plugins
import nvidia

packages = pathlib.Path(next(iter(jax_plugins.__path__))).parent
plugin = packages / "jax_plugins/xla_cuda13/xla_cuda_plugin.so"
toolkit = pathlib.Path(next(iter(nvidia.__path__))) / "cu13"
environment = {"STRATA_XLA_PLUGIN": str(plugin), "XLA_FLAGS": f"--xla_gpu_cuda_data_dir={toolkit}", "TF_CPP_MIN_LOG_LEVEL": "3"}


def description(gpu, of=plugin.read_bytes()):
    """The GpuTargetConfigProto of a GPU, as text."""
    end = of.index(f'device_description_str: "{gpu}"'.encode())
    return of[of.rindex(b"\ngpu_device_info {", 0, end) + 1:of.index(b"\n", end) + 1]


networks = ["mlp", "mlp-bf16"]
if "--all" in sys.argv:
    networks += ["cnn", "cnn-bf16", "words", "images", "resnet20", "mobilenet"]
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "gpu"
    for gpu in ["NVIDIA H100 80GB HBM3", "NVIDIA H200 141GB HBM3e"]:
        file.write_bytes(description(gpu))
        compile_ahead("cuda", str(file), gpu, 8, networks, environment)
    file.write_text("no description")
    refused = subprocess.run([PROGRAMS / "interop_xla_ahead", "cuda", file, "mlp"], capture_output=True, text=True, env=os.environ | environment)
    check(refused.returncode == 1 and "topology: the plugin xla_cuda_plugin.so reports (" in refused.stderr, "a wrong description is one error", refused.stderr)
sys.exit(finish_tests())
