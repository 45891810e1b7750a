#!/usr/bin/env python3
# needs: protozero
"""TensorFlow reads the TFRecord files that strata writes, strata reads those of TensorFlow, and both refuse damaged files.

(Without TensorFlow, tests/unit/data_tf_record.cpp reads recorded files of it.)
"""
import pathlib
import subprocess
import sys
import tempfile
from packages import PROGRAMS, check, finish_tests, need_tensorflow

need_tensorflow()

import numpy as np
import tensorflow as tf

PROGRAM = PROGRAMS / "interop_tf_record"
FORMATS = ["", "GZIP", "ZLIB"]


def strata(command, path, kind):
    return subprocess.run([PROGRAM, command, path, kind], capture_output=True, text=True)


def records_of(path, kind):
    """The records that tf.data reads; None if it refuses."""
    try:
        return [record.numpy() for record in tf.data.TFRecordDataset(path, compression_type=kind)]
    except tf.errors.OpError:
        return None


def feature(values):
    if isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def write(path, kind, records):
    with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(compression_type=kind)) as writer:
        for record in records:
            writer.write(record)


def theirs_by_us(folder):
    random = np.random.default_rng(1)
    records = [random.bytes(size) for size in (0, 1, 8, 100, 262_144, 1_000_000, 3)]
    examples, lines = [], []
    for i in range(20):
        floats = [float(x) for x in random.standard_normal(i + 1).astype(np.float32)]
        whole = [int(n) for n in random.integers(-(2**63), 2**63 - 1, i + 1)]
        features = {"floats": feature(floats), "whole": feature(whole), "text": feature([b"a\0b", b"", random.bytes(i)])}
        examples.append(tf.train.Example(features=tf.train.Features(feature=features)))
        lines.append({
            "floats 2 " + " ".join(x.hex() for x in floats),
            "whole 3 " + " ".join(map(str, whole)),
            "text 1 " + " ".join("x" + b.hex() for b in features["text"].bytes_list.value),
        })
    for kind in FORMATS:
        path = folder / f"theirs{kind}"
        write(path, kind, records)
        printed = strata("records", path, kind).stdout
        check(printed == "".join(r.hex() + "\n" for r in records), f"strata reads records '{kind}'")
        write(path, kind, [e.SerializeToString() for e in examples])
        printed = strata("examples", path, kind).stdout.splitlines()
        read = [{canonical(word) for word in line.split(" ; ") if word} for line in printed]
        check(read == lines, f"strata reads Examples '{kind}'")


def canonical(word):
    """A hexadecimal float in one form: C and Python write it differently."""
    key, kind, *values = word.split()
    return " ".join([key, kind, *(float.fromhex(v).hex() for v in values)] if kind == "2" else [key, kind, *values])


def ours_by_them(folder):
    for kind in FORMATS:
        path = folder / f"ours{kind}"
        written = strata("write", path, kind)
        check(written.returncode == 0, f"strata writes '{kind}' {written.stderr}")
        examples = [tf.train.Example.FromString(r) for r in records_of(str(path), kind) or []]
        check(len(examples) == 3, f"TensorFlow reads as many records '{kind}'")
        for i, example in enumerate(examples):
            f = example.features.feature
            same = np.array_equal(f["floats"].float_list.value, np.float32(0.1) * np.arange(100_000 * i, dtype=np.float32))
            same &= list(f["integers"].int64_list.value) == [i, -1, -(2**63), 2**63 - 1]
            same &= list(f["name"].bytes_list.value) == [b"na\0me"] and list(f[""].int64_list.value) == [5]
            same &= f["none"].WhichOneof("kind") == "bytes_list" and not f["none"].bytes_list.value
            check(same, f"TensorFlow reads Example {i} '{kind}'")
        wanted = {"floats": tf.io.FixedLenFeature([100_000], tf.float32)}
        parsed = tf.io.parse_single_example(examples[1].SerializeToString(), wanted)
        check(parsed["floats"].shape == (100_000,), f"tf.io.parse_single_example reads it '{kind}'")


def both_refuse(folder):
    random = np.random.default_rng(2)
    for kind in FORMATS:
        path = folder / f"damaged{kind}"
        write(path, kind, [random.bytes(50) for _ in range(5)])
        whole = path.read_bytes()
        agreed = refused = 0
        trials = 200
        for _ in range(trials):
            bad = bytearray(whole)
            bad[random.integers(len(bad))] ^= 1 << random.integers(8)
            if random.integers(4) == 0:
                del bad[random.integers(len(bad)):]
            path.write_bytes(bad)
            theirs, ours = records_of(str(path), kind), strata("records", path, kind)
            refused += theirs is None
            same = theirs is not None and ours.stdout.split() == [r.hex() for r in theirs]
            # TensorFlow accepts a file that ends within a header, and a compressed stream without an end.
            stricter = same and "the file ends within its header" in ours.stderr
            agreed += (theirs is None or stricter) if ours.returncode else same
        check(agreed == trials and refused > trials // 2, f"both refuse the same damage '{kind}': {agreed} of {trials}")


with tempfile.TemporaryDirectory() as name:
    theirs_by_us(pathlib.Path(name))
    ours_by_them(pathlib.Path(name))
    both_refuse(pathlib.Path(name))
sys.exit(finish_tests())
