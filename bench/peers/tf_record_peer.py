"""tf.data beside strata on the same TFRecord files, in turns, on one core each: GB of records per second, and the ratio.

    bench/run --build tf_record
    build/peers-keras/bin/python bench/peers/tf_record_peer.py [--seconds S]

build/peers-keras comes from bench/run sweep; any other Python with TensorFlow will do.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])  # before any thread starts; strata's process inherits it
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDS, BATCH = 60_000, 64


def write(path: pathlib.Path, kind: str) -> int:
    random, size = np.random.default_rng(1), 0
    with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(compression_type=kind)) as writer:
        for i in range(RECORDS):
            image = tf.train.FloatList(value=random.integers(0, 256, 784) / np.float32(255))
            features = {"image": tf.train.Feature(float_list=image),
                        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 10]))}
            record = tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
            writer.write(record)
            size += len(record)
    return size


def pipeline(path: pathlib.Path, kind: str, what: str) -> tf.data.Dataset:
    """Iterates in TensorFlow's C++ code: reduce() over batches is the fastest way to consume a data set."""
    records = tf.data.TFRecordDataset(str(path), compression_type=kind).batch(BATCH)
    if what == "read":
        return records
    wanted = {"image": tf.io.FixedLenFeature([784], tf.float32), "label": tf.io.FixedLenFeature([], tf.int64)}
    return records.map(lambda batch: tf.io.parse_example(batch, wanted))


def theirs(path: pathlib.Path, kind: str, what: str, size: int, seconds: float) -> float:
    dataset = pipeline(path, kind, what)
    start, best = time.perf_counter(), 0.0
    while best == 0.0 or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        dataset.reduce(np.int64(0), lambda n, _: n + 1).numpy()
        best = max(best, size / (time.perf_counter() - begin) / 1e9)
    return best


def ours(path: pathlib.Path, kind: str, what: str, seconds: float) -> float:
    command = [ROOT / "build/bench/bench/tf_record", "--file", path, "--compression", kind, "--what", what]
    done = subprocess.run([*command, "--seconds", str(seconds)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["gb_per_second"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4)
    seconds = parser.parse_args().seconds
    print(f"strata beside TensorFlow {tf.__version__}: GB of records per second, {RECORDS} Examples of 784 floats, one core")
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("", "GZIP"):
            path = pathlib.Path(folder) / f"records{kind}"
            size = write(path, kind)
            for what in ("read", "examples"):
                a = b = 0.0
                for _ in range(2):
                    a = max(a, ours(path, kind, what, seconds / 2))
                    b = max(b, theirs(path, kind, what, size, seconds / 2))
                print(f"{what:10}{kind or 'plain':8}{a:8.3f}{b:8.3f}{a / b:8.1f} x", flush=True)


main()
