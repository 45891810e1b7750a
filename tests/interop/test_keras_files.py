#!/usr/bin/env python3
# needs: hdf5 libzip
"""Keras from PyPI reads files of strata, predicts the same and continues the training; and vice versa."""
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

from packages import PROGRAMS, QUICK_TO_COMPILE, ROOT, check, finish_tests, need_packages

need_packages(keras="keras==3.15.1", jax="jax")
os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["XLA_FLAGS"] = QUICK_TO_COMPILE
import h5py
import keras
import numpy as np
from keras import layers

HELPER = PROGRAMS / "interop_keras_files"
FORMATS = (".keras", ".weights.h5", ".h5")
random = np.random.default_rng(7)


def strata(network, optimizer, folder, file=None):
    """Runs strata. Returns (predictions, learning rate, losses of the next steps), or the error as a text."""
    run = subprocess.run([HELPER, network, optimizer, folder, *([file] if file else [])], capture_output=True, text=True)
    if run.returncode:
        return run.stderr.strip()
    rate, *losses = map(float, run.stdout.split())
    predictions = np.fromfile(folder / "predictions", np.float32)
    return predictions, rate, losses


def near(a, b, tolerance):
    return np.shape(a) == np.shape(b) and bool(np.all(np.abs(np.subtract(a, b)) <= tolerance))


def outputs_of(model, x):
    return np.asarray(model(x, training=False))


def predicts(model, x, expected):
    """Whether a model of Keras has these predictions."""
    return near(outputs_of(model, x), expected.reshape(len(x), -1), 1e-6)


def losses_of(model, x, y, steps=3):
    model.run_eagerly = True  # a few steps are not worth compiling
    losses = []
    for _ in range(steps):
        model.reset_metrics()
        losses.append(float(model.train_on_batch(x, y, return_dict=True)["loss"]))
    return losses


def data_for(folder, shape, classes=5, count=12, whole=None):
    scale = 0.25 if shape[0] == 28 else 1
    x = random.integers(0, whole, (count, *shape)).astype(np.float32) if whole else scale * random.random((count, *shape)).astype(np.float32)
    y = random.integers(0, classes, count).astype(np.int32)
    x.tofile(folder / "x")
    y.tofile(folder / "y")
    return x, y


def forget(model):
    """Overwrites the weights of a model, so that only a file can restore them."""
    model.set_weights([w + 1 if w.dtype.kind == "f" else w for w in model.get_weights()])


def both_ways(folder, network, shape, optimizer="adam", trains=False, classes=5, whole=None, formats=FORMATS):
    """Checks a network without a counterpart here: Keras makes its model from the file of strata, trains it, and writes it."""
    x, y = data_for(folder, shape, classes, whole=whole)
    ours = strata(network, optimizer, folder)
    check(not isinstance(ours, str), f"{network} {optimizer}: strata trains and writes", ours)
    predictions, rate, losses = ours
    model = keras.models.load_model(folder / "ours.keras")
    check(predicts(model, x, predictions), f"{network} {optimizer}: predictions of Keras, from .keras")
    if formats == FORMATS:
        forget(model)
        model.load_weights(folder / "ours.weights.h5")
        check(predicts(model, x, predictions), f"{network} {optimizer}: from .weights.h5")
        legacy = keras.models.load_model(folder / "ours.h5")
        check(predicts(legacy, x, predictions), f"{network} {optimizer}: from .h5")
    check(int(model.optimizer.iterations) == 3 and near(float(model.optimizer.learning_rate), rate, 1e-9), "with step and learning rate")
    if not trains:
        for weight in model.trainable_variables:  # Normalization would not use new statistics
            weight.assign(weight * 1.01)
    else:
        theirs = losses_of(model, x, y)
        check(near(theirs, losses, 1e-5), f"{network} {optimizer}: Keras trains on with the losses of strata", (theirs, losses))
    model.optimizer.learning_rate = 0.003
    theirs_by_strata(folder, network, optimizer, model, x, y, trains, formats)
    keras.backend.clear_session()


def theirs_by_strata(folder, network, optimizer, model, x, y, trains, formats=FORMATS):
    expected = outputs_of(model, x)
    for end in formats:
        (model.save_weights if end == ".weights.h5" else model.save)(folder / f"theirs{end}")
    losses = losses_of(model, x, y) if trains else []
    for end in formats:
        got = strata(network, optimizer, folder, folder / f"theirs{end}")
        fits = not isinstance(got, str) and near(got[0].reshape(len(x), -1), expected, 1e-6)
        check(fits, f"{network} {optimizer}: predictions of strata, from {end}", got if isinstance(got, str) else np.abs(got[0].reshape(len(x), -1) - expected).max())
        if trains and fits and end != ".h5":
            check(near(got[1], 0.003, 1e-9), f"{network} {optimizer}: with the learning rate of {end}", got[1])
            check(near(got[2], losses, 1e-5), f"{network} {optimizer}: strata trains on with the losses of Keras", (got[2], losses))


