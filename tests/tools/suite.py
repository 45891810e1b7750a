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
# What ThreadSanitizer is for, and kernels, which its build tries with the widest vectors.
THREADS_OR_KERNELS = re.compile(r"thread|parallel|prefetch|autotune|trainer|strata/(cpu|kernel|program|optimizers|strata\.hpp)|\"cpu_")
# A minute and a half each for AddressSanitizer's compiler; ThreadSanitizer's build has them as well.
SLOW_WITH_ADDRESSES = re.compile(r"unit/cpu_conv(_pool|olution_(groups|lanewise))$")
# g++ takes twice as long with these; clang++ does not.
SLOW_TO_COMPILE = "alignment,null,object-size,pointer-overflow,vptr"


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


class Build:
    """One build folder, and the tests to run there."""

    def __init__(self, compiler, sanitizer="", compilers=None, suite=None):
        self.compiler, self.sanitizer, self.suite = compiler, sanitizer, suite
        self.label = f"{compiler} {sanitizer}".strip()
        self.folder = Path("build/tests") / re.sub("[ ,]", "-", self.label)
        self.options = ["-Dtests=enabled", f"-Dexamples={'disabled' if sanitizer else 'enabled'}", "-Dbench=disabled"]
        self.options += ["-Dwerror=true", "-Doptimization=1", "-Ddebug=false", f"-Dcompilers={','.join(compilers or [compiler])}"]
        if sanitizer:
            flags = ["-g1"]  # and so that kernels are tested at three widths of vectors:
            if "clang" in compiler:
                flags += ["-march=native"]
            else:
                flags += [f"-fno-sanitize={SLOW_TO_COMPILE}", *(["-mavx2", "-mfma"] if has_avx2() else [])]
            self.options += [f"-Db_sanitize={sanitizer}", "-Db_lundef=false", f"-Dcpp_args={' '.join(flags)}"]
        self.passed, self.skipped, self.failures = Counter(), Counter(), []

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
            tests = [t for t in tests if self.worth_threads(Path(f"tests/{t['name']}.cpp"))]
        elif self.sanitizer and not filters:
            tests = [t for t in tests if not SLOW_WITH_ADDRESSES.search(t["name"])]
        return [t for t in tests if not filters or any(f in t["name"] for f in filters)]

    @staticmethod
    def worth_threads(source):
        """Has threads or kernels, and none of gRPC's threads: that library is not built for the sanitizer, which sees races in it."""
        text = source.read_text() if source.exists() else ""
        return THREADS_OR_KERNELS.search(text) and not re.search("// needs:.*grpc", text)

    def build(self, tests):
        """Builds what the tests depend on; returns those that can run."""
        files = {t["id"]: [os.path.relpath(f, self.folder.resolve()) for f in t["filename"]] for t in self.introspect("targets")}
        targets = {t["name"]: [file for target in t["depends"] for file in files[target]] for t in tests}
        ninja = ["ninja", "-C", self.folder, "-j", CPUS]
        everything = sorted({file for needed in targets.values() for file in needed})
        if not everything or run(*ninja, "-k", "0", *everything).returncode == 0:
            return tests
        up_to_date = lambda file: "no work to do" in run(*ninja, "-n", file, capture_output=True).stdout
        broken = {file for file in everything if not up_to_date(file)}
        self.failures += [(t["name"], "does not compile") for t in tests if broken.intersection(targets[t["name"]])]
        return [t for t in tests if not broken.intersection(targets[t["name"]])]

    def test(self, tests):
        command = ["meson", "test", "-C", self.folder, "--no-rebuild", "--quiet", "--print-errorlogs"]
        if self.sanitizer == "thread" and run("setarch", "-R", "true", capture_output=True).returncode == 0:
            command = ["setarch", "-R"] + command  # clang 14's ThreadSanitizer cannot bear much randomness in addresses
        if self.sanitizer:
            command += ["--timeout-multiplier", "3"]
        log = self.folder / "meson-logs/testlog.json"
        log.unlink(missing_ok=True)
        run(*command, *(t["name"] for t in tests))
        missing = {t["name"] for t in tests}
        for line in log.read_text().splitlines() if log.exists() else []:
            result = json.loads(line)
            name = result["name"].split(" / ")[-1]
            missing.discard(name)
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

    def report(self):
        failed = Counter(name.split("/")[0] for name, _ in self.failures)
        for kind in sorted(self.passed | self.skipped | failed):
            parts = [f"{self.passed[kind]} ok", f"{failed[kind]} not ok", f"{self.skipped[kind]} skipped"]
            print(f"{kind} ({self.label}): " + ", ".join(part for part in parts if not part.startswith("0 ")))


def builds(arguments):
    gxx, clang = os.environ.get("GXX", "g++"), "clang++"
    thread_compiler = clang if can_sanitize(clang, "thread") else gxx
    if arguments.sanitize:
        default = thread_compiler if arguments.sanitize == "thread" else gxx
        return [Build(arguments.compiler or default, arguments.sanitize)]
    if arguments.compiler:
        return [Build(arguments.compiler)]
    everything = [Build(gxx, compilers=[gxx, clang])]
    if not arguments.filters:
        everything += [Build(gxx, "address,undefined", suite="unit"), Build(thread_compiler, "thread", suite="unit")]
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
        for name, what in build.failures:
            print(f"FAILED {name} ({build.label}): {what}")
    for build in done:
        build.report()
    passed, failed = sum(b.passed.total() for b in done), sum(len(b.failures) for b in done)
    if passed + failed == 0:
        print("No test has such a name." if arguments.filters else "There are no tests.")
    print(f"{passed} passed, {failed} failed")
    return failed > 0 or passed == 0


sys.exit(main())
