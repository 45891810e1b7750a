#!/usr/bin/env python3
# needs: libzip
"""NumPy reads the .npy and .npz files that strata writes, strata reads those of NumPy, and both refuse damaged files."""
import io
import pathlib
import subprocess
import sys
import tempfile
import zipfile
from packages import PROGRAMS, check, finish_tests, need_packages

need_packages(numpy="numpy")
import numpy as np


def strata(*words):
    return subprocess.run([PROGRAMS / "interop_numpy", *words], capture_output=True, text=True)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def ours_by_numpy(folder):
    written = strata("write", folder)
    check(written.returncode == 0, "strata writes files " + written.stderr)
    one_to_24 = np.arange(1, 25)
    x = (one_to_24.astype(np.float32) * np.float32(0.1)).reshape(4, 2, 3)
    expected = {
        "u1": one_to_24.astype(np.uint8).reshape(4, 2, 3),
        "i2": one_to_24.astype(np.int16).reshape(4, 2, 3),
        "i4": one_to_24.astype(np.int32),
        "u8": one_to_24.astype(np.uint64).reshape(2, 2, 1, 6),
        "f4": x,
        "f8": one_to_24.astype(np.float64).reshape(4, 2, 3),
        "b1": np.array([True, False, True]),
    }
    for name, value in expected.items():
        check(same(np.load(folder / f"{name}.npy"), value), f"NumPy reads {name}.npy")
        check(same(np.load(folder / f"{name}.npy", mmap_mode="r"), value), f"NumPy maps {name}.npy")
        # The file that NumPy itself would have written.
        buffer = io.BytesIO()
        np.save(buffer, value)
        check(buffer.getvalue() == (folder / f"{name}.npy").read_bytes(), f"{name}.npy is what NumPy writes, byte by byte")
    members = {
        "x": x,
        "labels": expected["i4"],
        "n\u00e4me": expected["u1"].reshape(24, 1),
        "scalar": np.array(1.0),
        "none": np.zeros((0, 3)),
    }
    for name in ("stored", "compressed"):
        with np.load(folder / f"{name}.npz") as archive:
            check(sorted(archive.files) == sorted(members), f"NumPy finds all members of {name}.npz")
            for member, value in members.items():
                check(member in archive.files and same(archive[member], value), f"NumPy reads {member} of {name}.npz")
        with zipfile.ZipFile(folder / f"{name}.npz") as archive:
            check(archive.testzip() is None, f"the checksums of {name}.npz are right")


def reads(path, array, *member):
    """Whether strata reads the array, as elements of 64 bits, which can represent all of them."""
    kind = "float64" if array.dtype.kind in "bf" else "int64" if array.dtype.kind == "i" else "uint64"
    answer = strata(kind, path, *member)
    if answer.returncode:
        return False
    parse = float.fromhex if kind == "float64" else int
    got = np.array([parse(line) for line in answer.stdout.split()], dtype=kind).reshape(array.shape)
    return np.array_equal(got, array.astype(kind), equal_nan=kind == "float64")


def numpys_by_us(folder):
    random = np.random.default_rng(1)
    arrays = {}
    for code in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        limits = np.iinfo(code)
        arrays[code] = random.integers(limits.min, limits.max, (5, 2, 3), code, endpoint=True)
    for code in ("f2", "f4", "f8"):
        arrays[code] = random.standard_normal((5, 2, 3)).astype(code)
        arrays[code][0, 0] = np.inf, -np.inf, np.nan
        arrays[code][0, 1] = np.finfo(code).smallest_subnormal, -0.0, np.finfo(code).max
    arrays["b1"] = random.integers(0, 2, (5, 2, 3)).astype(bool)
    path = folder / "theirs.npy"
    for code, array in arrays.items():
        for order in "<>":
            for version in (1, 0), (2, 0), (3, 0):
                swapped = array.astype(array.dtype.newbyteorder(order))
                with open(path, "wb") as f:
                    np.lib.format.write_array(f, swapped, version)
                check(reads(path, array), f"strata reads {order}{code} of version {version[0]}")
        np.save(path, np.asfortranarray(array))
        check(reads(path, array), f"strata reads {code} in Fortran order")
        np.save(path, array[..., np.newaxis])
        check(reads(path, array), f"strata reads {code} with a channel of its own")
    for save in np.savez, np.savez_compressed:
        save(folder / "theirs.npz", **arrays)
        for code, array in arrays.items():
            check(reads(folder / "theirs.npz", array, code), f"strata reads {code} of {save.__name__}")
    np.savez(folder / "names.npz", arrays["f4"], arrays["f8"], **{"\u00fcml\u00e4ut/x": arrays["i4"]})
    check(reads(folder / "names.npz", arrays["f4"], "arr_0"), "strata reads a member without a name")
    check(reads(folder / "names.npz", arrays["i4"], "\u00fcml\u00e4ut/x"), "strata reads a member with an odd name")
    with open(path, "wb") as f, zipfile.ZipFile(f, "w", allowZip64=True) as z, z.open("x.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array(member, arrays["f4"])
    check(reads(path, arrays["f4"], "x"), "strata reads a zip64 archive")


def both_refuse(folder):
    path = folder / "damaged.npy"
    array = np.zeros((5, 2, 3), np.float32)
    np.save(path, array)
    whole = path.read_bytes()
    damaged = {
        "cut off in the data": whole[:-1],
        "cut off in the header": whole[:40],
        "of version 9": whole[:6] + b"\x09" + whole[7:],
        "with a type that does not exist": whole.replace(b"<f4", b"<q4"),
        "with a wrong extent": whole.replace(b"(5, 2, 3)", b"(6, 2, 3)"),
        "that is empty": b"",
    }
    for what, content in damaged.items():
        path.write_bytes(content)
        try:
            np.load(path)
            refused = False
        except Exception:
            refused = True
        answer = strata("float64", path)
        ours_refused = answer.returncode == 1 and str(path) in answer.stderr
        check(content != whole and refused and ours_refused, f"both refuse a file {what}")
    np.save(path, np.array([{}, []], dtype=object))
    check("pickled" in strata("float64", path).stderr, "strata refuses pickled objects")
    np.save(path, np.zeros(3, dtype=[("a", "f4"), ("b", "i4")]))
    check("fields" in strata("float64", path).stderr, "strata refuses structured arrays")
    np.savez(folder / "damaged.npz", x=array)
    content = bytearray((folder / "damaged.npz").read_bytes())
    content[200] ^= 1
    (folder / "damaged.npz").write_bytes(content)
    check("CRC" in strata("float64", folder / "damaged.npz", "x").stderr, "strata refuses a wrong checksum")


with tempfile.TemporaryDirectory() as name:
    ours_by_numpy(pathlib.Path(name))
    numpys_by_us(pathlib.Path(name))
    both_refuse(pathlib.Path(name))
sys.exit(finish_tests())
