#!/usr/bin/env python3
"""Records recorded/input_gradients.safetensors: gradients of a weighted loss with respect to two inputs, and of given gradients of an output.

    python3 -m venv venv && venv/bin/pip install keras==3.15.1 jax==0.10.2 safetensors==0.8.0 numpy==2.4.6
    venv/bin/python generate_input_gradients.py     # fails if Keras and the NumPy below disagree

Keras runs on JAX in float64; JAX differentiates the model as it predicts. NumPy computes the same predictions of inputs with a small
imaginary part in one element, which gives the derivative to all digits.
"""

import json
import os
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_ENABLE_X64"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import keras
import numpy as np
from safetensors.numpy import save_file

keras.config.set_floatx("float64")
keras.src.backend.common.dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"

COUNT, CLASSES, WEIGHT = 4, 3, 0.25
random = np.random.default_rng(1)


def short(shape, scale):
    """Random numbers that are exact in float32."""
    return random.uniform(-scale, scale, shape).astype(np.float32).astype(np.float64)


image, numbers = short((COUNT, 6, 6, 2), 1), short((COUNT, 3), 1)
kind, box = random.integers(0, CLASSES, COUNT).astype(np.int32), short((COUNT, 2), 1)
given = short((COUNT, 2), 1)

layers = keras.layers
of_image, of_numbers = keras.Input((6, 6, 2)), keras.Input((3,))
x = layers.Conv2D(3, 3, activation="relu")(of_image)
x = layers.BatchNormalization()(x)
x = layers.MaxPooling2D(2)(x)
x = layers.Dropout(0.5)(layers.Flatten()(x))
x = layers.Dense(5, activation="tanh")(layers.Concatenate()([x, of_numbers]))
model = keras.Model([of_image, of_numbers], [layers.Dense(CLASSES, activation="softmax")(x), layers.Dense(2)(x)])
names = ["conv2d/kernel", "conv2d/bias"]
names += [f"batch_normalization/{n}" for n in ("gamma", "beta", "moving_mean", "moving_variance")]
names += [f"{layer}/{n}" for layer in ("dense", "dense_1", "dense_2") for n in ("kernel", "bias")]
w = {name: short(v.shape, 0.5) + (1 if name.endswith(("gamma", "variance")) else 0) for name, v in zip(names, model.weights)}
model.set_weights([w[name] for name in names])


def predicted(image, numbers):
    trained, state = [[v.value for v in vs] for vs in (model.trainable_variables, model.non_trainable_variables)]
    return model.stateless_call(trained, state, [image, numbers], training=False)[0]


def loss(inputs):
    kinds, boxes = predicted(*inputs)
    return keras.losses.sparse_categorical_crossentropy(kind, kinds).sum() + WEIGHT * keras.losses.mean_squared_error(box, boxes).sum()


def product(inputs):
    return (predicted(*inputs)[1] * given).sum()


def second(image, numbers):
    """The losses and the products of all samples, in NumPy."""
    windows = np.stack([image[:, i : i + 4, j : j + 4] for i in range(3) for j in range(3)], 3)
    z = np.einsum("nhwkc,kcf->nhwf", windows, w["conv2d/kernel"].reshape(9, 2, 3)) + w["conv2d/bias"]
    n = [w[f"batch_normalization/{name}"] for name in ("gamma", "beta", "moving_mean", "moving_variance")]
    z = (np.where(z.real > 0, z, 0) - n[2]) / np.sqrt(n[3] + 1e-3) * n[0] + n[1]
    parts = np.stack([z[:, i::2, j::2] for i in (0, 1) for j in (0, 1)])
    pooled = np.take_along_axis(parts, parts.real.argmax(0)[None], 0)[0]
    joined = np.concatenate([pooled.reshape(COUNT, -1), numbers], 1)
    h = np.tanh(joined @ w["dense/kernel"] + w["dense/bias"])
    logits = h @ w["dense_1/kernel"] + w["dense_1/bias"]
    boxes = h @ w["dense_2/kernel"] + w["dense_2/bias"]
    of_kind = np.log(np.exp(logits).sum(1)) - logits[np.arange(COUNT), kind]
    return of_kind + WEIGHT * ((boxes - box) ** 2).mean(1), (boxes * given).sum(1)


def derivatives(which):
    """Of the losses and of the products with respect to input 0 or 1: an element of all samples at a time."""
    inputs = [image.astype(complex), numbers.astype(complex)]
    out = np.zeros((2, *inputs[which].shape))
    for at in np.ndindex(inputs[which].shape[1:]):
        moved = [each.copy() for each in inputs]
        moved[which][(slice(None), *at)] += 1e-30j
        for k, values in enumerate(second(*moved)):
            out[(k, slice(None), *at)] = values.imag / 1e-30
    return out


tensors = {"image": image, "numbers": numbers, "kind": kind, "box": box, "given": given} | {f"weights/{n}": v for n, v in w.items()}
for k, (name, function) in enumerate({"loss": loss, "given": product}.items()):
    for which, gradient in enumerate(jax.grad(function)((jnp.asarray(image), jnp.asarray(numbers)))):
        ours, other = np.asarray(gradient, np.float64), derivatives(which)[k]
        assert np.abs(ours - other).max() <= 1e-12 * np.abs(ours).max(), name
        tensors[f"gradients_of_{name}/{('image', 'numbers')[which]}"] = np.ascontiguousarray(ours)

path = Path(__file__).resolve().parent / "recorded" / "input_gradients.safetensors"
save_file(tensors, path, {"recording": json.dumps({"keras": keras.__version__})})
path.chmod(0o644)
print(f"{path.name} {len(tensors)} tensors {path.stat().st_size:,} bytes")
