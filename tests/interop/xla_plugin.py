"""Plugins from PyPI: compares modules on the one for CPUs with the reference, and compiles for devices that are absent."""
import os
import pathlib
import subprocess
import sys

from packages import PROGRAMS, QUICK_TO_COMPILE, ROOT, check, finish_tests, go_on_with, lacks, leave_out_all, need_packages


def cpu_plugin():
    """The path of the plugin for CPUs. If its package cannot be installed, the test is skipped."""
    need_packages(xla_plugins="xla-cpu-pjrt==0.0.1")
    import xla_plugins
    return pathlib.Path(next(iter(xla_plugins.__path__))) / "xla_cpu_pjrt/xla_cpu_pjrt.so"


def run_comparisons(program, count):
    """Makes a check of each line that the program prints."""
    environment = {"STRATA_XLA_PLUGIN": str(cpu_plugin()), "XLA_FLAGS": QUICK_TO_COMPILE, "TF_CPP_MIN_LOG_LEVEL": "3"}
    run = subprocess.run([PROGRAMS / program], capture_output=True, text=True, env=os.environ | environment)
    lines = run.stdout.splitlines()
    for line in lines:
        check(line.startswith("good "), line.partition(" ")[2], line)
    check(run.returncode == 0 and len(lines) == count, f"the program ends, after {len(lines)} comparisons", run.stderr)
    sys.exit(finish_tests())


def need_large_packages(test, **packages):
    """Packages of hundreds of megabytes: with --install, they are fetched into build/, once. Without it, they are used if they are there,
    otherwise the test is skipped."""
    if "--install" in sys.argv:
        need_packages(**packages)
    python = ROOT / "build" / "-".join(["python", *packages]) / "bin/python"
    if lacks(packages) and python.exists() and "STRATA_TRIED" not in os.environ:
        go_on_with(python, "STRATA_TRIED")
    if lacks(packages):
        leave_out_all(f"there is no {', '.join(packages.values())}: tests/interop/{test} --install fetches it")


def compile_ahead(platform, where, name, devices, networks, environment):
    """Compiles the training steps of networks, for one device and for all devices."""
    for network in networks:
        run = subprocess.run([PROGRAMS / "interop_xla_ahead", platform, where, network], capture_output=True, text=True, env=os.environ | environment)
        lines = [line.split() for line in run.stdout.splitlines()]
        compiled = [line[:2] for line in lines] == [[network, "1"], [network, str(devices)]]
        check(run.returncode == 0 and compiled, f"{name}: {network} compiles", run.stdout + run.stderr)
        for network, replicas, size, flops, accessed, estimate, seconds in lines:
            cost = f", {float(flops):.3g} operations, {float(accessed):.3g} bytes accessed, {float(estimate):.2g} s" if platform == "tpu" else ""
            print(f"# {name} {network} x {replicas}: {int(size):,} bytes{cost}; compiled in {seconds} processor seconds")
            check(int(size) > 10_000 and (platform == "cuda" or float(flops) > 1e5), f"{name}: {network} on {replicas} has an executable" + " and a cost" * (platform == "tpu"), f"{size} {flops}")
