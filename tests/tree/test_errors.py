#!/usr/bin/env python3
"""Headers throw strata::error through throw_error, which also serves programs without exceptions."""
import re
import sys
from pathlib import Path

HEADERS = Path(__file__).resolve().parents[2] / "include/strata"
THROWS = re.compile(r"^(?!\s*//).*\bthrow (strata::)?error\b")

found = [f"{file.relative_to(HEADERS)}:{number}: {line.strip()}"
         for file in sorted(HEADERS.rglob("*.[hi]pp"))
         for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1) if THROWS.search(line)]
print("1..1")
for line in found:
    print("#", line)
print("not ok" if found else "ok", "1 - errors are thrown by throw_error")
sys.exit(bool(found))
