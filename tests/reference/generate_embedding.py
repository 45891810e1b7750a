#!/usr/bin/env python3
"""Records recorded/embedding.safetensors: small networks on an embedding, ten steps of several optimizers each.

    python3 -m venv venv && venv/bin/pip install keras==3.15.1 jax==0.10.2 safetensors==0.8.0 numpy==2.4.6
    venv/bin/python generate_embedding.py     # fails if Keras and the NumPy below disagree

Keras runs on JAX in float64. Of the eleven rows of the table, row 10 is never read and row 0 by the first batch alone, so that
the recording shows what optimizers do with rows that have no gradient.
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

STEPS, BATCH, LENGTH, ROWS, WIDTH, CLASSES = 10, 6, 7, 11, 5, 4
L2 = 0.0625
random = np.random.default_rng(1)


def short(shape, scale):
    """Random numbers that are exact in float32."""
    return random.uniform(-scale, scale, shape).astype(np.float32).astype(np.float64)


rows = random.integers(1, ROWS - 1, (STEPS, BATCH, LENGTH))
rows[0, :, 2] = 0
labels = random.integers(0, CLASSES, (STEPS, BATCH)).astype(np.int32)

NETWORKS = {  # between the table and the dense layer; penalty on the table
    "flat": (keras.layers.Flatten, 0.0),
    "penalised": (keras.layers.Flatten, L2),
    "mean": (keras.layers.GlobalAveragePooling1D, 0.0),
    "max": (keras.layers.GlobalMaxPooling1D, 0.0),
}
OPTIMIZERS = {
    "adam": lambda: keras.optimizers.Adam(),
    "sgd": lambda: keras.optimizers.SGD(0.1),
    "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "rmsprop": lambda: keras.optimizers.RMSprop(),
    "decayed": lambda: keras.optimizers.SGD(0.1, weight_decay=0.05),
}


# --------------------------------------------------------------------------------------------------------- the same in NumPy
def numpy_gradients(network, p, x, y):
    """Predictions, loss and gradients of a batch."""
    vectors = p["embeddings"][x]  # (batch, length, width)
    if network == "mean":
        features = vectors.mean(1)
    elif network == "max":
        features = vectors.max(1)
    else:
        features = vectors.reshape(len(x), -1)
    logits = features @ p["kernel"] + p["bias"]
    out = np.exp(logits - logits.max(1, keepdims=True))
    out /= out.sum(1, keepdims=True)
    loss = -np.log(out[np.arange(len(x)), y]).mean()
    d = (out - np.eye(CLASSES)[y]) / len(x)
    g = {"kernel": features.T @ d, "bias": d.sum(0), "embeddings": np.zeros_like(p["embeddings"])}
    d = d @ p["kernel"].T
    if network == "mean":
        spread = np.repeat(d[:, None] / LENGTH, LENGTH, 1)
    elif network == "max":
        spread = np.zeros_like(vectors)
        np.put_along_axis(spread, vectors.argmax(1)[:, None], d[:, None], 1)
    else:
        spread = d.reshape(vectors.shape)
    np.add.at(g["embeddings"], x, spread)
    if network == "penalised":
        loss += L2 * (p["embeddings"] ** 2).sum()
        g["embeddings"] += 2 * L2 * p["embeddings"]
    return out, loss, g


def numpy_step(optimizer, p, g, slots, step):
    for name in p:
        w, d, s = p[name], g[name], slots.setdefault(name, {})
        if optimizer == "adam":
            s["m"] = 0.9 * s.get("m", 0) + 0.1 * d
            s["v"] = 0.999 * s.get("v", 0) + 0.001 * d * d
            rate = 0.001 * np.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
            p[name] = w - rate * s["m"] / (np.sqrt(s["v"]) + 1e-7)
        elif optimizer == "rmsprop":
            s["v"] = 0.9 * s.get("v", 0) + 0.1 * d * d
            p[name] = w - 0.001 * d / np.sqrt(s["v"] + 1e-7)
        elif optimizer == "momentum":
            s["v"] = 0.9 * s.get("v", 0) - 0.1 * d
            p[name] = w + s["v"]
        else:
            decay = 0.05 if optimizer == "decayed" else 0
            p[name] = w * (1 - 0.1 * decay) - 0.1 * d


# ----------------------------------------------------------------------------------------------------------------- recording
tensors, cases = {}, {}


def put(name, value):
    value = np.asarray(value)
    tensors[name] = np.ascontiguousarray(value if value.dtype == np.int32 else value.astype(np.float64))


def agree(what, ours, second):
    ours, second = np.asarray(ours, np.float64), np.asarray(second, np.float64)
    assert ours.shape == second.shape and np.abs(ours - second).max() <= 1e-11 * np.abs(ours).max(), what


put("rows", rows)
put("labels", labels)
for network, (middle, penalty) in NETWORKS.items():
    keras.utils.clear_session()
    table = keras.layers.Embedding(ROWS, WIDTH, embeddings_regularizer=keras.regularizers.L2(penalty) if penalty else None)
    model = keras.Sequential([keras.Input((LENGTH,)), table, middle(), keras.layers.Dense(CLASSES, activation="softmax")])
    variables = model.trainable_variables
    names = [v.path.split("/")[-1] for v in variables]
    initial = {n: short(v.shape, 0.5) for n, v in zip(names, variables)}
    loss_of = keras.losses.SparseCategoricalCrossentropy()

    def loss_and_predictions(weights, x, y):
        out, _, losses = model.stateless_call(weights, [], x, return_losses=True)
        return loss_of(y, out) + sum(losses), out

    gradient = jax.jit(jax.value_and_grad(loss_and_predictions, has_aux=True))
    cases[network] = {"penalty": penalty, "optimizers": list(OPTIMIZERS)}
    for n in names:
        put(f"{network}/initial/{n}", initial[n])
    for optimizer, make in OPTIMIZERS.items():
        ours, p, slots = make(), dict(initial), {}
        for v in variables:
            v.assign(initial[v.path.split("/")[-1]])
        ours.build(variables)
        weights, state, losses = [v.value for v in variables], [v.value for v in ours.variables], []
        for step in range(STEPS):
            (loss, out), g = gradient(weights, rows[step], labels[step])
            second_out, second_loss, second_g = numpy_gradients(network, p, rows[step], labels[step])
            agree("predictions", out, second_out)
            agree("loss", loss, second_loss)
            if step == 0 and optimizer == "adam":
                put(f"{network}/predictions", out)
                for n, d in zip(names, g):
                    agree(n, d, second_g[n])
                    put(f"{network}/gradient/{n}", d)
            weights, state = ours.stateless_apply(state, g, weights)
            numpy_step(optimizer, p, second_g, slots, step)
            losses.append(loss)
        put(f"{network}/{optimizer}/losses", losses)
        for n, w in zip(names, weights):
            agree(f"{network}/{optimizer}/{n}", w, p[n])
            put(f"{network}/{optimizer}/{n}", w)

path = Path(__file__).resolve().parent / "recorded" / "embedding.safetensors"
save_file(tensors, path, {"recording": json.dumps({"keras": keras.__version__, "cases": cases})})
path.chmod(0o644)
print(f"{path.name} {len(tensors)} tensors {path.stat().st_size:,} bytes")
