#!/usr/bin/env python3
"""Each bug of tests/mutate can still be inserted into its header, and its test exists."""
import collections
import importlib.machinery
import importlib.util
import pathlib
import sys

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("mutate", str(pathlib.Path(__file__).parents[1] / "mutate"))
mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", loader))
loader.exec_module(mutate)

wrong = []
for name, header, old, new, test in mutate.all_mutations():
    if not mutate.mutated(header, old, new):
        wrong.append(f"{name}: {header} does not have its text exactly once")
    if not (mutate.TESTS / f"{test}.cpp").is_file():
        wrong.append(f"{name}: there is no tests/{test}.cpp")
names = collections.Counter(name for name, *_ in mutate.all_mutations())
wrong += [f"{name}: two bugs have this name" for name, count in names.items() if count > 1]
for each in wrong:
    print("#", each)
print(f"{'not ok' if wrong else 'ok'} 1 - each bug of tests/mutate can still be inserted into its header\n1..1")
sys.exit(bool(wrong))
