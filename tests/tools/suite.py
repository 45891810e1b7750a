"""Builds and runs the tests through Meson and counts them: see tests/run --help."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

CPUS = str(len(os.sched_getaffinity(0)))
# What ThreadSanitizer is for. Kernels know nothing of threads.
THREADS = re.compile(r"thread|parallel|prefetch|autotune|trainer")
KERNELS = re.compile(r"unit/cpu_")
# Twice as long with these, and with a way to go on after an error.
SLOW_TO_COMPILE = "alignment,null,object-size,pointer-overflow,vptr"
# Twice as long with this one of clang++'s. It finds calls through a pointer to another type of function: strata casts none.
SLOW_TO_COMPILE_BY_CLANG = SLOW_TO_COMPILE + ",function"
# These take 30 seconds and more, to compile and to run: no sanitizer sees them.
SLOW_WITH_ADDRESSES = re.compile(r"unit/cpu_(conv_pool|convolution_(groups|lanewise|winograd)|mixed_(residual|training))$")


def run(*command, **options):
    return subprocess.run(command, text=True, **options)


def can_sanitize(compiler, sanitizer):
    """Not every clang package brings the run-time libraries of its sanitizers."""
    with tempfile.TemporaryDirectory() as folder:
        command = [compiler, f"-fsanitize={sanitizer}", "-x", "c++", "-", "-o", f"{folder}/program"]
        return run(*command, input="int main() {}", capture_output=True).returncode == 0


def has_avx2():
    words = Path("/proc/cpuinfo").read_text().split()
    return "avx2" in words and "fma" in words


def what_failed(text):
    """Of TAP, the cases that failed, and what they say; of anything else, all."""
    lines = text.splitlines()
    if not any(line.startswith("not ok") for line in lines):
        return lines
    shown, shows = [], False
    for line in lines:
        if line.startswith(("ok ", "not ok ", "1..")):
            shows = line.startswith("not ok ")
        if shows:
            shown.append(line)
    return shown


class Build:
    """One build folder, and the tests to run there."""

    def __init__(self, compiler, sanitizer="", compilers=None, suite=None):
        self.compiler, self.sanitizer, self.suite = compiler, sanitizer, suite
        self.label = f"{compiler} {sanitizer}".strip()
        self.folder = Path("build/tests") / re.sub("[ ,]", "-", self.label)
        self.options = ["-Dtests=enabled", f"-Dexamples={'disabled' if sanitizer else 'enabled'}", "-Dbench=disabled"]
        self.options += ["-Dwerror=true", "-Ddebug=false", f"-Dcompilers={','.join(compilers or [compiler])}"]
        self.options += [f"-Doptimization={0 if sanitizer else 1}"]  # to compile takes three times as long otherwise
        if sanitizer:
            flags = ["-g1", "-gno-column-info"]
            if "address" in sanitizer:
                slow = SLOW_TO_COMPILE_BY_CLANG if "clang" in compiler else SLOW_TO_COMPILE
                flags += [f"-fno-sanitize={slow}", "-fno-sanitize-recover=all"]
                flags += ["-mavx2", "-mfma"] if has_avx2() else []
            self.options += [f"-Db_sanitize={sanitizer}", "-Db_lundef=false", f"-Dcpp_args={' '.join(flags)}"]
        self.passed, self.skipped, self.failures = Counter(), Counter(), []
        self.compiled, self.ran = [], []  # (seconds, what)
        self.told = {}  # by the tests that failed

    def configure(self):
        again = ["--reconfigure"] if (self.folder / "build.ninja").exists() else []
        os.environ["CXX"] = f"ccache {self.compiler}"
        setup = run("meson", "setup", *again, self.folder, *self.options, capture_output=True)
        if setup.returncode:
            print(setup.stdout + setup.stderr)
            self.failures.append(("setup", "meson setup"))
        return setup.returncode == 0

    def introspect(self, what):
        return json.loads((self.folder / f"meson-info/intro-{what}.json").read_text())

    def select(self, filters):
        tests = [t for t in self.introspect("tests") if not self.suite or f"strata:{self.suite}" in t["suite"]]
        if self.sanitizer == "thread":
            tests = [t for t in tests if self.has_threads(Path(f"tests/{t['name']}.cpp"))]
        elif self.sanitizer and not filters:
            tests = [t for t in tests if not SLOW_WITH_ADDRESSES.search(t["name"])]
        return [t for t in tests if not filters or any(f in t["name"] for f in filters)]

    @staticmethod
    def has_threads(source):
        """And none of gRPC's: that library is not built for the sanitizer, which sees races in it."""
        text = source.read_text() if source.exists() else ""
        return not KERNELS.search(str(source)) and THREADS.search(text) and not re.search("// needs:.*grpc", text)

    def build(self, tests):
        """Builds what the tests depend on; returns those that can run."""
        files = {t["id"]: [os.path.relpath(f, self.folder.resolve()) for f in t["filename"]] for t in self.introspect("targets")}
        targets = {t["name"]: [file for target in t["depends"] for file in files[target]] for t in tests}
        ninja = ["ninja", "-C", self.folder, "-j", CPUS]
        everything = sorted({file for needed in targets.values() for file in needed})
        before = self.times_of_ninja()
        succeeded = not everything or run(*ninja, "-k", "0", *everything).returncode == 0
        self.compiled = [time for time in self.times_of_ninja() if time not in before]
        if succeeded:
            return tests
        up_to_date = lambda file: "no work to do" in run(*ninja, "-n", file, capture_output=True).stdout
        broken = {file for file in everything if not up_to_date(file)}
        for t in tests:
            if files_of_it := broken.intersection(targets[t["name"]]):
                self.failures.append((t["name"], "does not compile"))
                self.told[t["name"]] = run(*ninja, *files_of_it, capture_output=True).stdout.splitlines()
        return [t for t in tests if not broken.intersection(targets[t["name"]])]

    def times_of_ninja(self):
        log = self.folder / ".ninja_log"
        lines = [line.split("\t") for line in log.read_text().splitlines()[1:]] if log.exists() else []
        return [((int(end) - int(begin)) / 1000, Path(file).name.removesuffix(".cpp.o")) for begin, end, _, file, _ in lines]

    def test(self, tests):
        command = ["meson", "test", "-C", self.folder, "--no-rebuild", "--quiet", "--print-errorlogs"]
        command += ["--num-processes", str(int(CPUS) + 1)]  # for there are always some that wait for a time-out
        if self.sanitizer:
            command += ["--timeout-multiplier", "3"]
            if run("setarch", "-R", "true", capture_output=True).returncode == 0:
                command = ["setarch", "-R", *command]  # clang 14's sanitizers cannot bear much randomness in addresses
        log = self.folder / "meson-logs/testlog.json"
        log.unlink(missing_ok=True)
        run(*command, *(t["name"] for t in tests))
        missing = {t["name"] for t in tests}
        for line in log.read_text().splitlines() if log.exists() else []:
            result = json.loads(line)
            name = result["name"].split(" / ")[-1]
            missing.discard(name)
            self.ran.append((result["duration"], name))
            self.count(name, result)
        self.failures += [(name, "did not run") for name in sorted(missing)]

    def count(self, name, result):
        """A test that prints TAP counts its cases; any other is one test."""
        kind = name.split("/")[0]
        cases = re.findall(r"^(not ok|ok)\b[ \d]*(?:- )?([^#\n]*)(# *skip)?", result["stdout"], re.M | re.I)
        failed = [(name, case) for verdict, case, _ in cases if verdict == "not ok"]
        skipped = sum(1 for verdict, _, skip in cases if verdict == "ok" and skip)
        passed = len(cases) - len(failed) - skipped
        if result["result"] == "OK":
            passed = passed or 1
        elif result["result"] == "SKIP" and "1.." not in result["stdout"]:
            failed = [(name, "prints no results; does it bring a main function of its own?")]
        elif result["result"] != "SKIP" and not failed:
            failed = [(name, f"{result['result']}, exit code {result['returncode']}")]
        if failed:
            self.told[name] = what_failed(result["stdout"]) + result.get("stderr", "").splitlines()
        self.passed[kind] += passed
        self.skipped[kind] += skipped
        self.failures += failed

    def run(self, filters):
        started = time.monotonic()
        if not self.configure():
            return
        tests = self.select(filters)
        if tests:
            print(f"{self.label}: {len(tests)} of Meson's tests, in {self.folder}")
            tests = self.build(tests)
        if tests:
            self.test(tests)
            print(f"{self.label}: {time.monotonic() - started:.0f} s")

    def report_slowest(self):
        for what, times in (("compiled", self.compiled), ("run", self.ran)):
            slowest = [f"{name} {seconds:.0f}" for seconds, name in sorted(times, reverse=True)[:10] if seconds >= 1]
            if slowest:
                print(f"longest {what} ({self.label}), in seconds: " + ", ".join(slowest))

    def report_what_failed(self):
        for name, lines in self.told.items():
            print(f"---- {name} ({self.label}) says:")
            print("\n".join(lines if len(lines) <= 60 else [*lines[:20], "[...]", *lines[-39:]]))

    def report(self):
        failed = Counter(name.split("/")[0] for name, _ in self.failures)
        for kind in sorted(self.passed | self.skipped | failed):
            parts = [f"{self.passed[kind]} ok", f"{failed[kind]} not ok", f"{self.skipped[kind]} skipped"]
            print(f"{kind} ({self.label}): " + ", ".join(part for part in parts if not part.startswith("0 ")))


