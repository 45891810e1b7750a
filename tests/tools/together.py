"""Compiles files that only have to compile in one compilation, which takes a fraction of the time."""
import subprocess
import sys
import tempfile
from pathlib import Path

import sources

JOIN = Path(__file__).with_name("join")


def those_that_compile(files, compiles, may_have_main=False):
    """The list of files that can be joined and that compile so; empty if compiles(joined file) is false."""
    joinable = []
    for file in files:
        source = sources.Source(Path(), Path(file))
        source.has_main = source.has_main and not may_have_main  # within a namespace it is a function like any other
        if source.can_be_joined() and not source.flags:
            joinable.append(file)
    if len(joinable) < 2:
        return []
    with tempfile.TemporaryDirectory() as folder:
        joined = f"{folder}/together.cpp"
        subprocess.run([sys.executable, JOIN, joined, *joinable], check=True)
        return joinable if compiles(joined) else []
