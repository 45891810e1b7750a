#!/usr/bin/env python3
"""Records recorded/mobile.safetensors: layers and activations of networks for small devices, their outputs and gradients.

    python3 -m venv venv && venv/bin/pip install keras==3.15.1 jax==0.10.2 safetensors==0.8.0 numpy==2.4.6
    venv/bin/python generate_mobile.py     # fails if Keras and the NumPy below disagree

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
random = np.random.default_rng(31)

DEPTHWISE, ACTIVATION, RESCALING = keras.layers.DepthwiseConv2D, keras.layers.Activation, keras.layers.Rescaling
CROPPING = keras.layers.Cropping2D
CASES = {  # Keras' layer, shape of the input with the batch
    "depthwise_conv2d": (DEPTHWISE, (2, 6, 7, 5), dict(kernel_size=3)),
    "depthwise_conv2d_same": (DEPTHWISE, (2, 6, 7, 17), dict(kernel_size=3, padding="same", activation="relu")),
    "depthwise_conv2d_stride2_same": (DEPTHWISE, (2, 7, 8, 3), dict(kernel_size=3, strides=2, padding="same")),
    "depthwise_conv2d_two_filters": (DEPTHWISE, (2, 6, 5, 3), dict(kernel_size=(2, 3), depth_multiplier=2, use_bias=False)),
    "depthwise_conv2d_dilated": (DEPTHWISE, (1, 7, 8, 4), dict(kernel_size=3, dilation_rate=2, depth_multiplier=3)),
    "hard_sigmoid": (ACTIVATION, (5, 13), dict(activation="hard_sigmoid")),
    "hard_silu": (ACTIVATION, (5, 13), dict(activation="hard_silu")),
    "rescaling": (RESCALING, (5, 13), dict(scale=-0.375, offset=1.25)),
    "cropping2d": (CROPPING, (2, 5, 6, 3), dict(cropping=((1, 0), (2, 1)))),
}
tensors = {}


def numbers(shape, most=2):
    """Random numbers that are exact in float32."""
    return random.uniform(-most, most, shape).astype(np.float32).astype(np.float64)


def put(name, keras_value, numpy_value):
    ours, second = np.asarray(keras_value, np.float64), np.asarray(numpy_value, np.float64)
    assert ours.shape == second.shape and np.abs(ours - second).max() <= 1e-13 * np.abs(ours).max(), name
    tensors[name] = np.ascontiguousarray(ours)


def depthwise(x, weights, kernel_size, strides=1, padding="valid", dilation_rate=1, depth_multiplier=1, use_bias=True, activation=None):
    pair = lambda v: (v, v) if isinstance(v, int) else v
    (kh, kw), (sh, sw), (dh, dw) = pair(kernel_size), pair(strides), pair(dilation_rate)
    w, places, sizes = weights[0], [], []
    for n, k, s, d in ((x.shape[1], kh, sh, dh), (x.shape[2], kw, sw, dw)):
        reach = (k - 1) * d + 1
        out = -(-n // s) if padding == "same" else (n - reach) // s + 1
        before = max((out - 1) * s + reach - n, 0) // 2 if padding == "same" else 0
        sizes.append(out)
        places.append([[i * s + t * d - before for t in range(k)] for i in range(out)])
    products = [
        (i, j, a, b, places[0][i][a], places[1][j][b])
        for i in range(sizes[0])
        for j in range(sizes[1])
        for a in range(kh)
        for b in range(kw)
        if 0 <= places[0][i][a] < x.shape[1] and 0 <= places[1][j][b] < x.shape[2]
    ]
    y = np.zeros((x.shape[0], *sizes, x.shape[3], depth_multiplier))
    for i, j, a, b, r, c in products:
        y[:, i, j] += x[:, r, c, :, None] * w[a, b]
    y = y.reshape(*y.shape[:3], -1)
    if use_bias:
        y += weights[1]
    if activation:
        y = np.maximum(y, 0)

    def pull(dy):
        if activation:
            dy = dy * (y > 0)
        parts, dx, dw = dy.reshape(*dy.shape[:3], x.shape[3], depth_multiplier), np.zeros(x.shape), np.zeros(w.shape)
        for i, j, a, b, r, c in products:
            dx[:, r, c] += (parts[:, i, j] * w[a, b]).sum(-1)
            dw[a, b] += (parts[:, i, j] * x[:, r, c, :, None]).sum(0)
        return dx, [dw, dy.sum((0, 1, 2))] if use_bias else [dw]

    return y, pull


def in_straight_pieces(x, weights, activation):
    gate, slope = np.clip(x + 3, 0, 6) / 6, (np.abs(x) < 3) / 6
    if activation == "hard_sigmoid":
        return gate, lambda dy: (dy * slope, [])
    return x * gate, lambda dy: (dy * (gate + x * slope), [])


def rescaled(x, weights, scale, offset):
    return x * scale + offset, lambda dy: (dy * scale, [])


def cropped(x, weights, cropping):
    (top, bottom), (left, right) = cropping
    inner = (slice(None), slice(top, x.shape[1] - bottom), slice(left, x.shape[2] - right))

    def pull(dy):
        dx = np.zeros(x.shape)
        dx[inner] = dy
        return dx, []

    return x[inner], pull


SECOND = {DEPTHWISE: depthwise, ACTIVATION: in_straight_pieces, RESCALING: rescaled, CROPPING: cropped}  # output, and the gradients of the input and of the weights

for name, (kind, shape, settings) in CASES.items():
    keras.utils.clear_session()
    layer, x = kind(**settings), numbers(shape, 2 if kind is DEPTHWISE else 5)
    layer.build(shape)
    weights = [numbers(w.shape) / 4 for w in layer.trainable_variables]
    names = ["depthwise_kernel" if w.name == "kernel" else w.name for w in layer.trainable_variables]
    for k, w in enumerate(names):
        put(f"{name}/{w}", weights[k], weights[k])
    y, pull = jax.vjp(lambda x, *w: layer.stateless_call(w, [], x)[0], x, *weights)
    dy = numbers(y.shape)
    second, second_pull = SECOND[kind](x, weights, **settings)
    dx, dw = second_pull(dy)
    put(f"{name}/input", x, x)
    put(f"{name}/output", y, second)
    put(f"{name}/output_gradient", dy, dy)
    for ours, theirs, what in zip(pull(dy), [dx, *dw], ["input", *names]):
        put(f"{name}/{what}_gradient", ours, theirs)

path = Path(__file__).resolve().parent / "recorded" / "mobile.safetensors"
cases = {name: {"layer": kind.__name__, "shape": shape, **settings} for name, (kind, shape, settings) in CASES.items()}
save_file(tensors, path, {"recording": json.dumps({"keras": keras.__version__, "cases": cases})})
path.chmod(0o644)
print(f"{path.name} {len(tensors)} tensors {path.stat().st_size:,} bytes")
