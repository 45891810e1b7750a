"""Common parts of the tests of this folder: checks, and the Python packages that strata is compared with."""
import fcntl
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(os.environ.get("STRATA_PROGRAMS", ""))
# XLA_FLAGS where modules run once or a few times: compiling takes nearly all the time.
QUICK_TO_COMPILE = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
results = []


def check(passed, what, why=""):
    """Prints a line of TAP."""
    results.append(bool(passed))
    print(f"{'ok' if passed else 'not ok'} {len(results)} - {what}", flush=True)
    if why and not passed:
        print(why, file=sys.stderr)


def leave_out(what, why):
    results.append(True)
    print(f"ok {len(results)} - {what} # SKIP {why}", flush=True)


def leave_out_all(why):
    print(f"1..0 # SKIP {why}".replace("\n", " "))
    sys.exit()


def need_nvcc():
    """The path of nvcc; without it, the whole test is skipped."""
    return shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin") or leave_out_all("there is no nvcc")


def finish_tests():
    """Prints the TAP plan; returns the exit status."""
    print(f"1..{len(results)}")
    return not all(results)


def lacks(modules):
    return [m for m in modules if not importlib.util.find_spec(m)]


def go_on_with(python, mark):
    """Restarts this test with another interpreter."""
    os.execve(python, [str(python), *sys.argv], os.environ | {mark: "1"})


def need_packages(**packages):
    """need_packages(PIL="pillow"): modules, and the names of their packages. If this interpreter lacks one, they are installed into a
    virtual environment in build/, once, which restarts the test; if that is impossible, the test is skipped."""
    if not lacks(packages):
        return
    if "STRATA_INSTALLED" in os.environ:
        raise ImportError(f"{', '.join(lacks(packages))}: installed, but not there")
    folder = ROOT / "build" / "-".join(["python", *(m + p.partition("==")[2] for m, p in packages.items())])
    python = folder / "bin/python"
    folder.parent.mkdir(exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another test may be installing the same
        if not (folder / "complete").exists():
            try:
                venv.create(folder, with_pip=True, clear=True)
                install = [python, "-m", "pip", "install", "--quiet", *packages.values()]
                subprocess.run(install, check=True, capture_output=True, text=True)
            except (OSError, subprocess.CalledProcessError) as e:
                leave_out_all(f"{', '.join(packages.values())} cannot be installed: {getattr(e, 'stderr', '') or e}")
            (folder / "complete").touch()
    go_on_with(python, "STRATA_INSTALLED")


def need_tensorflow():
    """TensorFlow of this interpreter, of the one that $STRATA_TENSORFLOW names, or of build/peers-keras, which the benchmarks make.
    Otherwise the test is skipped: 600 MB are too much for it."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    if not lacks(["tensorflow"]):
        return
    python = pathlib.Path(os.environ.get("STRATA_TENSORFLOW", ROOT / "build/peers-keras/bin/python"))
    if python.exists() and "STRATA_TENSORFLOW_TRIED" not in os.environ:
        go_on_with(python, "STRATA_TENSORFLOW_TRIED")
    leave_out_all("there is no TensorFlow")
