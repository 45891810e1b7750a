#!/usr/bin/env python3
"""Records recorded/columns.safetensors: a network on categories and numbers in one input, ten steps of Adam.

    python3 -m venv venv && venv/bin/pip install keras==3.15.1 jax==0.10.2 safetensors==0.8.0 numpy==2.4.6
    venv/bin/python generate_columns.py     # fails if Keras and the NumPy below disagree

Keras runs on JAX in float64. Keras has no layer for columns: its functional API slices the input, x[:, 3:7].
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
keras.src.backend.common.dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"

STEPS, BATCH, CLASSES = 10, 6, 4
random = np.random.default_rng(1)


def short(shape, scale):
    """Random numbers that are exact in float32."""
    return random.uniform(-scale, scale, shape).astype(np.float32).astype(np.float64)


samples = short((STEPS, BATCH, 8), 2)  # no layer reads column 2
samples[..., 0:2] = random.integers(0, 9, (STEPS, BATCH, 2))
samples[..., 7] = random.integers(0, 6, (STEPS, BATCH))
labels = random.integers(0, CLASSES, (STEPS, BATCH)).astype(np.int32)

layers = keras.layers
x = keras.Input((8,))
words = layers.Flatten()(layers.Embedding(9, 4, name="embedding")(x[:, 0:2]))
numbers = layers.Dense(3, activation="tanh", name="dense")(x[:, 3:7])
kinds = layers.Flatten()(layers.Embedding(6, 2, name="embedding_1")(x[:, 7:8]))
both = layers.Concatenate()([words, numbers, kinds])
model = keras.Model(x, layers.Dense(CLASSES, activation="softmax", name="dense_1")(both))
variables = model.trainable_variables
names = [v.path for v in variables]
initial = {n: short(v.shape, 0.5) for n, v in zip(names, variables)}
loss_of = keras.losses.SparseCategoricalCrossentropy()


def loss_and_predictions(weights, x, y):
    out, _ = model.stateless_call(weights, [], x)
    return loss_of(y, out), out


def numpy_gradients(p, x, y):
    """Predictions, loss and gradients of a batch."""
    word, kind = x[:, 0:2].astype(int), x[:, 7].astype(int)
    tanh = np.tanh(x[:, 3:7] @ p["dense/kernel"] + p["dense/bias"])
    features = np.concatenate(
        [p["embedding/embeddings"][word].reshape(len(x), -1), tanh, p["embedding_1/embeddings"][kind]], 1
    )
    logits = features @ p["dense_1/kernel"] + p["dense_1/bias"]
    out = np.exp(logits - logits.max(1, keepdims=True))
    out /= out.sum(1, keepdims=True)
    d = (out - np.eye(CLASSES)[y]) / len(x)
    g = {n: np.zeros_like(w) for n, w in p.items()}
    g["dense_1/kernel"], g["dense_1/bias"] = features.T @ d, d.sum(0)
    d = d @ p["dense_1/kernel"].T
    np.add.at(g["embedding/embeddings"], word, d[:, :8].reshape(len(x), 2, 4))
    np.add.at(g["embedding_1/embeddings"], kind, d[:, 11:])
    d = d[:, 8:11] * (1 - tanh**2)
    g["dense/kernel"], g["dense/bias"] = x[:, 3:7].T @ d, d.sum(0)
    return out, -np.log(out[np.arange(len(x)), y]).mean(), g


tensors = {"samples": samples, "labels": labels}


def put(name, ours, second):
    ours, second = np.asarray(ours, np.float64), np.asarray(second, np.float64)
    assert ours.shape == second.shape and np.abs(ours - second).max() <= 1e-11 * np.abs(ours).max(), name
    tensors[name] = np.ascontiguousarray(ours)


gradient = jax.jit(jax.value_and_grad(loss_and_predictions, has_aux=True))
adam, p, moments, losses, second_losses = keras.optimizers.Adam(), dict(initial), {}, [], []
for n, v in zip(names, variables):
    v.assign(initial[n])
    put(f"initial/{n}", initial[n], initial[n])
adam.build(variables)
weights, state = [v.value for v in variables], [v.value for v in adam.variables]
for step in range(STEPS):
    (loss, out), g = gradient(weights, samples[step], labels[step])
    second_out, second_loss, second_g = numpy_gradients(p, samples[step], labels[step])
    if step == 0:
        put("predictions", out, second_out)
        for n, d in zip(names, g):
            put(f"gradient/{n}", d, second_g[n])
    weights, state = adam.stateless_apply(state, g, weights)
    for n, d in second_g.items():
        m, v = moments.get(n, (0, 0))
        m, v = moments[n] = 0.9 * m + 0.1 * d, 0.999 * v + 0.001 * d * d
        p[n] = p[n] - 0.001 * np.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1)) * m / (np.sqrt(v) + 1e-7)
    losses.append(loss)
    second_losses.append(second_loss)
put("losses", losses, second_losses)
for n, w in zip(names, weights):
    put(f"trained/{n}", w, p[n])

path = Path(__file__).resolve().parent / "recorded" / "columns.safetensors"
save_file(tensors, path, {"recording": json.dumps({"keras": keras.__version__})})
path.chmod(0o644)
print(f"{path.name} {len(tensors)} tensors {path.stat().st_size:,} bytes")
