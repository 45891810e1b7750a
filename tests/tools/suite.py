"""Builds, runs and counts the tests of Meson: see tests/run --help."""
import argparse
import os
import resource
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from build import CPUS, Build, can_sanitize
from schedule import Schedule

TIMES = Path("build/tests/times")
# The tests of a run without arguments: they show in ten minutes on two cores that the library works with the compiler at hand.
FOR_PEOPLE = ["unit", "static", "must_fail", "snippets/first_pages", "examples/all", "examples/quickstart", "examples/two_files"]
FOR_PEOPLE += ["distributed/test_multi_worker", "distributed/test_launch"]
TOO_LONG_FOR_PEOPLE = ["must_fail/twins", "unit/cpu_conv_pool", "unit/cpu_convolution_winograd", "unit/cpu_padding"]
# The kinds that a full run builds with clang++, in two thirds of g++'s time; g++ then only compiles examples. These come first, because
# tests of processes wait for time to pass.
OF_CLANG = ["distributed", "interop", "examples", "reference"]


def builds(arguments):
    gxx, clang = os.environ.get("GXX", "g++"), "clang++"

    def sanitized(sanitizer, **more):
        default = clang if can_sanitize(clang, sanitizer) else gxx  # clang++ takes half the time of g++
        return Build(arguments.compiler or default, sanitizer, lines=bool(arguments.sanitize), **more)

    if arguments.sanitize:
        return [sanitized(arguments.sanitize)]
    if not arguments.all and not arguments.filters:
        return [Build(arguments.compiler or gxx, kinds=FOR_PEOPLE, but=TOO_LONG_FOR_PEOPLE, distributes=False)]
    if arguments.compiler:
        return [Build(arguments.compiler)]
    newest = os.environ.get("NEWEST_CLANG", "")
    if arguments.filters:
        everything = [Build(gxx, compilers=[gxx, clang], newest=newest)]
    else:
        everything = [Build(clang, compilers=[clang, gxx], newest=newest, kinds=OF_CLANG)]
        everything += [Build(gxx, compilers=[gxx, clang], newest=newest, but=OF_CLANG, sanitizers_follow=True)]
        everything += [sanitized("address,undefined", kinds=["unit", "fuzz"]), sanitized("thread", kinds=["unit"])]
    if any(words.startswith("fuzz") for words in arguments.filters):  # only that build has fuzz targets
        everything += [sanitized("address,undefined", kinds=["fuzz"])]
    return everything


class Report:
    def __init__(self):
        self.passed, self.skipped, self.failed = Counter(), Counter(), Counter()  # (kind, label) -> cases
        self.failures = []  # (test, what)
        self.told = {}  # test -> lines
        self.ran = []  # (processor seconds, test)

    def add(self, test, outcome):
        what = outcome.failures if outcome else ["does not compile"]
        row = test.kind, test.build.label
        self.failures += [(test, w) for w in what]
        self.failed[row] += len(what)
        if outcome:
            self.passed[row] += outcome.passed
            self.skipped[row] += outcome.skipped
            self.ran.append((outcome.computed, test))
        if what:
            self.told[test] = outcome.what_it_says() if outcome else test.build.why_unbuilt(test)
        verdict = "NOT OK" if what else "ok" if outcome.passed else "skipped"
        print(f"{verdict:7} {outcome.seconds if outcome else 0:6.1f} s  {test.name} ({test.build.label})")

    def print_seconds(self, done):
        """Prints the processor time per kind of test. TIMES has a line for each file and each test. Linking and Meson are not counted."""
        compiled, ran, lines = Counter(), Counter(), []
        for build in done:
            for file, seconds in build.compiled.items():
                program = file.split(".p/")[0].removeprefix("tests/")
                row = program.split("/")[0].split("_")[0], build.label
                compiled[row] += seconds
                lines.append((seconds, f"compile {program} {Path(file).name.split('.')[0]} ({build.label})"))
        for seconds, test in self.ran:
            ran[test.kind, test.build.label] += seconds
            lines.append((seconds, f"run {test.name} ({test.build.label})"))
        lines.sort(reverse=True)
        TIMES.write_text("".join(f"{seconds:8.2f} {what}\n" for seconds, what in lines))
        print(f"{f'seconds, see {TIMES}':34} compiled      run")
        for row in sorted(compiled | ran, key=lambda row: -compiled[row] - ran[row]):
            print(f"  {f'{row[0]} ({row[1]})':32} {compiled[row]:8.0f} {ran[row]:8.0f}")
        print("longest: " + ", ".join(f"{what} {seconds:.0f}" for seconds, what in lines[:20]))

    def print_failures(self):
        for test, lines in self.told.items():
            print(f"---- {test.name} ({test.build.label}) says:")
            print("\n".join(lines if len(lines) <= 60 else [*lines[:20], "[...]", *lines[-39:]]))

    def print_counts(self):
        for row in sorted(self.passed | self.skipped | self.failed):
            parts = [f"{self.passed[row]} ok", f"{self.failed[row]} not ok", f"{self.skipped[row]} skipped"]
            print(f"{row[0]} ({row[1]}): " + ", ".join(part for part in parts if not part.startswith("0 ")))
        for test, what in self.failures:
            print(f"FAILED {test.name} ({test.build.label}): {what}")
        passed, failed, skipped = self.passed.total(), self.failed.total(), self.skipped.total()
        print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
        return failed > 0 or passed == 0


def main():
    sys.stdout.reconfigure(line_buffering=True)
    os.environ["CCACHE_DEPEND"] = "1"  # a sixth faster where nothing is cached yet
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--sanitize")
    parser.add_argument("--compiler")
    parser.add_argument("filters", nargs="*")
    arguments = parser.parse_args()

    began = time.monotonic()
    done = builds(arguments)
    with ThreadPoolExecutor(CPUS) as pool:
        for wrong in pool.map(Build.configure, done):
            if wrong:
                return f"{wrong}\nMeson cannot configure the tests."
    for build in done:
        build.select(arguments.filters)
        print(f"{build.label}: {len(build.tests)} of Meson's tests, in {build.folder}")
    for words in arguments.filters:
        if not any(words in test.name for build in done for test in build.tests):
            return f"No test has \"{words}\" in its name: tests/run --help lists the kinds; a name is that of a file, as in unit/dense."
    if not any(build.tests for build in done):
        return "There are no tests."

    report = Report()
    for test, outcome in Schedule(done).run():
        report.add(test, outcome)
    report.print_seconds(done)
    report.print_failures()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{time.monotonic() - began:.0f} s on the clock, {used.ru_utime + used.ru_stime:.0f} s of {CPUS} processors")
    return report.print_counts()


sys.exit(main())
