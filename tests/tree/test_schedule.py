#!/usr/bin/env python3
"""The scheduler of tests/run: which tests run at the same time, how tests that take too long or cannot be built are reported, and what
is counted."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tools"))
import schedule  # noqa: E402
import sources  # noqa: E402
from build import Build, Test  # noqa: E402

results = []


def report(what, passed, told=""):
    results.append(bool(passed))
    print(f"{'ok' if passed else 'not ok'} {len(results)} - {what}", flush=True)
    if not passed:
        print(told, file=sys.stderr)


class FakeBuild:
    """Builds the files a and b after 0.3 and 0.6 seconds, and never c."""
    sanitizer, label, folder = "", "fake", "."

    def __init__(self):
        self.tests, self.finished, self.built = [], False, set()

    def add(self, name, script, files=(), tap=True, alone=False, timeout=60):
        command = ["bash", "-c", f'date +%s.%N >>"$LOG/{name}"; ({script}); code=$?; date +%s.%N >>"$LOG/{name}"; exit $code']
        introspected = {"name": f"{'unit' if files else 'static'}/{name}", "cmd": command, "protocol": "tap" if tap else "exitcode", "is_parallel": not alone,
                 "timeout": timeout, "workdir": None, "env": {"LOG": os.environ["LOG"]}}
        self.tests.append(Test(self, introspected, files))

    def compile(self):
        for file in "ab":
            time.sleep(0.3)
            self.built.add(file)
        self.finished = True

    def look(self):
        for t in self.tests:
            t.unbuilt -= self.built

    def cannot_build(self, test):
        return bool(test.unbuilt) and (self.finished or "c" in test.unbuilt)


with tempfile.TemporaryDirectory() as log:
    os.environ["LOG"] = log
    build = FakeBuild()
    for i in range(4):
        build.add(f"beside{i}", "sleep 0.2; echo ok 1 - x; echo 1..1", ["a"])
    build.add("alone", "sleep 0.5; echo ok 1 - x; echo 1..1", ["b"], alone=True)
    build.add("never", "true", ["c"])
    build.add("late", "sleep 30", ["a"], timeout=0.5)
    build.add("cases", "echo ok 1 - x; echo not ok 2 - y; echo ok 3 - z '# SKIP'; echo 1..3; exit 1", ["a"])
    build.add("stops", "echo ok 1 - x; echo 1..2", ["a"])
    build.add("silent", "true", ["a"])
    build.add("skips", "echo '1..0 # SKIP there is none'", ["a"])
    build.add("dies", "echo ok 1 - x; echo 1..1; exit 3", ["a"])
    build.add("compiles", "sleep 0.1", tap=False)
    build.add("refuses", "exit 1", tap=False)
    outcomes = {t.name.split("/")[1]: outcome for t, outcome in schedule.Schedule([build]).run()}  # in the order of their ends
    report("each test ends once", sorted(outcomes) == sorted(t.name.split("/")[1] for t in build.tests), outcomes.keys())

    spans = {f.name: [*map(float, f.read_text().split()), float("inf")][:2] for f in pathlib.Path(log).iterdir()}
    begin, end = spans["alone"]
    beside = [name for name, (b, e) in spans.items() if name not in ("alone", "late", "compiles", "refuses") and b < end and e > begin]
    report("no other program runs beside a test that is to be alone", not beside, spans)
    report("what cannot be built does not run", outcomes["never"] is None and "never" not in spans)
    report("and fails at once", "never" in list(outcomes)[:3], outcomes.keys())
    report("a test that takes too long is ended", outcomes["late"].failures == ["took more than 1 s"] or "took more" in outcomes["late"].failures[0], outcomes["late"].failures)

    counts = {name: (o.passed, o.skipped, o.failures) for name, o in outcomes.items() if o}
    report("cases are counted", counts["cases"] == (1, 1, ["y"]), counts["cases"])
    report("fewer cases than announced are a failure", counts["stops"][2] == ["announces 2 cases and shows 1"], counts["stops"])
    report("no cases at all are a failure", len(counts["silent"][2]) == 1, counts["silent"])
    report("a test may skip itself", counts["skips"] == (0, 1, []), counts["skips"])
    report("an exit code counts where all cases are right", counts["dies"] == (1, 0, ["exit code 3"]), counts["dies"])
    report("what only compiles is one test", counts["compiles"] == (1, 0, []) and counts["refuses"] == (0, 0, ["exit code 1"]), counts)

    class BrokenBuild(FakeBuild):
        def compile(self):
            raise RuntimeError("as if ninja were missing")

    broken, after = BrokenBuild(), FakeBuild()
    broken.add("unbuilt", "true", ["a"])
    after.add("unbuilt", "true", ["a"])
    threading.excepthook = lambda _: None
    ended = list(schedule.Schedule([broken, after]).run())
    threading.excepthook = threading.__excepthook__
    report("an exception while compiling ends the run", [outcome for _, outcome in ended] == [None, None], ended)



def selected(filters, **options):
    """The tests that a build selects of six: (name, command)."""
    def introspected(name, program, *suites):
        return {"name": name, "cmd": [program], "protocol": "tap", "is_parallel": True, "timeout": 60, "workdir": None, "env": {},
                "suite": [f"strata:{suite}" for suite in suites], "depends": [program] * (not program.endswith("run"))}

    build = Build("g++", **options)
    tests = [introspected("unit/a", "a", "unit"), introspected("unit/a", "joined", "together", "run_by_sanitizers"),
             introspected("unit/plain_1 g++", "static/run", "only_compiled"), introspected("unit/b", "b", "unit"),
             introspected("must_fail/c g++", "must_fail/run", "must_fail", "judged_alone"),
             introspected("must_fail/all g++", "must_fail/run", "must_fail", "judged_together"),
             introspected("snippets/first g++", "snippets/run", "only_if_named"), introspected("unit/wire", "wire", "unit")]
    targets = [{"id": name, "filename": [name]} for name in ("a", "b", "joined", "wire")]
    build.introspect = {"tests": tests, "targets": targets}.get
    build.select(filters)
    return sorted((t.name, t.command[0]) for t in build.tests)


full = [("must_fail/all g++", "must_fail/run"), ("unit/b", "b"), ("unit/plain_1 g++", "static/run"), ("unit/wire", "wire")]
report("where sanitizers follow, what they run is compiled", selected([], sanitizers_follow=True) == full, selected([], sanitizers_follow=True))
full = [("must_fail/all g++", "must_fail/run"), ("unit/a", "joined"), ("unit/b", "b"), ("unit/wire", "wire")]
report("otherwise it runs", selected([]) == full, selected([]))
some = [("must_fail/c g++", "must_fail/run"), ("unit/b", "b")]
report("what a filter picks is judged alone", selected(["unit/b", "must_fail/c"]) == some, selected(["unit/b", "must_fail/c"]))
parts = selected([], kinds=["must_fail"]) + selected([], but=["must_fail"])
report("two builds can share the kinds", sorted(parts) == selected([]) and len(parts) == 4, parts)

some = selected([], kinds=["unit/b", "must_fail", "snippets"])
report("a kind may be a single test", some == [("must_fail/all g++", "must_fail/run"), ("unit/b", "b")], some)
some = selected([], kinds=["unit/wire", "snippets/first"], distributes=False)
report("a part of another test has to be named, and what is between processes is left out", some == [("snippets/first g++", "snippets/run")], some)

with tempfile.TemporaryDirectory() as folder:
    build = Build("g++")
    build.folder, build.says, build.before = pathlib.Path(folder), pathlib.Path(folder, "ninja.txt"), set()
    build.says.write_text("[1/3] Compiling a\nFAILED: [code=1] tests/interop_mpi.p/interop_mpi.cpp.o \nccache g++ mpi.cpp\nmpi.cpp:1: no mpi.h\n[2/3] Compiling b\n")
    tests = {name: Test(build, {"name": f"interop/{name}", "cmd": ["x"], "protocol": "tap", "is_parallel": True, "timeout": 1, "workdir": None, "env": {}},
                        [f"tests/interop_{name}"]) for name in ("mpi", "csv")}
    build.look()
    verdicts = {name: build.cannot_build(test) for name, test in tests.items()}
    report("a program that does not compile fails its own test", verdicts == {"mpi": True, "csv": False}, verdicts)
    report("with the words of the compiler", build.why_unbuilt(tests["mpi"]) == ["ccache g++ mpi.cpp", "mpi.cpp:1: no mpi.h"], build.why_unbuilt(tests["mpi"]))

with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    files = {
        "a.cpp": '#include <a>\n#include "x.hpp"\nusing namespace n;\nint one() { return 1; }\n',
        "b.cpp": '// needs: libpng\n#include <b>\n#include <a>\nnamespace {\nint two() { return 2; }\n}  // namespace\n',
        "c.cpp": "#ifdef C\n#include <c>\n#endif\n",
        "d.cpp": "#include <d>\nnamespace strata {\n}\n",
        "e.cpp": "// flags: -O2\n#include <e>\n",
        "f.cpp": "#include <f>\nint main() {}\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    found = {s.path.name: s for s in sources.read(folder, "*.cpp")}
    joinable = [name for name, s in found.items() if s.can_be_joined()]
    report("files are joined unless they say or do something of their own", joinable == ["a.cpp", "b.cpp", "e.cpp"], joinable)
    sources.group(list(found.values()), "none", [])
    report("only if what they need is there", not found["a.cpp"].group and not found["b.cpp"].group)
    sources.group(list(found.values()), "none", ["libpng"])
    report("and then have a name for it", found["a.cpp"].group == found["b.cpp"].group == "plain_1", found["a.cpp"].group)
    report("only with files of the same flags", not found["e.cpp"].group, found["e.cpp"].group)
    join = pathlib.Path(__file__).parents[1] / "tools/join"
    subprocess.run([join, folder / "out.cpp", folder / "a.cpp", folder / "b.cpp"], check=True)
    text = (folder / "out.cpp").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#line")]
    report("includes first and once, then a namespace for each file", lines == [
        "// needs: libpng", "#include <a>", '#include "x.hpp"', "#include <b>", "namespace in_a {", "using namespace n;", "int one() { return 1; }", "}",
        "namespace in_b {", "namespace {", "int two() { return 2; }", "}  // namespace", "}"], text)
    report("lines have the numbers of their file", re.findall(r"^#line (\d+)", text, re.M) == ["3", "4"], text)

print(f"1..{len(results)}")
sys.exit(not all(results))