def several_ends(folder):
    """A graph of two inputs and two outputs, in both directions and as a header."""
    x, _ = data_for(folder, (6, 6, 2))
    tags = x.reshape(len(x), -1)[:, :6]
    ours = strata("several_ends", "sgd", folder)
    check(not isinstance(ours, str), "several ends: strata trains and writes", ours)
    model = keras.models.load_model(folder / "ours.keras")
    check(model.output_names == ["kind", "box"] and {i.name for i in model.inputs} == {"photo", "tags"}, "inputs and outputs have the names of nodes", model.output_names)
    check(not model.compiled, "and there is no loss")
    inputs = {"photo": x, "tags": tags}

    def outputs(model):
        return np.concatenate([np.asarray(y).ravel() for y in model(inputs, training=False)])

    check(near(outputs(model), ours[0], 1e-6), "several ends: predictions of Keras, from .keras")
    forget(model)
    model.load_weights(folder / "ours.weights.h5")
    check(near(outputs(model), ours[0], 1e-6), "several ends: from .weights.h5")
    check(near(outputs(keras.models.load_model(folder / "ours.h5")), ours[0], 1e-6), "several ends: from .h5")
    for weight in model.variables:
        weight.assign(weight * 1.01)
    for end in FORMATS:
        (model.save_weights if end == ".weights.h5" else model.save)(folder / f"theirs{end}")
        got = strata("several_ends", "sgd", folder, folder / f"theirs{end}")
        check(not isinstance(got, str) and near(got[0], outputs(model), 1e-6), f"several ends: predictions of strata, from {end}", got)


def crossing():
    """Ways that branches cannot express, with names that strata and C++ have, too."""
    start = keras.Input((6, 6, 2), name="errno")
    one = layers.Conv2D(2, 1, name="conv2d")(start)
    two = layers.Conv2D(2, 1, name="for")(layers.Add(name="add")([start, one]))
    three = layers.BatchNormalization(name="2nd-norm")(layers.Multiply()([two, layers.GlobalAveragePooling2D(keepdims=True)(one)]))
    end = layers.Concatenate(name="concat")([start, one, two, three])
    return keras.Model(start, layers.Dense(3, trainable=False)(layers.Flatten()(end)))


def weighed():
    """Two convolutions of equal shapes, one of a pixel: strata has two layers more behind and before that one."""
    start = keras.Input((6, 6, 2))
    one = layers.Conv2D(2, 1)(layers.GlobalAveragePooling2D(keepdims=True)(start))
    return keras.Model(start, layers.Dense(3)(layers.Flatten()(layers.Multiply()([layers.Conv2D(2, 1)(start), one]))))


def reshaped():
    """A layer Reshape behind a pooling, with another name, beside a convolution of the same shape."""
    start = keras.Input((4, 4, 2))
    one, two = layers.Conv2D(3, 1)(start), layers.Conv2D(3, 1)(start)
    pixel = layers.Reshape((1, 1, 3), name="resh")(layers.GlobalAveragePooling2D()(one))
    return keras.Model(start, layers.Dense(3)(layers.Flatten()(layers.Add()([layers.MaxPooling2D(4)(two), pixel]))))


def keras_mlp():
    return keras.Sequential([keras.Input((28, 28)), layers.Flatten(), layers.Dense(128, activation="relu"), layers.Dense(10, activation="softmax")])


def keras_cnn():
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(10, activation="softmax"),
        ]
    )


def keras_trained():
    """The same network, built as a user of Keras would."""
    start = keras.Input((6, 6, 2))
    h = layers.Conv2D(4, 3, activation="relu")(start)
    h = layers.BatchNormalization()(h)
    h = layers.Add()([layers.Conv2D(4, 3, padding="same")(h), h])
    h = layers.Dense(16, activation="tanh", kernel_regularizer=keras.regularizers.L2(1e-3))(layers.Flatten()(h))
    return keras.Model(start, layers.Dense(5, activation="softmax")(h))


