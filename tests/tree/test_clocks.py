#!/usr/bin/env python3
"""No header reads the time of day: deadlines are on the steady clock, so that setting the clock changes none of them."""
import re
import sys
from pathlib import Path

HEADERS = Path(__file__).resolve().parents[2] / "include/strata"
TIME_OF_DAY = re.compile(r"system_clock|high_resolution_clock|CLOCK_REALTIME|gettimeofday|\btime\(nullptr\)")

found = [f"{file.relative_to(HEADERS)}:{number}: {line.strip()}"
         for file in sorted(HEADERS.rglob("*.[hi]pp"))
         for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1) if TIME_OF_DAY.search(line)]
print("1..1")
for line in found:
    print("#", line)
print("not ok" if found else "ok", "1 - no header reads the time of day")
sys.exit(bool(found))
