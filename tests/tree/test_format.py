#!/usr/bin/env python3
"""Every C++ file is formatted by tests/format."""
import pathlib
import subprocess
import sys

done = subprocess.run([pathlib.Path(__file__).parents[1] / "format", "--check"], capture_output=True, text=True)
if "1..0" in done.stdout:
    print(done.stdout)
    sys.exit()
print(f"{'not ok' if done.returncode else 'ok'} 1 - every file is formatted by tests/format\n1..1")
print(done.stdout + done.stderr, file=sys.stderr)
sys.exit(done.returncode)