def from_keras(folder, network, made, optimizer, trains=True):
    """Checks a model that was built here."""
    x, y = data_for(folder, made.input_shape[1:], made.output_shape[-1])
    made.compile({"adam": keras.optimizers.Adam(0.01), "sgd": keras.optimizers.SGD(0.02, momentum=0.9)}[optimizer],
                 keras.losses.SparseCategoricalCrossentropy())
    if trains:
        losses_of(made, x, y)
    made.optimizer.learning_rate = 0.003
    theirs_by_strata(folder, network, optimizer, made, x, y, trains)


def refusals(folder):
    """Checks that files that do not fit or are damaged cause one error, which names file and layer."""
    data_for(folder, (28, 28), 10)
    whole = folder / "whole.weights.h5"
    model = keras_mlp()
    model.compile("adam", "sparse_categorical_crossentropy")
    model.save_weights(whole)

    def refused(what, change, *words):
        file = folder / "changed.weights.h5"
        file.write_bytes(whole.read_bytes())
        with h5py.File(file, "r+") as f:
            change(f)
        got = strata("mlp", "adam", folder, file)
        check(isinstance(got, str) and str(file) in got and all(w in got for w in words) and "\n\n" not in got, f"{what} is one error", got)

    def replace(f, path, value):
        del f[path]
        f[path] = value

    kernel = "layers/dense/vars/0"
    refused("a missing layer", lambda f: f.__delitem__("layers/dense_1"), "dense_1/kernel: missing", "dense_1/bias")
    refused("another layer", lambda f: f.create_dataset("layers/conv2d/vars/0", data=np.zeros(3)), "conv2d: not in the network")
    refused("a wrong shape", lambda f: replace(f, kernel, np.zeros((3, 128), np.float32)), "dense/kernel: the file has (3, 128), the network (784, 128)")
    refused("a wrong precision", lambda f: replace(f, kernel, np.zeros((784, 128))), "dense/kernel", "F64", "convert_precision")
    refused("text for weights", lambda f: replace(f, kernel, "words"), "dense/kernel")
    refused("an array too many", lambda f: f.create_dataset("layers/dense/vars/2", data=np.zeros(3)), "dense: the file has 3 arrays")
    refused("a soft link", lambda f: replace(f, "layers/dense_1", h5py.SoftLink("/layers/dense")), "soft link", "dense_1")
    refused("an external link", lambda f: replace(f, kernel, h5py.ExternalLink(str(whole), "/" + kernel)), "another file", "dense")

    def outside(f):
        del f[kernel]
        f["layers/dense/vars"].create_dataset("0", (784, 128), np.float32, external=[("/etc/passwd", 0, 784 * 128 * 4)])

    refused("data in another file", outside, "another file", kernel)
    refused("a group for an array", lambda f: (f.__delitem__(kernel), f.create_group(kernel)), "dense", "not an array")
    refused("a model in the model", lambda f: f.move("layers/dense_1", "layers/sequential/layers/dense"), "sequential: a model within the model")

    def huge(f):
        del f[kernel]
        f["layers/dense/vars"].create_dataset("0", (784, 128), np.float32, chunks=(784, 128), maxshape=(None, None), compression="gzip")

    file = folder / "packed.weights.h5"
    file.write_bytes(whole.read_bytes())
    with h5py.File(file, "r+") as f:
        huge(f)
    check(not isinstance(strata("mlp", "adam", folder, file), str), "packed arrays are read")

    for optimizer, ours in ((keras.optimizers.Adamax(0.5), "another class"), (keras.optimizers.SGD(0.5), "another number of variables")):
        model.compile(optimizer, "sparse_categorical_crossentropy")
        model.save(folder / "optimizer.keras")
        got = strata("mlp", "adam", folder, folder / "optimizer.keras")
        check(not isinstance(got, str) and near(got[1], 0.01, 1e-9), f"the state of an optimizer of {ours} is left in the file", got)

    tanh = keras.Sequential([keras.Input((28, 28)), layers.Flatten(), layers.Dense(128, activation="tanh"), layers.Dense(10, activation="softmax")])
    for end in (".keras", ".h5"):
        tanh.save(folder / f"tanh{end}")
        got = strata("mlp", "adam", folder, folder / f"tanh{end}")
        check(isinstance(got, str) and "dense: the file has activation tanh, the network relu" in got, f"another activation in {end} is an error", got)

    flipped = folder / "flipped.h5"
    data_for(folder, (28, 28, 1), 10)
    keras_cnn().save(flipped)
    with h5py.File(flipped, "r+") as f:
        f["model_weights"].attrs["backend"] = "theano"
    got = strata("cnn", "adam", folder, flipped)
    check(isinstance(got, str) and "Theano flips the kernels of convolutions" in got, "convolutions of Theano are an error", got)
    data_for(folder, (28, 28), 10)

    other = keras.Sequential([keras.Input((28, 28)), layers.Flatten(), layers.Dense(10)])
    other.save(folder / "other.h5")
    got = strata("mlp", "adam", folder, folder / "other.h5")
    check("dense/kernel: the file has (784, 10), the network (784, 128)" in got and "dense_1: missing" in got, "another legacy model", got)

    content = whole.read_bytes()
    for what, bytes_ in (("that is empty", b""), ("of text", b"no HDF5" * 100), ("cut off", content[: len(content) // 3]), ("of a damaged head", content[:8] + b"\xff" * 88 + content[96:])):
        for end in FORMATS:
            file = folder / f"bad{end}"
            file.write_bytes(bytes_)
            got = strata("mlp", "adam", folder, file)
            check(isinstance(got, str) and str(file) in got and got.count("\n") == 0, f"a file {what}, as {end}, is one error", got)

    def checked(file):
        return subprocess.run([PROGRAMS / "interop_check_keras_file", file], capture_output=True, text=True, timeout=60)

    for file, arrays in ((whole, 5), (folder / "other.h5", 2), (folder / "tanh.keras", 4)):
        run = checked(file)
        check(run.returncode == 0 and int(run.stdout.split()[-2]) >= arrays, f"check_keras_file reads all of {file.name}", run.stdout + run.stderr)
    ends = []
    for _ in range(60):
        damaged = bytearray(content)
        for at in random.integers(8, 4000, 8):
            damaged[at] = random.integers(256)
        file.write_bytes(damaged)
        ends.append(checked(file))
    check(any(run.returncode == 1 for run in ends) and all(run.returncode != 1 or run.stderr.startswith(f"{file}: ") and run.stderr.count("\n") == 1 for run in ends),
          "check_keras_file ends with damaged files, or with one error", [run.stderr for run in ends])


def other_names(folder):
    """The first bytes of a file determine its format. Up to Keras 2.11, names ending in .h5, .hdf5 and .keras all meant HDF5."""
    x, _ = data_for(folder, (28, 28), 10)
    model = keras_mlp()
    model.compile("adam", "sparse_categorical_crossentropy")
    for end in FORMATS:
        file = folder / f"named{end}"
        (model.save_weights if end == ".weights.h5" else model.save)(file)
        for name in ("plain", "weights.hdf5", "old.keras", "an_archive.h5", "torch.safetensors"):
            other = folder / name
            other.write_bytes(file.read_bytes())
            got = strata("mlp", "adam", folder, other)
            check(not isinstance(got, str) and near(got[0].reshape(len(x), -1), outputs_of(model, x), 1e-6), f"{end} under the name {name} is read", got)
            if end != ".weights.h5":
                run = subprocess.run([PROGRAMS / "interop_keras_to_strata", other], capture_output=True, text=True)
                check(run.returncode == 0 and "dense<128, relu>" in run.stdout, "and by keras_to_strata", run.stderr)
    for step, version in ((1, "2.14"), (2, "2.12")):  # their groups, and their numbering of the layers of a class
        older = folder / "older.weights.h5"
        older.write_bytes((folder / "named.weights.h5").read_bytes())
        with h5py.File(older, "r+") as f:
            f.move("layers", "_layer_checkpoint_dependencies")
            if step == 2:
                f.move("_layer_checkpoint_dependencies/dense_1", "_layer_checkpoint_dependencies/dense_2")
        got = strata("mlp", "adam", folder, older)
        check(not isinstance(got, str) and near(got[0].reshape(len(x), -1), outputs_of(model, x), 1e-6), f".weights.h5 as Keras {version} wrote it", got)
    (folder / "model.json").write_text(model.to_json())
    run = subprocess.run([PROGRAMS / "interop_keras_to_strata", folder / "model.json"], capture_output=True, text=True)
    check(run.returncode == 0 and "dense<128, relu>" in run.stdout, "keras_to_strata reads model.to_json()", run.stderr)
    for name in "class", "strata", "std":
        run = subprocess.run([PROGRAMS / "interop_keras_to_strata", folder / "model.json", name], capture_output=True, text=True)
        check(run.returncode == 1 and f"'{name}' is not a valid name of a namespace" in run.stderr and not run.stdout, f"but not {name} as the namespace", run.stderr)
    with zipfile.ZipFile(folder / "model.pt", "w") as archive:
        archive.writestr("model/data.pkl", b"")
    got = strata("mlp", "adam", folder, folder / "model.pt")
    check(got == f"{folder}/model.pt: a file of PyTorch: write its tensors with safetensors.torch.save_file", "a file of PyTorch is named", got)


def functional():
    """A typical functional model: layers of activations, strides, names, branches."""
    start = keras.Input((9, 9, 3), name="pixels")
    h = layers.Conv2D(6, (3, 2), strides=2, padding="same", use_bias=False, kernel_initializer="he_normal")(start)
    h = layers.BatchNormalization(momentum=0.9, scale=False)(h)
    h = layers.ReLU(max_value=6)(h)
    short = layers.Conv2D(6, 1, activation=keras.layers.LeakyReLU(negative_slope=0.1))(h)
    long = layers.Conv2D(6, 3, padding="same", activation="gelu", kernel_regularizer=keras.regularizers.L1L2(1e-4, 1e-3))(h)
    long = layers.Add(name="inner")([layers.Conv2D(6, 1)(long), long])
    h = layers.Concatenate()([short, long, h])
    h = layers.ZeroPadding2D(((1, 0), (0, 2)))(h)
    h = layers.Add()([h, layers.Conv2D(18, 3, groups=3, padding="same", activation="swish")(h)])
    h = layers.MaxPooling2D(3, strides=1, padding="same")(h)
    h = layers.UpSampling2D(2, interpolation="bilinear")(h)
    h = layers.Conv2DTranspose(5, 2, strides=(2, 1), activation="elu")(h)
    h = layers.AveragePooling2D((2, 3))(h)
    h = layers.LayerNormalization(epsilon=1e-5)(h)
    h = layers.Reshape((-1, 5))(h)
    h = layers.GlobalMaxPooling1D()(h)
    h = layers.Dense(8, activation="tanh", bias_initializer=keras.initializers.Constant(0.25))(h)
    h = layers.Dropout(0.3)(h)
    return keras.Model(start, layers.Softmax()(layers.Dense(4)(h)))


IMAGE = (6, 6, 2)


def after(shape, *more):
    return keras.Sequential([keras.Input(shape), *more])


def joined(layer, *branches):
    start = keras.Input(IMAGE)
    return keras.Model(start, layer([branch(start) for branch in branches]))


def squeezed():
    """Channel weights as in MobileNetV3: single pixels that are broadcast to the image, and scalars beside tensors."""
    start = keras.Input(IMAGE)
    image = layers.Conv2D(4, 3)(layers.Rescaling(2.0, offset=-1.0)(start))
    weights = layers.Conv2D(4, 1)(layers.GlobalAveragePooling2D(keepdims=True)(image))
    weights = layers.ReLU(6.0)(3.0 - weights) * 0.25 + 0.5
    return keras.Model(start, layers.Flatten()(layers.Multiply()([image, weights]) - 1.5))


def options_by_shape():
    """Small models with options that depend on the shape at their layer."""
    image, row = IMAGE, (8,)

    conv = layers.Conv2D
    return {
        "last_axis_of_images": after(image, conv(4, 3), layers.BatchNormalization(axis=3), layers.LayerNormalization(axis=[3]), layers.Softmax(axis=3)),
        "last_axis_of_rows": after(row, layers.BatchNormalization(axis=1), layers.LayerNormalization(axis=1), layers.Dense(3), layers.Softmax(axis=1)),
        "joined_axis": joined(layers.Concatenate(axis=3), conv(3, 1), layers.MaxPooling2D(3, strides=1, padding="same")),
        "open_extent": after(row, layers.Reshape((-1, 2, 2)), conv(3, 2), layers.Reshape((-1, 3)), layers.GlobalAveragePooling1D()),
        "whole_noise": after(image, layers.Dropout(0.5, noise_shape=(None, 6, None, 2)), layers.Flatten(), layers.Dropout(0.5, noise_shape=(None, 72))),
        "shared_noise": after(image, layers.Dropout(0.5, noise_shape=(None, 1, 1, 1)), layers.Dropout(0.25, noise_shape=(None, 6, 1, 2)), layers.SpatialDropout2D(0.5)),
        "uneven": after((9, 8, 2), conv(4, (3, 2), strides=(2, 1), padding="same"), layers.MaxPooling2D((2, 3), strides=(1, 2)), layers.ZeroPadding2D((1, 2)),
                        layers.ZeroPadding2D(((0, 1), (2, 0))), layers.Cropping2D(((1, 0), (0, 2))), layers.Cropping2D(0), layers.UpSampling2D((1, 2)), layers.Conv2DTranspose(3, 3, strides=(1, 2)), layers.AveragePooling2D(2, padding="same")),
        "squeezed": squeezed(),
        "kept_axes": after(image, layers.GlobalAveragePooling2D(keepdims=True), conv(4, 1), layers.Flatten(), layers.Reshape((2, 2)), layers.GlobalMaxPooling1D(keepdims=True), layers.Flatten()),
        "separated": after((9, 8, 2), layers.DepthwiseConv2D((3, 2), strides=2, padding="same", depth_multiplier=2, activation="hard_silu", depthwise_regularizer="l2"),
                           layers.SeparableConv2D(4, 3, dilation_rate=2, padding="same", use_bias=False, pointwise_initializer="he_normal"), layers.Activation("hard_sigmoid")),
        "written_as_sums": keras.Model(start := keras.Input(row), layers.Dense(8)(start) * start - layers.Dense(8)(start)),
        "numbers": after(row, layers.Dense(4, kernel_regularizer=keras.regularizers.L1L2(1e-7, 0.25), kernel_initializer=keras.initializers.RandomUniform(-1e-12, 3),
                         bias_initializer=keras.initializers.Constant(-1.5)), layers.LeakyReLU(negative_slope=0), layers.ELU(1 / 3), layers.Dropout(1 / 3)),
    }


def refused_by_shape():
    """Models that strata cannot express because of a shape, each with its messages."""
    image = IMAGE

    conv = layers.Conv2D
    return {
        "a dense layer on rows": (after((4, 3), layers.Dense(2, name="d")), "d (Dense): on (None, 4, 3): dense takes a rank-1 shape"),
        "five extents": (after((12,), layers.Reshape((1, 2, 1, 3, 2), name="r")), "r (Reshape): on (None, 12): reshape takes one to four extents"),
        "an input of five extents": (after((1, 2, 1, 3, 2), layers.Flatten()), "input takes one to four positive extents"),
        "an input of any size": (after((None, None, 2), layers.GlobalAveragePooling2D()), "the extents of a sample have to be known"),
        "another axis of a softmax": (after(image, layers.Softmax(axis=1, name="s")), "s (Softmax): works along axis 1 of (None, 6, 6, 2)"),
        "two axes": (after(image, layers.LayerNormalization(axis=[2, 3], name="n")), "n (LayerNormalization): works along axis [2,3] of (None, 6, 6, 2)"),
        "rows of images joined": (joined(layers.Concatenate(axis=1, name="j"), conv(2, 1), conv(2, 1)), "j (Concatenate): works along axis 1 of (None, 6, 6, 2)"),
        "numbers that are broadcast": (joined(layers.Multiply(name="j"), conv(2, 1), conv(1, 1)), "j (Multiply): on (None, 6, 6, 2), (None, 6, 6, 1): multiply takes branches"),
        "nine branches": (joined(layers.Add(name="j"), *[conv(2, 1) for _ in range(9)]), "j (Add): a join takes at most 8 branches"),
        "noise over samples": (after(image, layers.Dropout(0.5, noise_shape=(1, 1, 1, 2), name="d")), "d (Dropout): its noise_shape is not null for the samples"),
        "an embedding of sums": (after((4,), layers.Dense(3), layers.Embedding(5, 2, name="e")), "e (Embedding): embedding takes the row indices of the batch"),
    }


def weights_only(whole, file):
    """Writes the file that save_weights of Keras 2 writes."""
    with h5py.File(whole) as model, h5py.File(file, "w") as weights:
        root = model["model_weights"]
        for name, value in root.attrs.items():
            weights.attrs[name] = value
        for name in root:
            root.copy(name, weights)


def header_of(model, file, name):
    """Runs keras_to_strata. Returns (status, header, complaints)."""
    model.save(file)
    run = subprocess.run([PROGRAMS / "interop_keras_to_strata", file, name], capture_output=True, text=True)
    return run.returncode, run.stdout, run.stderr


PREDICT = """
template <class Network>
void predict(const char* weights, const char* in, const char* out) {
  std::ifstream file(in, std::ios::binary);
  std::vector<float> x(std::size_t(Network::input_shape.size()) * 12);
  file.read(reinterpret_cast<char*>(x.data()), std::streamsize(x.size() * 4));
  const auto y = strata::predictor{Network{}, weights}.predict(x).values;
  std::ofstream(out, std::ios::binary).write(reinterpret_cast<const char*>(y.data()), std::streamsize(y.size() * 4));
}
void predict_several() {
  std::ifstream file("several.x", std::ios::binary);
  std::vector<float> start(12 * 72), other(12 * 6);
  for (std::size_t i = 0; i < 12; ++i) {
    file.read(reinterpret_cast<char*>(&start[72 * i]), 72 * 4);
    file.read(reinterpret_cast<char*>(&other[6 * i]), 6 * 4);
  }
  const strata::predictor model{several::network{}, "several.keras"};
  const auto [y, z] = model.predict(strata::of<several::start>(start), strata::of<several::other>(other));
  std::ofstream out("several.y", std::ios::binary);
  for (const auto* values : {&y.values, &z.values})
    out.write(reinterpret_cast<const char*>(values->data()), std::streamsize(values->size() * 4));
}
"""


def headers(folder):
    """Headers of keras_to_strata compile, and their networks predict as the models do."""
    image = folder / "image"
    image.mkdir()
    data_for(image, (12, 12, 3))
    strata("image", "adam", image)
    models = {"image": keras.models.load_model(image / "ours.keras"), "functional": functional(), "mlp": keras_mlp(), "crossing": crossing(), "weighed": weighed(), "reshaped": reshaped()}
    source = ["#include <fstream>", "#include <vector>", "#include <strata/interop/keras/keras_files.hpp>", "#include <strata/train/predictor.hpp>"]
    calls, expected = [], {}
    for name, model in models.items():
        status, header, complaints = header_of(model, folder / f"{name}.keras", name)
        check(status == 0 and not complaints, f"keras_to_strata converts all of {name}", complaints)
        check(str(folder) not in header, "the header has the name of the file, and no folder", header)
        old = header_of(model, folder / f"{name}.h5", name)
        check(old[0] == 0 and old[1].splitlines()[1:] == header.splitlines()[1:], f"and in .h5 of {name}", old)
        (folder / f"{name}.hpp").write_text(header)
        x, _ = data_for(folder, model.input_shape[1:])
        x.tofile(folder / f"{name}.x")
        expected[name] = outputs_of(model, x)
        source.append(f'#include "{name}.hpp"')
        model.save_weights(folder / f"{name}.weights.h5")
        weights_only(folder / f"{name}.h5", folder / f"{name}.only.h5")
        for end in (*FORMATS, ".only.h5"):
            calls.append(f'predict<{name}::network>("{name}{end}", "{name}.x", "{name}{end}.y");')
    start, other = keras.Input((6, 6, 2), name="start"), keras.Input((6,), name="other")
    both = layers.Concatenate(name="both")([layers.Flatten()(layers.Conv2D(2, 3)(start)), other])
    several = keras.Model([start, other], [layers.Dense(3)(both), layers.Dense(2)(layers.Concatenate()([both, other]))])
    status, header, complaints = header_of(several, folder / "several.keras", "several")
    check(status == 0 and not complaints and "struct other : input<6> {};" in header, "two inputs and two outputs become a graph", header + complaints)
    (folder / "several.hpp").write_text(header)
    x, _ = data_for(folder, (78,))
    x.tofile(folder / "several.x")
    ends = several([x[:, :72].reshape(-1, 6, 6, 2), x[:, 72:]], training=False)
    expected["several"] = np.concatenate([np.asarray(y).ravel() for y in ends])
    source.append('#include "several.hpp"')
    calls.append("predict_several();")
    for name, model in options_by_shape().items():
        for end in (".keras", ".h5"):
            status, header, complaints = header_of(model, folder / f"{name}{end}", name + end[1:])
            check(status == 0 and not complaints, f"keras_to_strata converts {name}{end}", complaints)
            (folder / f"{name}{end}.hpp").write_text(header)
            extents = ", ".join(map(str, model.output_shape[1:]))
            source += [f'#include "{name}{end}.hpp"', f"static_assert({name + end[1:]}::network::output_shape == strata::shape{{{extents}}});"]
    (folder / "all.cpp").write_text("\n".join([*source, PREDICT, "int main() {", *calls, "}\n"]))
    def library(which):
        return subprocess.run(["pkg-config", which, "hdf5", "libzip"], capture_output=True, text=True).stdout.split()

    compiler = os.environ.get("GXX", "g++")
    build = [compiler, "-std=c++20", "-O0", f"-I{ROOT}/include", *library("--cflags"), "all.cpp", "-o", "all", *library("--libs"), "-lz", "-pthread"]
    compiled = subprocess.run(build, cwd=folder, capture_output=True, text=True)
    check(compiled.returncode == 0, "the headers compile", compiled.stderr[:2000])
    ran = subprocess.run([folder / "all"], cwd=folder, capture_output=True, text=True)
    check(ran.returncode == 0, "and load the weights of the same files", ran.stderr)
    for name, outputs in expected.items():
        for end in (*FORMATS, ".only.h5") if name != "several" else [""]:
            got = np.fromfile(folder / f"{name}{end}.y", np.float32) if ran.returncode == 0 else np.zeros(0)
            check(got.size == outputs.size and near(got.reshape(outputs.shape), outputs, 1e-6), f"predictions of the header of {name}{end}")

    base = keras.Sequential([keras.Input((6, 6, 2)), layers.Conv2D(4, 3), layers.BatchNormalization(), layers.Flatten(), layers.Dense(3)])
    for layer in base.layers[:2]:
        layer.trainable = False
    status, header, complaints = header_of(base, folder / "frozen.keras", "frozen")
    check(status == 0 and not complaints and "frozen<conv2d<4, 3>, batch_norm<>>,\n    flatten,\n    dense<3>>" in header, "layers that are not trainable are frozen", header + complaints)

    start, shared = keras.Input((6, 6, 2), name="start"), layers.Conv2D(2, 1, name="shared")
    unknown = {
        "another layer": (keras.Sequential([keras.Input((6, 3)), layers.LSTM(4, name="memory")]), "memory (LSTM): there is no such layer"),
        "an option": (keras.Sequential([keras.Input((6,)), layers.Dense(3, name="d", kernel_constraint="non_neg")]), "d (Dense): there is no option kernel_constraint"),
        "an activation": (keras.Sequential([keras.Input((6,)), layers.Dense(3, name="d", activation="mish")]), "mish"),
        "another axis": (keras.Sequential([keras.Input((6, 6, 2)), layers.BatchNormalization(axis=1, name="b")]), "b (BatchNormalization): works along axis 1"),
        "a shared layer": (keras.Model(start, shared(shared(start))), "shared (Conv2D): is called several times"),
        "a model within": (keras.Sequential([keras.Input((6,)), keras.Sequential([layers.Dense(2)], name="within")]), "within (Sequential): a model within the model"),
    }
    for what, (model, words) in (unknown | refused_by_shape()).items():
        for end in (".keras", ".h5"):
            status, header, complaints = header_of(model, folder / f"unknown{end}", "unknown")
            check(status == 1 and not header and words in complaints, f"{what} in {end} is listed", complaints)

    # Everything unknown is in one list, once.
    start, other = keras.Input((6, 6, 2), name="start"), keras.Input((6,), name="other")
    h = keras.Sequential([keras.Input((6, 6, 2)), layers.Conv2D(2, 1), layers.LayerNormalization(axis=1, name="inner")], name="within")(start)
    h = layers.Dense(3, activation="mish", name="dense")(layers.Flatten()(keras.ops.maximum(h, 1.0)))
    h = layers.Dropout(0.5, name="noise")(layers.Concatenate(axis=1)([h, other]), training=True)
    everything = keras.Model([start, other], [layers.LSTM(4, name="memory")(layers.Reshape((3, 3))(h)), h])
    status, header, complaints = header_of(everything, folder / "everything.keras", "everything")
    lines = complaints.splitlines()[1:]
    expected = ["within (Sequential): a model within the model", "within/inner (LayerNormalization): works along axis", "(Maximum): is called with a constant, 1.0", "mish", "noise (Dropout): is called with training=true", "memory (LSTM): there is no such layer"]
    check(status == 1 and not header and all(sum(e in line for line in lines) == 1 for e in expected) and len(lines) == len(expected), "one list has everything that is unknown", complaints)


keras.utils.set_random_seed(1)
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    both_ways(folder, "mlp", (28, 28), "sgd", trains=True, classes=10)
    both_ways(folder, "trained", (6, 6, 2), "adam", trains=True)
    both_ways(folder, "tuned", (6, 6, 2), "adam", trains=True)
    both_ways(folder, "cnn", (28, 28, 1), classes=10)
    both_ways(folder, "image", (12, 12, 3))
    both_ways(folder, "graph", (6, 6, 4))
    both_ways(folder, "separated", (9, 8, 3), trains=True)
    both_ways(folder, "words", (7,), whole=20)
    several_ends(folder)
    for optimizer in ("sgd_plain", "amsgrad", "rmsprop", "adagrad", "ftrl"):
        both_ways(folder, "gap", (5, 5, 2), optimizer, trains=True, formats=[".weights.h5"])
    from_keras(folder, "mlp", keras_mlp(), "adam")
    from_keras(folder, "cnn", keras_cnn(), "adam", trains=False)
    from_keras(folder, "trained", keras_trained(), "adam")
    from_keras(folder, "trained", keras_trained(), "sgd")
    refusals(folder)
    other_names(folder)
    headers(folder)
sys.exit(finish_tests())
