#!/usr/bin/env python3
# flags: compiles
"""README shows the error that its program causes without `flatten`, in the words of g++ 12."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GXX = os.environ.get("GXX", "g++")


def words(text):
    return re.sub(r"\s+", " ", re.sub("[‘’']", "'", text)).strip()


readme = (ROOT / "README.md").read_text(encoding="utf-8")
program, rest = re.search(r"```cpp run\n(.*?)```(.*)", readme, re.S).groups()
shown = words(re.search(r"```text\n(error: .*?)```", rest, re.S)[1])
print("1..1")
if (version := subprocess.run([GXX, "-dumpversion"], capture_output=True, text=True).stdout.strip().split(".")[0]) != "12":
    print(f"ok 1 - the error in README # SKIP g++ {version} has words of its own")
    sys.exit()
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "program.cpp"
    file.write_text(re.sub(r"\bflatten, ", "", program), encoding="utf-8")
    done = subprocess.run([GXX, "-std=c++20", "-fsyntax-only", f"-I{ROOT}/include", file], capture_output=True, text=True)
holds = done.returncode != 0 and shown in words(done.stderr) and done.stderr.count("error:") == 1
print(f"{'ok' if holds else 'not ok'} 1 - the error in README")
if not holds:
    print(done.stderr, file=sys.stderr)
sys.exit(not holds)
