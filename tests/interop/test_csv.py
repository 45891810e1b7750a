#!/usr/bin/env python3
"""strata reads the files of Python's csv module, in all its dialects, and those of pandas if it is installed."""
import csv
import math
import pathlib
import random
import subprocess
import sys
import tempfile
from packages import PROGRAMS, check, finish_tests, leave_out

PROGRAM = PROGRAMS / "interop_csv"


def strata(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=True).stdout


def fields(path, separator):
    lines = strata("fields", path, separator).splitlines()
    return [[bytes.fromhex(field[1:]).decode() for field in line.split(" ")] for line in lines]


def of_the_csv_module(path):
    choose = random.Random(1)
    letters = ["a", "b", " ", ",", ";", "\t", '"', "'", "\n", "\r\n", "\u00e9", "\u65e5", "\\", "0"]
    rows = [["".join(choose.choices(letters, k=choose.randrange(9))) for _ in range(4)] for _ in range(3000)]
    rows += [["", "", "", ""], ['"', '""', '"a"', 'a"b'], ["x" * 3_000_000, "\n" * 100_000, '"' * 50_000, ","]]
    for separator in ",;\t|":
        for quoting in csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC:
            for end in "\n", "\r\n":
                with open(path, "w", newline="", encoding="utf-8") as f:
                    csv.writer(f, delimiter=separator, quoting=quoting, lineterminator=end).writerows(rows)
                got = fields(path, separator)
                with open(path, newline="", encoding="utf-8") as f:
                    csv.field_size_limit(1 << 30)
                    check(got == rows == list(csv.reader(f, delimiter=separator)),
                          f"strata and the csv module read the same: separator {separator!r}, quoting {quoting}, end {end!r}")
    with open(path, "w", newline="", encoding="utf-8-sig") as f:
        csv.writer(f).writerows([["caf\u00e9", "b"], ["1", ""]])
    check(fields(path, ",") == [["caf\u00e9", "b"], ["1", ""]], "a byte order mark is no part of the first name")


def numbers(path, write, title):
    choose = random.Random(2)
    rows = []
    for _ in range(500):
        any_size = math.ldexp(choose.random(), choose.randrange(-1070, 1020))
        real = choose.choice([choose.uniform(-1, 1), any_size, float(choose.randrange(100))])
        text = choose.choice(['a, "b"', "", "two\nlines"])
        rows.append((choose.randrange(-(2**63), 2**63), real, text, choose.choice([None, 0.5])))
    write(path, rows)
    expected = [f"{w} {float(r).hex()} {len(t)} {'none' if m is None else '0.500000'}" for w, r, t, m in rows]
    got = []
    for line in strata("numbers", path).splitlines():
        whole, real, size, maybe = line.split()
        got.append(f"{whole} {float.fromhex(real).hex()} {size} {maybe}")
    check(got == expected, title)


def write_with_csv(path, rows):
    with open(path, "w", newline="") as f:
        writer = csv.writer(f)
        writer.writerow(["maybe", "text", "real", "whole"])
        writer.writerows([("" if m is None else m, t, repr(r), w) for w, r, t, m in rows])


def write_with_pandas(path, rows):
    import pandas

    pandas.DataFrame(rows, columns=["whole", "real", "text", "maybe"]).to_csv(path)  # with its index as a column without a name


with tempfile.TemporaryDirectory() as name:
    file = pathlib.Path(name) / "table.csv"
    of_the_csv_module(file)
    numbers(file, write_with_csv, "numbers that the csv module writes are read to the last bit")
    try:
        numbers(file, write_with_pandas, "numbers that pandas writes are read to the last bit")
    except ImportError:
        leave_out("numbers that pandas writes", "there is no pandas")
sys.exit(finish_tests())
