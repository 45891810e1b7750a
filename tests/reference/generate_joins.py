#!/usr/bin/env python3
"""Records recorded/joins.safetensors: every join of branches, its output and the gradients of its inputs.

    python3 -m venv venv && venv/bin/pip install keras==3.15.1 jax==0.10.2 safetensors==0.8.0 numpy==2.4.6
    venv/bin/python generate_joins.py     # fails if Keras and the NumPy below disagree

Keras runs on JAX in float64. No two inputs of `maximum` are equal, because Keras' backends differ there: JAX and PyTorch share
the gradient, TensorFlow gives it to the first (tensorflow/python/ops/math_grad.py, _MaximumMinimumGrad: x >= y).
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
random = np.random.default_rng(13)


def others(x, k):
    return np.prod([v for i, v in enumerate(x) if i != k], axis=0)


def split(x, dy):
    return np.split(dy, np.cumsum([v.shape[-1] for v in x])[:-1], -1)


SAME, CHANNELS = [(3, 4, 5)] * 3, [(3, 4, 5), (3, 4, 1), (3, 4, 18)]
CASES = {  # Keras' layer, shapes of the samples, the same in NumPy: value(x), gradients(x, dy)
    "add": (keras.layers.Add(), SAME, lambda x: sum(x), lambda x, dy: [dy] * len(x)),
    "average": (keras.layers.Average(), SAME, lambda x: np.mean(x, 0), lambda x, dy: [dy / len(x)] * len(x)),
    "maximum": (keras.layers.Maximum(), SAME, lambda x: np.max(x, 0), lambda x, dy: [dy * (v == np.max(x, 0)) for v in x]),
    "multiply": (
        keras.layers.Multiply(),
        SAME,
        lambda x: np.prod(x, 0),
        lambda x, dy: [dy * others(x, k) for k in range(len(x))],
    ),
    "subtract": (keras.layers.Subtract(), SAME[:2], lambda x: x[0] - x[1], lambda x, dy: [dy, -dy]),
    "concatenate": (keras.layers.Concatenate(), CHANNELS, lambda x: np.concatenate(x, -1), split),
}
BATCH = 2
tensors = {}


def numbers(shape):
    """Random numbers that are exact in float32."""
    return random.uniform(-2, 2, shape).astype(np.float32).astype(np.float64)


def put(name, keras_value, numpy_value):
    ours, second = np.asarray(keras_value, np.float64), np.asarray(numpy_value, np.float64)
    assert ours.shape == second.shape and np.abs(ours - second).max() <= 1e-14 * np.abs(ours).max(), name
    tensors[name] = np.ascontiguousarray(ours)


for name, (layer, shapes, value, gradients) in CASES.items():
    x = [numbers((BATCH, *s)) for s in shapes]
    y, pull = jax.vjp(lambda *x: layer(list(x)), *x)
    dy = numbers(y.shape)
    for k, v in enumerate(x):
        put(f"{name}/input_{k}", v, v)
    put(f"{name}/output", y, value(x))
    put(f"{name}/output_gradient", dy, dy)
    for k, (ours, second) in enumerate(zip(pull(dy), gradients(x, dy))):
        put(f"{name}/input_{k}_gradient", ours, second)

path = Path(__file__).resolve().parent / "recorded" / "joins.safetensors"
cases = {name: {"shapes": shapes} for name, (_, shapes, _, _) in CASES.items()}
save_file(tensors, path, {"recording": json.dumps({"keras": keras.__version__, "cases": cases})})
path.chmod(0o644)
print(f"{path.name} {len(tensors)} tensors {path.stat().st_size:,} bytes")
