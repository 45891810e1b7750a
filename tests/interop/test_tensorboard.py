#!/usr/bin/env python3
"""TensorBoard's own reader reads the files of tensor_board, also while they grow and after a kill."""
import collections
import io
import pathlib
import subprocess
import sys
import tempfile

from packages import PROGRAMS, check, finish_tests, need_packages

need_packages(tensorboard="tensorboard", setuptools="setuptools<81", PIL="pillow")

import numpy
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util

with tempfile.TemporaryDirectory() as folder:
    logs = pathlib.Path(folder) / "logs/run"
    run = subprocess.run([PROGRAMS / "interop_events", logs], capture_output=True, text=True)
    check(run.returncode == 0, "the program trains", run.stderr)
    expected = collections.defaultdict(list)
    for line in run.stdout.splitlines():
        name, step, value = line.split()
        expected[name].append((int(step), float(value)))

    def read(which):
        accumulator = EventAccumulator(str(logs / which), size_guidance={"tensors": 0})
        accumulator.Reload()
        return accumulator

    def scalars(accumulator, tag):
        return [(e.step, float(tensor_util.make_ndarray(e.tensor_proto))) for e in accumulator.Tensors(tag)]

    def plugins(accumulator):
        return {tag: accumulator.SummaryMetadata(tag).plugin_data.plugin_name for tag in accumulator.Tags()["tensors"]}

    train, validation = read("train"), read("validation")
    check(
        plugins(train)
        == {t: "scalars" for t in ("batch_loss", "batch_steps_per_second", "epoch_loss", "epoch_accuracy", "epoch_learning_rate", "epoch_steps_per_second")}
        | {f"{layer}/{weight}/{kind}": f"{kind}s" for layer in ("conv2d", "dense", "dense_1") for weight in ("kernel", "bias") for kind in ("histogram", "image")}
        | {f"{layer}/{weight}/gradient": "histograms" for layer in ("conv2d", "dense", "dense_1") for weight in ("kernel", "bias")},
        "the tags of Keras in train",
        plugins(train),
    )
    check(
        plugins(validation)
        == {t: "scalars" for m in ("loss", "accuracy") for t in (f"epoch_{m}", f"evaluation_{m}_vs_iterations")},
        "and in validation",
        plugins(validation),
    )
    for tag, accumulator, name in (
        ("batch_loss", train, "batch_loss"),
        ("epoch_loss", train, "loss"),
        ("epoch_accuracy", train, "accuracy"),
        ("epoch_loss", validation, "val_loss"),
        ("epoch_accuracy", validation, "val_accuracy"),
    ):
        found = scalars(accumulator, tag)
        check(found == expected[name] and len(found) >= 3, f"{tag}: the values of the training", (found, expected[name]))
    check([s for s, _ in scalars(validation, "evaluation_loss_vs_iterations")] == [4, 8, 12], "updates, beside them")
    check(all(v > 0 for _, v in scalars(train, "epoch_steps_per_second")), "steps per second")
    check([v for _, v in scalars(train, "epoch_learning_rate")] == [0.009999999776482582] * 3, "the learning rate")

    graph = {n.name: n for n in train.Graph().node}
    shapes = {name: [d.size for d in n.attr["_output_shapes"].list.shape[0].dim] for name, n in graph.items()}
    inputs = {name: list(n.input) for name, n in graph.items()}
    check(
        inputs
        == {
            "conv2d/kernel": [],
            "conv2d/bias": [],
            "dense/kernel": [],
            "dense/bias": [],
            "dense_1/kernel": [],
            "dense_1/bias": [],
            "input_layer": [],
            "conv2d/convolution": ["input_layer", "conv2d/kernel", "conv2d/bias"],
            "conv2d/relu": ["conv2d/convolution"],
            "flatten": ["conv2d/relu"],
            "dense/affine": ["flatten", "dense/kernel", "dense/bias"],
            "dense/relu": ["dense/affine"],
            "dense_1/affine": ["dense/relu", "dense_1/kernel", "dense_1/bias"],
            "dense_1/softmax": ["dense_1/affine"],
        },
        "the graph of the network",
        inputs,
    )
    check(graph["dense/affine"].op == "affine" and graph["dense/kernel"].op == "Parameter", "its operations")
    check(shapes["input_layer"] == [-1, 28, 28, 1] and shapes["dense_1/kernel"] == [8, 10] and shapes["dense/relu"] == [-1, 8], "its shapes", shapes)

    histograms = train.Tensors("dense/kernel/histogram")
    check([h.step for h in histograms] == [0, 2], "histograms every second epoch")
    for h in histograms:
        rows = tensor_util.make_ndarray(h.tensor_proto)
        check(rows.shape == (30, 3) and rows[:, 2].sum() == 8 * 8 * 2 * 8, "30 buckets of all weights")
        check((rows[:, 0] <= rows[:, 1]).all() and (rows[1:, 0] == rows[:-1, 1]).all(), "one after the other")
    last = [v for _, v in expected["dense_1/kernel"]]
    rows = tensor_util.make_ndarray(train.Tensors("dense_1/kernel/histogram")[-1].tensor_proto)
    check(all(rows[0, 0] <= w <= rows[-1, 1] for w in last), "around the weights")

    gradients = train.Tensors("dense_1/bias/gradient")
    check([h.step for h in gradients] == [0, 2], "gradients every second epoch")
    for h in gradients:
        rows = tensor_util.make_ndarray(h.tensor_proto)
        check(rows[:, 2].sum() == 10 and rows[0, 0] < 0 < rows[-1, 1], "of all biases; with softmax they add up to 0")

    def images(accumulator, tag):
        width, height, *pictures = accumulator.Tensors(tag)[-1].tensor_proto.string_val
        pixels = [numpy.asarray(Image.open(io.BytesIO(p))) for p in pictures]
        check(all(p.shape[:2] == (int(height), int(width)) for p in pixels), f"{tag}: images of the declared size")
        return pixels

    def gray(weights):
        return numpy.floor(255 * ((weights - weights.min()) / (weights.max() - weights.min())) + 0.5)

    (kernel,) = images(train, "dense_1/kernel/image")
    check((kernel == gray(numpy.array(last).reshape(8, 10))).all(), "a kernel of dense as an image", str(kernel))
    check(images(train, "dense/kernel/image")[0].shape == (8, 128), "which lies on its longer side")
    check(images(train, "dense/bias/image")[0].shape == (8, 1), "a bias")
    filters = gray(numpy.array([v for _, v in expected["conv2d/kernel"]])).reshape(2, 5, 5)
    check((numpy.array(images(train, "conv2d/kernel/image")) == filters).all(), "each filter of a convolution")
    pictures = read("pictures")
    n = numpy.arange(2 * 200 * 300).reshape(2, 200, 300)
    check(
        (numpy.array(images(pictures, "red_and_blue")) == numpy.stack([n % 251, 0 * n, n // 300 % 256], axis=-1)).all(),
        "two images in color",
    )
    check((images(pictures, "clear")[0] == numpy.arange(1, 9).reshape(2, 1, 4)).all(), "and one with opacity")
    check(expected["refused"] == [(0, 1.0)], "the wrong number of pixels is an error")

    # A killed process leaves complete records and perhaps a part of one.
    (file,) = (logs / "train").iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) * 2 // 5 + 1])
    found = scalars(read("train"), "batch_loss")
    check(0 < len(found) < 12 and found == expected["batch_loss"][: len(found)], "a truncated file is read up to its end")

    unwritable = pathlib.Path(folder) / "file"
    unwritable.write_text("")
    run = subprocess.run([PROGRAMS / "interop_events", unwritable / "logs"], capture_output=True, text=True)
    check(run.returncode == 1 and str(unwritable) in run.stderr, "a folder that cannot be made is an error that names it", run.stderr)
sys.exit(finish_tests())
