#!/usr/bin/env python3
"""Checks for functions and macros that no header may use."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

HEADERS = Path(__file__).resolve().parents[2] / "include/strata"
EMULATED = HEADERS.parent / "strata_emulated_cuda/strata"
FORBIDDEN = {
    # Deadlines are on the steady clock, so that setting the clock changes none of them. TensorBoard shows the time of each value.
    "no header but interop/event_file.hpp reads the time of day":
        re.compile(r"system_clock|high_resolution_clock|CLOCK_REALTIME|gettimeofday|\btime\(nullptr\)"),
    # They depend on the locale of the program; files, messages between processes and comparisons must not. detail::formatted and
    # text_of write numbers, detail::read_number reads them.
    "no header but base/text.ipp and base/read_number.hpp formats or reads numbers by the locale":
        re.compile(r"\b(f|v|s|d|vs|vf|vd|sn|vsn|as|vas)?(printf|scanf)\(|\bstrto\w+\(|\bato(i|l|ll|f)\(|\bstrftime\(|\bput_time\(|"
                   r"\bsto(i|l|ll|ul|ull|f|d|ld)\(|\b(to|is)(lower|upper|alpha|digit|space|alnum|print|punct)\("),
    "no header but callbacks/logging.hpp, which chooses the locale C, has a stream of strings": re.compile(r"\bi?o?stringstream\b"),
    # throw_error also works in programs without exceptions.
    "errors are thrown by throw_error": re.compile(r"^(?!\s*//).*\bthrow (strata::)?error\b"),
}

lines = [(f"{file.relative_to(folder)}:{number}: {line.strip()}", line)
         for folder in (HEADERS, EMULATED)
         for file in sorted(folder.rglob("*.[hi]pp"))
         for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)]
failed = 0
print(f"1..{len(FORBIDDEN) + 2}")
for count, (rule, pattern) in enumerate(FORBIDDEN.items(), 1):
    found = [place for place, line in lines if pattern.search(line) and place.split(":")[0] not in rule]
    failed += bool(found)
    for place in found:
        print("#", place)
    print("not ok" if found else "ok", f"{count} - {rule}")

# std::isnan would return false for every number.
held = True
for compiler in filter(shutil.which, ["g++", "clang++"]):
    for flags in ["-Ofast"], ["-ffast-math"], ["-ffast-math", "-fno-finite-math-only"]:
        command = [compiler, "-std=c++20", "-E", "-o", "/dev/null", f"-I{HEADERS.parent}", *flags, HEADERS / "base/error.hpp"]
        says = subprocess.run(command, capture_output=True, text=True).stderr
        if ("strata needs nan and infinity" in says) != (len(flags) == 1):
            held = False
            print("#", compiler, *flags, says)
failed += not held
print("ok" if held else "not ok", f"{len(FORBIDDEN) + 1} - no header compiles if the compiler assumes that all numbers are finite")

said = {compiler: subprocess.run([compiler, "-std=c++20", "-E", "-o", "/dev/null", f"-I{HEADERS.parent}", HEADERS / "cuda/cuda.hpp"],
                                 capture_output=True, text=True).stderr for compiler in filter(shutil.which, ["g++", "clang++"])}
other = [text for text in said.values() if "GPUs need nvcc or, emulated, -I strata/include/strata_emulated_cuda: docs/cuda.md" not in text]
failed += bool(other)
for text in other:
    print("#", text)
print("not ok" if other else "ok", f"{len(FORBIDDEN) + 2} - GPUs are emulated only where their folder is an include path")
sys.exit(bool(failed))
