"""The CPU plugin of PyPI, and programs that compare modules on it with the reference."""
import os
import pathlib
import subprocess
import sys

from packages import PROGRAMS, check, finish_tests, need_packages

# Modules run once or a few times: compiling takes nearly all the time.
QUICK_TO_COMPILE = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"


def cpu_plugin():
    """Its path. Where the package cannot be installed, the test is left out."""
    need_packages(xla_plugins="xla-cpu-pjrt==0.0.1")
    import xla_plugins
    return pathlib.Path(next(iter(xla_plugins.__path__))) / "xla_cpu_pjrt/xla_cpu_pjrt.so"


def run_comparisons(program, at_least):
    """A check for each line that the program prints."""
    environment = {"STRATA_XLA_PLUGIN": str(cpu_plugin()), "XLA_FLAGS": QUICK_TO_COMPILE, "TF_CPP_MIN_LOG_LEVEL": "3"}
    run = subprocess.run([PROGRAMS / program], capture_output=True, text=True, env=os.environ | environment)
    lines = run.stdout.splitlines()
    for line in lines:
        check(line.startswith("good "), line.partition(" ")[2], line)
    check(run.returncode == 0 and len(lines) >= at_least, f"the program ends, after {len(lines)} comparisons", run.stderr)
    sys.exit(finish_tests())
