#!/usr/bin/env python3
"""The package safetensors from PyPI reads the files of strata, and strata reads those of the package."""
import os
import subprocess
import sys
import tempfile
from packages import PROGRAMS, check, finish_tests, need_packages

need_packages(numpy="numpy", safetensors="safetensors")
import numpy as np
import safetensors
import safetensors.numpy

helper = os.path.join(PROGRAMS, "interop_safetensors")


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def strata(command, path):
    return subprocess.run([helper, command, path], capture_output=True, text=True, encoding="utf-8")


def number(bits, dtype):
    return np.array([bits], np.dtype(dtype).str.replace("f", "u")).view(dtype)[0]


def ours_by_them(path):
    written = strata("write", path)
    check(written.returncode == 0, "strata writes a file " + written.stderr)
    floats = np.arange(24, dtype=np.float32) * np.float32(0.1)
    floats[1:4] = [-0.0, 0, 0]
    floats[2] = number(0x7FC12345, np.float32)
    floats[3] = number(1, np.float32)
    doubles = np.array([0, -0.1])
    doubles[0] = number(0x7FF8000000012345, np.float64)
    expected = {
        "bytes": np.array([0, 128, 255], np.uint8),
        "dense/kernel": floats.reshape(2, 3, 4),
        "doubles": doubles.reshape(2, 1),
        "whole": np.array([-(2**63), 7]),
        'labels "\u00e9"': np.array([-1, 2, 3], np.int32),
        "one": np.array(65535, np.uint16),
        "none": np.zeros((0, 4), np.uint16),
    }
    read = safetensors.numpy.load_file(path)
    check(sorted(read) == sorted(expected), "the package finds all tensors by name")
    for name, value in expected.items():
        check(name in read and same(read[name], value), f"the package reads {name}, bit by bit")
    with safetensors.safe_open(path, framework="numpy") as f:
        check(f.metadata() == {"format": "strata", "words": 'two lines\nand "quotes"'}, "the package reads the metadata")


def theirs_by_us(path):
    random = np.random.default_rng(1)
    tensors = {
        "conv2d/kernel": random.standard_normal((3, 3, 2, 4)).astype(np.float32),
        "nan": np.array([0x7FC00001, 0xFF800001, 0x80000000, 1], np.uint32).view(np.float32),
        "doubles": random.standard_normal((5,)),
        "whole": random.integers(-(2**62), 2**62, (2, 2)),
        "labels": random.integers(-9, 9, (7,), np.int32),
        "odd": random.integers(0, 255, (3, 5), np.uint8),
        "short": random.integers(0, 9, (3,), np.uint16),
        "scalar": np.array(2.5, np.float32),
        "none": np.zeros((0, 3), np.float32),
        "\u00fcmlaut": np.array([1], np.int32),
    }
    safetensors.numpy.save_file(tensors, path, {"by": "python"})
    lines = strata("print", path).stdout.splitlines()
    short = {"float32": "F32", "float64": "F64", "int64": "I64", "int32": "I32", "uint8": "U8", "uint16": "U16"}
    check("by=python" in lines, "strata reads the metadata")
    check(len(lines) == len(tensors) + 1, "strata finds as many tensors")
    for name, t in tensors.items():
        line = f"{name} {short[str(t.dtype)]} [{','.join(map(str, t.shape))}] {t.tobytes().hex()}".rstrip()
        check(line in lines, f"strata reads {name}, bit by bit")
    return path


def unknown_type_alone(path):
    """Checks that strata ignores a tensor with an unknown element type, and reads the others."""
    with open(path, "rb") as f:
        whole = f.read()
    before = strata("print", path).stdout
    with open(path, "wb") as f:
        f.write(whole.replace(b'"F64"', b'"F63"'))
    after = strata("print", path)
    check(after.returncode == 0 and "doubles F64" in before and after.stdout == before.replace("doubles F64", "doubles an unknown dtype"),
          "a tensor of a type that does not exist hides no other", after.stdout + after.stderr)
    with open(path, "wb") as f:
        f.write(whole)


def both_refuse(path):
    with open(path, "rb") as f:
        whole = f.read()
    damaged = {
        "cut off in the data": whole[:-1],
        "cut off in the header": whole[:40],
        "with a byte too many": whole + b"\0",
        "with an impossible length": b"\xff" * 8 + whole[8:],
        "with a wrong extent": whole.replace(b'"shape":[5]', b'"shape":[6]'),
        "that is empty": b"",
    }
    for what, content in damaged.items():
        with open(path, "wb") as f:
            f.write(content)
        try:
            safetensors.numpy.load_file(path)
            refused = False
        except Exception:
            refused = True
        answer = strata("print", path)
        check(content != whole and refused and answer.returncode == 1 and path in answer.stderr, f"both refuse a file {what}")


with tempfile.TemporaryDirectory() as folder:
    ours_by_them(os.path.join(folder, "ours.safetensors"))
    theirs = theirs_by_us(os.path.join(folder, "theirs.safetensors"))
    unknown_type_alone(theirs)
    both_refuse(theirs)
sys.exit(finish_tests())
