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

UP = keras.layers.UpSampling2D
CASES = {  # Keras' layer, shape of the input with the batch
    "up_sampling2d": (UP, (2, 3, 5, 4), dict(size=2)),
    "up_sampling2d_3x1": (UP, (2, 2, 3, 5), dict(size=(3, 1))),
    "up_sampling2d_bilinear": (UP, (2, 3, 5, 4), dict(size=2, interpolation="bilinear")),
    "up_sampling2d_bilinear_1x4": (UP, (2, 3, 2, 3), dict(size=(1, 4), interpolation="bilinear")),
    "up_sampling2d_bilinear_3": (UP, (1, 4, 1, 7), dict(size=3, interpolation="bilinear")),
}
tensors = {}


def numbers(shape):
    """Random numbers that float32 holds exactly."""
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


SECOND = {UP: up_sampled}  # output, and a function that gives the gradients of the input and of the weights

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
