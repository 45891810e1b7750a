#!/usr/bin/env python3
"""Records recorded/normalization.safetensors: mean and variance that Normalization.adapt computes, its output and the gradient of
its input.

    python3 -m venv venv && venv/bin/pip install keras==3.15.1 jax==0.10.2 safetensors==0.8.0 numpy==2.4.6
    venv/bin/python generate_normalization.py     # fails if Keras and the NumPy below disagree

Keras runs on JAX in float64, but it adapts in float32: moments agree to 1e-6.
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
random = np.random.default_rng(17)

CASES = {"features": (40, 5), "image": (6, 4, 3, 3), "one": (9, 1), "constant": (8, 4)}  # shapes with the batch
tensors = {}


def put(name, keras_value, numpy_value, tolerance=1e-14):
    ours, second = np.asarray(keras_value, np.float64), np.asarray(numpy_value, np.float64)
    assert ours.shape == second.shape and np.abs(ours - second).max() <= tolerance * max(np.abs(ours).max(), 1e-30), name
    tensors[name] = np.ascontiguousarray(ours)


for name, shape in CASES.items():
    x = random.uniform(-2, 2, shape).astype(np.float32).astype(np.float64) + np.arange(shape[-1])
    if name == "constant":
        x[:, 1] = 0.5
    layer = keras.layers.Normalization()
    layer.adapt(x)
    axes = tuple(range(len(shape) - 1))
    mean, variance = np.asarray(layer.adapt_mean, np.float64), np.asarray(layer.adapt_variance, np.float64)
    put(f"{name}/input", x, x)
    put(f"{name}/mean", mean, x.mean(axes), 1e-6)
    put(f"{name}/variance", variance, x.var(axes), 1e-6)
    factor = 1 / np.maximum(np.sqrt(variance), 1e-7)
    y, pull = jax.vjp(layer, x)
    dy = random.uniform(-1, 1, shape).astype(np.float32).astype(np.float64)
    put(f"{name}/output", y, (x - mean) * factor)
    put(f"{name}/output_gradient", dy, dy)
    put(f"{name}/input_gradient", pull(dy)[0], dy * factor)

path = Path(__file__).resolve().parent / "recorded" / "normalization.safetensors"
save_file(tensors, path, {"recording": json.dumps({"keras": keras.__version__, "cases": {k: {"shape": v} for k, v in CASES.items()}})})
path.chmod(0o644)
print(f"{path.name} {len(tensors)} tensors {path.stat().st_size:,} bytes")
