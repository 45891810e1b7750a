"""A build folder of the tests: its options, its Meson tests, and the files that ninja has built so far."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import sources

CPUS = len(os.sched_getaffinity(0))
# Compilers have a lower priority than tests, some of which measure time.
NICE = ["nice", "-n", "15"]
# With these checks, or with recovery after an error, compiling takes twice as long.
SLOW_TO_COMPILE = "alignment,null,object-size,pointer-overflow,vptr"
# With this check of clang++, compiling takes twice as long. It finds calls through pointers to functions of another type, and strata
# casts none.
SLOW_TO_COMPILE_BY_CLANG = SLOW_TO_COMPILE + ",function"

# Saves a tenth of the time to compile: AddressSanitizer's checks of accesses become calls of its run-time library.
CALLS_INSTEAD_OF_CHECKS = ["-mllvm", "-asan-instrumentation-with-call-threshold=0"]
# g++ spends a tenth of its time in garbage collection. It begins at 1 GiB instead of 128 MiB.
COLLECT_LATE = ["--param=ggc-min-heapsize=1048576"]


def run(*command, **options):
    return subprocess.run(command, text=True, **options)


def can_sanitize(compiler, sanitizer):
    """Whether a compiler has the run-time libraries of a sanitizer; not every clang package does."""
    with tempfile.TemporaryDirectory() as folder:
        command = [compiler, f"-fsanitize={sanitizer}", "-x", "c++", "-", "-o", f"{folder}/program"]
        return run(*command, input="int main() {}", capture_output=True).returncode == 0


def has_avx2():
    words = Path("/proc/cpuinfo").read_text().split()
    return "avx2" in words and "fma" in words


class Test:
    """A test of Meson. It can run as soon as `unbuilt` is empty."""

    def __init__(self, build, introspected, files):
        self.build, self.name, self.command = build, introspected["name"], introspected["cmd"]
        self.kind = self.name.split("/")[0]
        self.prints_tap = introspected["protocol"] == "tap"
        self.alone = not introspected["is_parallel"]
        self.timeout, self.folder, self.environment = introspected["timeout"], introspected["workdir"], introspected["env"]
        self.files = frozenset(files)
        self.unbuilt = set(files)

    @property
    def compiles(self):
        """Whether the test itself compiles, instead of running a program that was built."""
        return not self.files and not self.command[-1].endswith(".py")

    @property
    def waits(self):
        """Whether the test mostly waits, for processes or for time to pass, and leaves the processors to others."""
        return self.kind in ("distributed", "interop")


class Build:
    def __init__(self, compiler, sanitizer="", compilers=None, newest="", kinds=None, but=(), lines=True, sanitizers_follow=False, distributes=True):
        """kinds: prefixes of the names of its tests, None for all; `but`: prefixes that are excluded. lines: whether a sanitizer's
        report has lines besides functions, which takes a third longer to compile. sanitizers_follow: another build runs all
        of its tests under AddressSanitizer. distributes: False excludes the unit tests of communication between processes."""
        self.compiler, self.sanitizer, self.sanitizers_follow = compiler, sanitizer, sanitizers_follow
        self.kinds, self.but, self.distributes = kinds, but, distributes
        self.label = f"{compiler} {sanitizer}".strip()
        self.folder = Path("build/tests") / re.sub("[ ,]", "-", self.label)
        self.options = ["-Dtests=enabled", f"-Dexamples={'disabled' if sanitizer else 'enabled'}", "-Dbench=disabled"]
        self.options += ["-Dwerror=true", "-Ddebug=false", f"-Dcompilers={','.join(compilers or [compiler])}", f"-Dnewest={newest}"]
        self.options += [f"-Doptimization={0 if sanitizer else 1}"]  # otherwise compiling takes three times as long
        flags = []
        if sanitizer:
            flags += ["-g1", "-gno-column-info"] if lines else []
            if "address" in sanitizer:
                slow = SLOW_TO_COMPILE_BY_CLANG if "clang" in compiler else SLOW_TO_COMPILE
                flags += [f"-fno-sanitize={slow}", "-fno-sanitize-recover=all"]
                flags += CALLS_INSTEAD_OF_CHECKS if "clang" in compiler else []
            flags += ["-mavx2", "-mfma"] if has_avx2() else []
            self.options += [f"-Db_sanitize={sanitizer}", "-Db_lundef=false"]
        flags += [] if "clang" in compiler else COLLECT_LATE
        self.options += [f"-Dcpp_args={' '.join(flags)}"]
        self.tests = []
        self.finished = False  # whether building has ended
        self.says = self.folder / "ninja.txt"
        self.failed = []  # (file, what the compiler printed)
        self.before = None  # ninja's log before this run
        self.logged = None  # (time, size) of that log when it was last read
        self.began = time.time()
        self.compiled = {}  # object file -> processor seconds in this run; 0 if ccache had it

    def configure(self):
        """Configures the folder. Returns the error, or ""."""
        setup = self.set_up(*["--reconfigure"] if (self.folder / "meson-private/coredata.dat").exists() else [])
        # Meson caches the result that a library was missing. If it is still missing, nothing has changed.
        missing = "".join(re.findall(r".* is left out for want of .*\n", setup.stdout))
        known = self.folder.with_name(self.folder.name + ".left_out")
        if missing and setup.returncode == 0 and (not known.exists() or known.read_text() != missing):
            (self.folder / "meson-private/coredata.dat").unlink(missing_ok=True)  # built files are kept
            setup = self.set_up()
            known.write_text("".join(re.findall(r".* is left out for want of .*\n", setup.stdout)))
        return setup.stdout + setup.stderr if setup.returncode else ""

    def set_up(self, *how):
        environment = os.environ | {"CXX": f"ccache {self.compiler}"}
        if shutil.which("ld.lld"):
            environment["CXX_LD"] = "lld"  # links in a fifth of the time
        return run("meson", "setup", *how, self.folder, *self.options, capture_output=True, env=environment)

    def introspect(self, what):
        return json.loads((self.folder / f"meson-info/intro-{what}.json").read_text())

    def select(self, filters):
        """Selects tests. A program of several files is chosen only if all of them are; otherwise each file has a program of its own. If
        sanitizers follow, tests that they run are only compiled."""
        every = [t for t in self.introspect("tests") if self.has(t)]
        if not self.distributes:
            every = [t for t in every if not (source := self.source_of(t)) or not source.distributes]
        if self.sanitizer:
            every = [t for t in every if self.is_for_sanitizer(t, filters)]
        chosen = [t for t in every if not filters or any(f in t["name"] for f in filters)]
        names = {t["name"] for t in chosen}
        program = {t["name"]: t["depends"][0] for t in every if "strata:together" in t["suite"]}
        partial = {program[t["name"]] for t in every if t["name"] in program and t["name"] not in names}
        together = {name for name in names if name in program and program[name] not in partial}
        chosen = [t for t in chosen if (t["name"] in together) == ("strata:together" in t["suite"])]
        unwanted = {"strata:run_by_sanitizers" if self.sanitizers_follow else "strata:only_compiled"}
        unwanted.add("strata:judged_together" if filters else "strata:judged_alone")
        chosen = [t for t in chosen if not unwanted.intersection(t["suite"])]
        files = {t["id"]: [os.path.relpath(f, self.folder.resolve()) for f in t["filename"]] for t in self.introspect("targets")}
        self.tests = [Test(self, t, [file for target in t["depends"] for file in files[target]]) for t in chosen]

    def has(self, test):
        """Whether the build has a test. A test that must be named is not selected by its kind alone."""
        kinds = [kind for kind in self.kinds or [""] if "/" in kind or "strata:only_if_named" not in test["suite"]]
        return test["name"].startswith(tuple(kinds)) and not test["name"].startswith(tuple(self.but))

    @staticmethod
    def source_of(test):
        file = Path(f"tests/{test['name']}.cpp")
        return sources.Source(Path(), file) if file.exists() else None

    def is_for_sanitizer(self, test, filters):
        """Whether a test runs under the sanitizer. Filters may select tests that otherwise take too long with AddressSanitizer."""
        is_thread, source = "thread" in self.sanitizer, self.source_of(test)
        return source.is_for(self.sanitizer) or (bool(filters) and not is_thread) if source else not is_thread

    def compile(self):
        """Compiles all files that the tests depend on, those of waiting tests first."""
        first = {file for t in self.tests if t.waits for file in t.files}
        rest = {file for t in self.tests for file in t.files} - first
        self.says.write_text("")  # before another thread reads failures from it
        self.before = self.read_log()
        self.began = time.time()
        ninja = ["ninja", "-C", self.folder]
        counting = os.environ | {"CCACHE_PREFIX": str(Path(__file__).with_name("count_seconds"))}
        run(*ninja, "build.ninja", capture_output=True)  # if it is out of date, -n lists nothing else
        for files in (sorted(first), sorted(rest)):
            if not files:
                continue
            self.strike_up_to_date(files)
            everything = [*NICE, *ninja, "-j", str(CPUS), "-k", "0", *files]
            with self.says.open("a") as says:
                run(*everything, stdout=says, stderr=subprocess.STDOUT, env=counting)
            self.strike_up_to_date(files)  # the log may lack lines if another process has rewritten it
        self.finished = True

    def strike_up_to_date(self, files):
        """Removes files that ninja would not link now, because they are up to date."""
        plan = run("ninja", "-C", self.folder, "-n", *files, capture_output=True)
        if plan.returncode == 0:
            self.strike(set(files) - set(re.findall(r"Linking target (\S+)", plan.stdout)))

    def strike(self, built):
        for t in self.tests:
            t.unbuilt -= built

    def look(self):
        """Notes the files that ninja has built since the last call, as its log has them, and those that failed."""
        says = self.says.read_text() if self.says.exists() and self.before is not None else ""
        self.failed = re.findall(r"^FAILED: (?:\[code=\d+\] )?(\S+).*\n((?:(?!\[\d+/\d+\] |ninja: ).*\n)*)", says, re.M)
        log = self.folder / ".ninja_log"
        now = (log.stat().st_mtime_ns, log.stat().st_size) if log.exists() else None
        if self.before is None or now == self.logged:
            return
        self.logged = now
        built = {file for file, *_ in self.read_log() - self.before}
        self.compiled = {file: self.seconds_of(file) for file in built if file.endswith(".o")}
        self.strike(built)

    def read_log(self):
        """The entries of ninja's log: {(file, begin, end)}."""
        log = self.folder / ".ninja_log"
        lines = [line.split("\t") for line in log.read_text().splitlines()[1:]] if log.exists() else []
        return {(line[3], line[0], line[1]) for line in lines if len(line) == 5}

    def seconds_of(self, file):
        """The processor time of compiling a file, in seconds."""
        counted = self.folder / f"{file}.seconds"
        if not counted.exists() or counted.stat().st_mtime < self.began:
            return 0
        return sum(60 * float(minutes) + float(seconds) for minutes, seconds in re.findall(r"(\d+)m([\d.]+)s", counted.read_text()))

    def failures_of(self, test):
        return [text for file, text in self.failed if any(file == f or file.startswith(f + ".p/") for f in test.unbuilt)]

    def cannot_build(self, test):
        return bool(test.unbuilt) and (self.finished or bool(self.failures_of(test)))

    def why_unbuilt(self, test):
        """The output of ninja about the files that the test lacks."""
        return "".join(self.failures_of(test) or [text for _, text in self.failed] or [self.says.read_text()]).splitlines()
