"""Runs tests while others are still compiled, so that the processors are busy to the end.

Compilers have a low priority and use idle processors. Of the tests that run programs, those that wait (distributed, interop) start
first, since the others never leave processors idle. Tests that only compile use the rest."""
import os
import queue
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from build import CPUS, NICE

# The longest first; static and consumer are short, so they come last.
LONGEST_FIRST = ["distributed", "interop", "headers", "snippets", "targets", "warnings", "unit", "must_fail", "consumer", "tree", "reference"]
# A process group of its own, so that no process of a test that takes too long is left.
OWN_GROUP = {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}


class Outcome:
    def __init__(self, test, seconds, code, out, err, computed):
        """seconds: wall-clock time. computed: processor time of the test and all processes that it waited for."""
        self.test, self.seconds, self.code, self.out, self.err, self.computed = test, seconds, code, out, err, computed
        self.passed, self.skipped, self.failures = 0, 0, []  # numbers of cases; descriptions of failures
        if code is None:
            self.failures = [f"took more than {seconds:.0f} s"]
        elif test.prints_tap:
            self.count_cases()
        elif code == 77:
            self.skipped = 1
        elif code == 0:
            self.passed = 1
        if code not in (0, 77) and not self.failures:
            self.failures = [f"exit code {code}"]

    def count_cases(self):
        cases = re.findall(r"^(not ok|ok)\b[ \d]*(?:- )?([^#\n]*)(# *skip)?", self.out, re.M | re.I)
        plan = re.search(r"^1\.\.(\d+)", self.out, re.M)
        self.failures = [case for verdict, case, _ in cases if verdict == "not ok"]
        self.skipped = sum(1 for verdict, _, skip in cases if verdict == "ok" and skip)
        self.passed = len(cases) - len(self.failures) - self.skipped
        if plan and plan[1] == "0":
            self.skipped = 1 if "skip" in self.out.lower() else 0
        elif self.code == 0 and not plan:
            self.failures.append("prints no results; does it bring a main function of its own?")
        elif self.code == 0 and int(plan[1]) != len(cases):
            self.failures.append(f"announces {plan[1]} cases and shows {len(cases)}")

    def what_it_says(self):
        """The failed cases of TAP with their messages; of any other output, all of it."""
        lines = self.out.splitlines()
        if any(line.startswith("not ok") for line in lines):
            shown, shows = [], False
            for line in lines:
                if line.startswith(("ok ", "not ok ", "1..")):
                    shows = line.startswith("not ok ")
                if shows:
                    shown.append(line)
            lines = shown
        return lines + self.err.splitlines()


def can_fix_addresses():
    return subprocess.run(["setarch", "-R", "true"], capture_output=True).returncode == 0


def has_ended(process, timeout):
    """Waits at most `timeout` seconds for a process; its exit code is left for os.wait4."""
    descriptor = os.pidfd_open(process.pid)
    try:
        return bool(select.select([descriptor], [], [], timeout)[0])
    finally:
        os.close(descriptor)


def text_of(file):
    file.seek(0)
    return file.read().decode(errors="replace")


class Schedule:
    def __init__(self, builds):
        self.builds = builds
        self.left = [t for build in builds for t in build.tests]
        self.running, self.ended = [], queue.Queue()
        self.processes = set()
        self.fixed_addresses = ["setarch", "-R"] if can_fix_addresses() else []
        order = {kind: i for i, kind in enumerate(LONGEST_FIRST)}
        self.left.sort(key=lambda t: (not t.alone, order.get(t.kind, len(order))))

    def run(self):
        """Yields an Outcome for each test as it ends, and (test, None) for one that could not be built."""
        compiling = threading.Thread(target=self.compile, daemon=True)
        compiling.start()
        with ThreadPoolExecutor(2 * CPUS + 1) as pool:
            try:
                while self.left or self.running:
                    for build in self.builds:
                        build.look()
                    while test := self.next():
                        self.left.remove(test)
                        self.running.append(test)
                        pool.submit(self.run_one, test)
                    try:
                        outcome = self.ended.get(timeout=0.5)
                    except queue.Empty:
                        pass
                    else:
                        if isinstance(outcome, BaseException):
                            raise outcome
                        self.running.remove(outcome.test)
                        yield outcome.test, outcome
                    for test in [t for t in self.left if t.build.cannot_build(t)]:
                        test.build.look()
                        if test.unbuilt:
                            self.left.remove(test)
                            yield test, None
            finally:
                self.left.clear()
                for process in list(self.processes):
                    os.killpg(process.pid, signal.SIGKILL)
        compiling.join()

    def compile(self):
        try:
            for build in self.builds:
                build.compile()
        finally:
            for build in self.builds:  # an exception must not leave tests waiting without end
                build.finished = True

    def next(self):
        """The test to start now, or None."""
        compilers = [t for t in self.running if t.compiles]
        programs = [t for t in self.running if not t.compiles]
        built = all(build.finished for build in self.builds)
        # A single file can keep one of ninja's compilers busy long after the others have ended: one more runs beside them.
        may_compile = len(compilers) < (CPUS if built else 1)
        may_run = len(programs) <= CPUS and not any(t.alone for t in programs)  # one more, for some of them wait
        for test in self.left:
            if test.compiles and may_compile:
                return test
            if not test.compiles and may_run and not test.unbuilt:
                if not test.alone:
                    return test
                if not programs:
                    return test
                may_run = False  # until those that run have ended
        return None

    def run_one(self, test):
        try:
            self.ended.put(self.outcome(test))
        except BaseException as e:
            self.ended.put(e)

    def outcome(self, test):
        command, timeout = test.command, test.timeout
        if test.compiles:
            command, timeout = [*NICE, *command], 3 * timeout
        if test.build.sanitizer:
            # clang 14's sanitizers fail if addresses are too random
            command, timeout = [*self.fixed_addresses, *command], 3 * timeout
        environment = os.environ | {"MALLOC_PERTURB_": str(random.randint(1, 255))} | test.environment
        began = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(
                command, cwd=test.folder or test.build.folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, **OWN_GROUP)
            self.processes.add(process)
            in_time = has_ended(process, timeout)
            if not in_time:
                os.killpg(process.pid, signal.SIGKILL)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.processes.discard(process)
            said = [text_of(file) for file in (out, err)]
        code = process.returncode if in_time else None
        return Outcome(test, time.monotonic() - began, code, *said, used.ru_utime + used.ru_stime)
