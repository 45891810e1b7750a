#!/usr/bin/env python3
"""Records recorded/enlarging.safetensors: the layers that make images larger, their outputs and gradients.

    python3 -m venv venv && venv/bin/pip install keras==3.15.1 jax==0.10.2 safetensors==0.8.0 numpy==2.4.6
    venv/bin/python generate_enlarging.py     # fails if Keras and the NumPy below disagree

Keras runs on JAX in float64.
"""

import json
import os
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_ENABLE_X64"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import keras
import numpy as np
from safetensors.numpy import save_file

keras.config.set_floatx("float64")
random = np.random.default_rng(19)

UP, TRANSPOSE = keras.layers.UpSampling2D, keras.layers.Conv2DTranspose
CASES = {  # Keras' layer, shape of the input with the batch
    "up_sampling2d": (UP, (2, 3, 5, 4), dict(size=2)),
    "up_sampling2d_3x1": (UP, (2, 2, 3, 5), dict(size=(3, 1))),
    "up_sampling2d_bilinear": (UP, (2, 3, 5, 4), dict(size=2, interpolation="bilinear")),
    "up_sampling2d_bilinear_1x4": (UP, (2, 3, 2, 3), dict(size=(1, 4), interpolation="bilinear")),
    "up_sampling2d_bilinear_3": (UP, (1, 4, 1, 7), dict(size=3, interpolation="bilinear")),
    "conv2d_transpose": (TRANSPOSE, (2, 4, 5, 3), dict(filters=5, kernel_size=3)),
    "conv2d_transpose_same": (TRANSPOSE, (2, 4, 5, 3), dict(filters=5, kernel_size=4, padding="same")),
    "conv2d_transpose_stride2": (TRANSPOSE, (2, 4, 3, 5), dict(filters=4, kernel_size=3, strides=2)),
    "conv2d_transpose_stride2_same": (TRANSPOSE, (2, 4, 3, 17), dict(filters=19, kernel_size=3, strides=2, padding="same")),
    "conv2d_transpose_4x4_stride2_same": (TRANSPOSE, (2, 3, 4, 2), dict(filters=3, kernel_size=4, strides=2, padding="same")),
    "conv2d_transpose_2x2_stride2": (TRANSPOSE, (1, 4, 4, 6), dict(filters=3, kernel_size=2, strides=2, use_bias=False)),
    "conv2d_transpose_gaps": (TRANSPOSE, (2, 3, 2, 3), dict(filters=2, kernel_size=(1, 2), strides=(2, 3))),
    "conv2d_transpose_gaps_same": (TRANSPOSE, (2, 3, 2, 3), dict(filters=2, kernel_size=1, strides=2, padding="same")),
    "conv2d_transpose_dilated": (TRANSPOSE, (2, 4, 3, 3), dict(filters=2, kernel_size=3, dilation_rate=2)),
    "conv2d_transpose_tiles": (TRANSPOSE, (2, 6, 7, 16), dict(filters=16, kernel_size=3, padding="same", activation="relu")),
}
tensors = {}


def numbers(shape):
    """Random numbers that are exact in float32."""
    return random.uniform(-2, 2, shape).astype(np.float32).astype(np.float64)


def put(name, keras_value, numpy_value):
    ours, second = np.asarray(keras_value, np.float64), np.asarray(numpy_value, np.float64)
    assert ours.shape == second.shape and np.abs(ours - second).max() <= 1e-13 * np.abs(ours).max(), name
    tensors[name] = np.ascontiguousarray(ours)


def enlarging_matrix(pixels, size, interpolation):
    m = np.zeros((pixels * size, pixels))
    for to in range(pixels * size):
        place = (to + 0.5) / size - 0.5
        low = int(np.floor(place))
        if interpolation == "nearest":
            m[to, to // size] = 1
        else:
            m[to, max(low, 0)] += 1 - (place - low)
            m[to, min(low + 1, pixels - 1)] += place - low
    return m


def up_sampled(x, weights, size, interpolation="nearest"):
    down, across = (size, size) if isinstance(size, int) else size
    rows, columns = enlarging_matrix(x.shape[1], down, interpolation), enlarging_matrix(x.shape[2], across, interpolation)
    return (
        np.einsum("ih,nhwc,jw->nijc", rows, x, columns),
        lambda dy: (np.einsum("ih,nijc,jw->nhwc", rows, dy, columns), []),
    )


def transposed(x, weights, filters, kernel_size, strides=1, padding="valid", dilation_rate=1, use_bias=True, activation=None):
    pair = lambda v: (v, v) if isinstance(v, int) else v
    (kh, kw), (sh, sw), (dh, dw) = pair(kernel_size), pair(strides), pair(dilation_rate)
    w, places, sizes = weights[0], [], []
    for n, k, s, d in ((x.shape[1], kh, sh, dh), (x.shape[2], kw, sw, dw)):
        reach = (k - 1) * d + 1
        before = max(reach - s, 0) // 2 if padding == "same" else 0
        sizes.append(n * s if padding == "same" else (n - 1) * s + max(reach, s))
        places.append([[i * s + t * d - before for t in range(k)] for i in range(n)])
    products = [
        (i, j, a, b, places[0][i][a], places[1][j][b])
        for i in range(x.shape[1])
        for j in range(x.shape[2])
        for a in range(kh)
        for b in range(kw)
        if 0 <= places[0][i][a] < sizes[0] and 0 <= places[1][j][b] < sizes[1]
    ]
    y = np.zeros((x.shape[0], *sizes, filters))
    for i, j, a, b, r, c in products:
        y[:, r, c] += x[:, i, j] @ w[a, b].T
    if use_bias:
        y += weights[1]
    if activation:
        y = np.maximum(y, 0)

    def pull(dy):
        if activation:
            dy = dy * (y > 0)
        dx, dw = np.zeros(x.shape), np.zeros(w.shape)
        for i, j, a, b, r, c in products:
            dx[:, i, j] += dy[:, r, c] @ w[a, b]
            dw[a, b] += dy[:, r, c].T @ x[:, i, j]
        return dx, [dw, dy.sum((0, 1, 2))] if use_bias else [dw]

    return y, pull


SECOND = {UP: up_sampled, TRANSPOSE: transposed}  # output, and a function that gives the gradients of the input and of the weights

for name, (kind, shape, settings) in CASES.items():
    keras.utils.clear_session()
    layer, x = kind(**settings), numbers(shape)
    layer.build(shape)
    weights = [numbers(w.shape) / 4 for w in layer.trainable_variables]
    for k, w in enumerate(layer.trainable_variables):
        put(f"{name}/{w.name}", weights[k], weights[k])
    y, pull = jax.vjp(lambda x, *w: layer.stateless_call(w, [], x)[0], x, *weights)
    dy = numbers(y.shape)
    second, second_pull = SECOND[kind](x, weights, **settings)
    dx, dw = second_pull(dy)
    put(f"{name}/input", x, x)
    put(f"{name}/output", y, second)
    put(f"{name}/output_gradient", dy, dy)
    for ours, theirs, what in zip(pull(dy), [dx, *dw], ["input", *(w.name for w in layer.trainable_variables)]):
        put(f"{name}/{what}_gradient", ours, theirs)

path = Path(__file__).resolve().parent / "recorded" / "enlarging.safetensors"
cases = {name: {"layer": kind.__name__, "shape": shape, **settings} for name, (kind, shape, settings) in CASES.items()}
save_file(tensors, path, {"recording": json.dumps({"keras": keras.__version__, "cases": cases})})
path.chmod(0o644)
print(f"{path.name} {len(tensors)} tensors {path.stat().st_size:,} bytes")