def builds(arguments):
    gxx, clang = os.environ.get("GXX", "g++"), "clang++"

    def sanitized(sanitizer, **more):
        default = clang if can_sanitize(clang, sanitizer) else gxx  # clang++ takes half the time of g++
        return Build(arguments.compiler or default, sanitizer, **more)

    if arguments.sanitize:
        return [sanitized(arguments.sanitize)]
    if arguments.compiler:
        return [Build(arguments.compiler)]
    everything = [Build(gxx, compilers=[gxx, clang])]
    if not arguments.filters:
        everything += [sanitized("address,undefined", suite="unit"), sanitized("thread", suite="unit")]
    return everything


def main():
    sys.stdout.reconfigure(line_buffering=True)
    os.environ["CCACHE_DEPEND"] = "1"  # a sixth faster where nothing is cached yet
    parser = argparse.ArgumentParser()
    parser.add_argument("--sanitize")
    parser.add_argument("--compiler")
    parser.add_argument("filters", nargs="*")
    arguments = parser.parse_args()

    done = builds(arguments)
    for build in done:
        build.run(arguments.filters)
    for build in done:
        build.report_slowest()
    for build in done:
        build.report_what_failed()
    for build in done:
        build.report()
    for build in done:
        for name, what in build.failures:
            print(f"FAILED {name} ({build.label}): {what}")
    passed, failed = sum(b.passed.total() for b in done), sum(len(b.failures) for b in done)
    if passed + failed == 0:
        print("No test has such a name." if arguments.filters else "There are no tests.")
    print(f"{passed} passed, {failed} failed")
    return failed > 0 or passed == 0


sys.exit(main())
