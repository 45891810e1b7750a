"""The declarations in the files of the tests, and which files are compiled together."""
import math
import re
from collections import Counter, defaultdict
from pathlib import Path

MAIN = re.compile(r"^int main\(", re.M)
# ThreadSanitizer tests files that start threads, or make strata start some. Kernels do not depend on threads, and one test of a trainer
# uses the same threads as the next.
THREADS = re.compile(r"#include <thread>|thread_team|parallel|prefetch|autotune|int threads|number of threads|mirrored|thread_groups|pipeline<|fake_machines")
KERNELS = re.compile(r"cpu_|many_leaves$|update_product$")
# These take 30 seconds and more to compile and to run, so they are not tested with sanitizers.
SLOW_WITH_ADDRESSES = re.compile(r"cpu_(conv_pool|convolution_(groups|lanewise|winograd)|mixed_(residual|training))$")
# These compute for a minute at -O0.
LONG = re.compile(r"cpu_(conv_pool|convolution_winograd)$")
# Files that include many headers have most in common.
COMPUTES = re.compile(r'^#include ("(cpu_|gradient|fake_|layer_)|<strata/(strata|cpu/|reference/|network/|program/|train/))', re.M)
# Communication between processes, and divided networks: in a run without arguments, examples cover these, see suite.py.
DISTRIBUTES = re.compile(r"<strata/(net|control|resolvers|exchange|synchronous|parameter_server|communicators/(tcp|shared|elastic)|distribute/(parameter_server|multi_worker|process_memory|pipeline|tensor_parallel|placed))")
# These test less under a sanitizer, or nothing.
DIFFERS_WITH_SANITIZERS = re.compile(r"repetitions\.hpp|count_allocations\.hpp|__SANITIZE|__has_feature")
# These test nothing, because they cannot replace operator new under clang++'s sanitizers.
SAYS_NOTHING_WITH_SANITIZERS = re.compile(r"\s*#ifndef STRATA_TEST_NEW_IS_TAKEN$", re.M)
# The most files and lines of a program: with AddressSanitizer it then takes 3.3 GB of memory to compile.
FILES_TOGETHER, LINES_TOGETHER = 28, 6000
INCLUDE = re.compile(r"^#include .*", re.M)


class Source:
    def __init__(self, folder, path):
        self.path = path
        self.text = (folder / path).read_text(encoding="utf-8")
        head = "\n".join(self.text.split("\n", 10)[:10])
        self.needs, self.flags, self.uses = (self.directive(key, head) for key in ("needs", "flags", "uses"))
        self.has_main = bool(MAIN.search(self.text))
        self.group = ""

    @staticmethod
    def directive(key, head):
        lines = re.findall(rf"^(?://|#) {key}: *(.*)", head, re.M)
        return " ".join(" ".join(lines).split())

    @property
    def stem(self):
        return self.path.stem

    def flavour(self, sanitizer):
        """The group of flags of a file: files of one flavour are compiled together. A sanitizer's build runs all of its files."""
        if LONG.match(self.stem):
            return "long"
        if KERNELS.match(self.stem):
            return "kernels"
        if sanitizer == "none" and DIFFERS_WITH_SANITIZERS.search(self.text):
            return "repeating"
        if sanitizer == "none" and self.distributes:
            return "plain"
        return "computing" if COMPUTES.search(self.text) and not self.needs else "plain"

    @property
    def distributes(self):
        return not self.flags and ("openssl" in self.needs or bool(DISTRIBUTES.search(self.text)))

    def programs(self, folder):
        """The stems of the programs in `folder` that a test_*.py names, as 'worker' or interop_csv, directly or in the modules that it
        imports and the scripts that it names."""
        if self.path.suffix != ".py":
            return []
        folder, read, left = Path(folder), {}, [self.path.name]
        while left:
            name = left.pop()
            if name not in read and (folder / name).is_file():
                read[name] = (folder / name).read_text(encoding="utf-8")
                left += [f"{module}.py" for module in re.findall(r"^ *(?:from|import) (\w+)", read[name], re.M)]
                left += re.findall(r"['\"](\w+)['\"]", read[name])
        names = set(re.findall(rf"(?:['\"]|\b{folder.name}_)(\w+)(?=['\" ])", "\n".join(read.values())))
        return [f.stem for f in sorted(folder.glob("*.cpp")) if names & {f.stem, f"{folder.name}_{f.stem}"}]

    def split(self):
        """The lines up to the last #include, and the rest."""
        lines = self.text.splitlines()
        last = max((i for i, line in enumerate(lines) if INCLUDE.match(line)), default=-1)
        return lines[: last + 1], lines[last + 1 :]

    def can_be_joined(self):
        """Whether a file still compiles if its includes move to the top of a common file, and the rest into a namespace."""
        if self.uses or self.has_main or self.path.suffix != ".cpp":
            return False
        head, body = self.split()
        return not any(line.startswith("#") and not INCLUDE.match(line) for line in head) and not any(
            re.match(r"namespace (strata|std)\b|(template <.*> )?struct strata::", line) for line in body)

    def is_for(self, sanitizer):
        """Whether a file is tested with a sanitizer. OpenSSL is not built for ThreadSanitizer, which reports races in it."""
        if sanitizer not in ("", "none") and SAYS_NOTHING_WITH_SANITIZERS.match("\n".join(self.split()[1])):
            return False
        if "thread" in sanitizer:
            return not KERNELS.match(self.stem) and bool(THREADS.search(self.text)) and "openssl" not in self.needs
        return "address" not in sanitizer or not SLOW_WITH_ADDRESSES.match(self.stem)


def read(folder, pattern):
    folder = Path(folder)
    return [Source(folder, f) for f in sorted(f.relative_to(folder) for f in folder.rglob(pattern) if f.is_file())]


def group(sources, sanitizer, libraries):
    """Assigns a group to each source that can be compiled together with others, if the libraries that it needs are available. Files with
    the same library have most in common, then those that are neighbours in alphabetical order."""
    alike = defaultdict(list)
    for source in sources:
        if source.can_be_joined() and source.is_for(sanitizer) and set(source.needs.split()) <= set(libraries):
            alike[source.flavour(sanitizer), source.flags, sanitizer == "none" and source.distributes].append(source)
    for (flavour, flags, distributes), members in alike.items():
        members.sort(key=lambda source: source.needs)
        lengths = [len(source.text.splitlines()) for source in members]
        programs = max(math.ceil(len(members) / FILES_TOGETHER), math.ceil(sum(lengths) / LINES_TOGETHER))
        before = 0
        for source, length in zip(members, lengths):
            source.group = "_".join([*["distribute"] * distributes, flavour, *re.findall(r"\w+", flags), str(before * programs // sum(lengths) + 1)])
            before += length
        sizes = Counter(source.group for source in members)
        for source in members:
            source.group = source.group if sizes[source.group] > 1 else ""
