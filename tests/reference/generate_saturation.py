#!/usr/bin/env python3
"""Records recorded/saturation.safetensors: networks that end in sigmoid or softmax and a crossentropy, with logits up to +-120.

    python3 -m venv venv && venv/bin/pip install safetensors==0.8.0 numpy==2.4.6
    venv/bin/python generate_saturation.py     # fails if the two computations below disagree

Loss and gradients are plain formulas of the logits in float64. Predictions outside [1e-7, 1 - 1e-7] are clamped by Keras on JAX
(README.md), so they cannot be recorded from Keras. The second computation takes logarithms of probabilities and central differences, both
in numpy.longdouble.
"""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

BATCH, CLASSES, EPSILON = 8, 3, 1e-3
random = np.random.default_rng(1)


def short(shape, scale):
    """Random numbers that are exact in float32."""
    return random.uniform(-scale, scale, shape).astype(np.float32).astype(np.float64)


# ------------------------------------------------------------------------------------- what precedes the last activation
# Each: parameters, then logits and the gradient of the parameters from that of the logits.
class dense:
    input_shape = (5,)
    parameters = {"dense/kernel": ((5, CLASSES), 40), "dense/bias": ((CLASSES,), 20)}

    def logits(x, p):
        return x @ p["dense/kernel"] + p["dense/bias"]

    def gradients(x, p, d):
        return {"dense/kernel": x.T @ d, "dense/bias": d.sum(0)}


def patches(x):
    """(B, 4, 4, C) -> (B, 2, 2, 9 C): the windows of a 3x3 convolution."""
    return np.stack([np.stack([x[:, i : i + 3, j : j + 3].reshape(len(x), -1) for j in (0, 1)], 1) for i in (0, 1)], 1)


class conv2d:
    input_shape = (4, 4, 2)
    parameters = {"conv2d/kernel": ((3, 3, 2, CLASSES), 30), "conv2d/bias": ((CLASSES,), 10)}

    def logits(x, p):
        return patches(x) @ p["conv2d/kernel"].reshape(-1, CLASSES) + p["conv2d/bias"]

    def gradients(x, p, d):
        kernel = np.tensordot(patches(x), d, ((0, 1, 2), (0, 1, 2)))
        return {"conv2d/kernel": kernel.reshape(3, 3, 2, CLASSES), "conv2d/bias": d.sum((0, 1, 2))}


class global_pool(conv2d):
    def logits(x, p):
        return conv2d.logits(x, p).mean((1, 2))

    def gradients(x, p, d):
        return conv2d.gradients(x, p, np.broadcast_to(d[:, None, None] / 4, (len(d), 2, 2, CLASSES)))


class conv2d_flatten(conv2d):
    def logits(x, p):
        return conv2d.logits(x, p).reshape(len(x), -1)

    def gradients(x, p, d):
        return conv2d.gradients(x, p, d.reshape(len(d), 2, 2, CLASSES))


class one_window:
    """A convolution whose output is (1, 1, CLASSES), then flatten."""

    input_shape = (3, 3, 2)
    parameters = conv2d.parameters

    def logits(x, p):
        return x.reshape(len(x), -1) @ p["conv2d/kernel"].reshape(-1, CLASSES) + p["conv2d/bias"]

    def gradients(x, p, d):
        return {"conv2d/kernel": (x.reshape(len(x), -1).T @ d).reshape(3, 3, 2, CLASSES), "conv2d/bias": d.sum(0)}


class batch_norm:
    input_shape = (5,)
    parameters = {
        "dense/kernel": ((5, CLASSES), 1),  # no bias: its gradient would be 0
        "batch_norm/gamma": ((CLASSES,), 60),
        "batch_norm/beta": ((CLASSES,), 20),
    }

    def normalized(x, p):
        z = x @ p["dense/kernel"]
        return (z - z.mean(0)) / np.sqrt(z.var(0) + EPSILON), np.sqrt(z.var(0) + EPSILON)

    def logits(x, p):
        return batch_norm.normalized(x, p)[0] * p["batch_norm/gamma"] + p["batch_norm/beta"]

    def gradients(x, p, d):
        z, deviation = batch_norm.normalized(x, p)
        dz = p["batch_norm/gamma"] / deviation * (d - d.mean(0) - z * (d * z).mean(0))
        return {"dense/kernel": x.T @ dz, "batch_norm/gamma": (d * z).sum(0), "batch_norm/beta": d.sum(0)}


class add:
    input_shape = (5,)
    parameters = {**dense.parameters, "dense_1/kernel": ((5, CLASSES), 40), "dense_1/bias": ((CLASSES,), 20)}

    def logits(x, p):
        return dense.logits(x, p) + x @ p["dense_1/kernel"] + p["dense_1/bias"]

    def gradients(x, p, d):
        return {**dense.gradients(x, p, d), "dense_1/kernel": x.T @ d, "dense_1/bias": d.sum(0)}


# ------------------------------------------------------------------------------------------------- the last activation and loss
class sigmoid:
    """binary_crossentropy: the mean over all elements."""

    def truth(shape):
        t = random.integers(0, 2, shape).astype(np.float64)
        t.flat[::7] = 0.25
        return t

    def predictions(z):
        return 1 / (1 + np.exp(-z))

    def loss(z, t):
        return (np.maximum(z, 0) - z * t + np.log1p(np.exp(-np.abs(z)))).mean()

    def gradient(z, t):
        return (sigmoid.predictions(z) - t) / z.size

    def loss_of_probabilities(z, t):
        return -(t * np.log(sigmoid.predictions(z)) + (1 - t) * np.log(sigmoid.predictions(-z))).mean()


class softmax:
    """categorical_crossentropy, and with one-hot truth sparse_categorical_crossentropy: the mean over the samples."""

    def truth(shape):
        return np.eye(CLASSES)[random.integers(0, CLASSES, shape[0])]

    def predictions(z):
        e = np.exp(z - z.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def loss(z, t):
        shifted = z - z.max(1, keepdims=True)
        return (t * (np.log(np.exp(shifted).sum(1, keepdims=True)) - shifted)).sum(1).mean()

    def gradient(z, t):
        return (softmax.predictions(z) * t.sum(1, keepdims=True) - t) / len(z)

    def loss_of_probabilities(z, t):
        return -(t * np.log(softmax.predictions(z))).sum(1).mean()


# ----------------------------------------------------------------------------------------------------------------- recording
tensors, cases = {}, {}
for front, head in [(f, sigmoid) for f in (dense, conv2d, global_pool, batch_norm, add)] + [
    (f, softmax) for f in (dense, global_pool, batch_norm, add)
] + [(conv2d_flatten, sigmoid), (one_window, softmax)]:
    name = f"{front.__name__}_{head.__name__}"
    p = {n: short(shape, scale) for n, (shape, scale) in front.parameters.items()}
    x = short((BATCH, *front.input_shape), 1)
    z = front.logits(x, p)
    t = head.truth(z.shape)
    loss, gradients = head.loss(z, t), front.gradients(x, p, head.gradient(z, t))

    probability = head.predictions(z)
    assert (np.abs(probability - t) > 1 - 1e-8).any(), f"{name}: no logit saturates on the wrong side"

    precise = {n: w.astype(np.longdouble) for n, w in p.items()}
    loss_at = lambda: head.loss_of_probabilities(front.logits(x.astype(np.longdouble), precise), t)
    assert abs(loss_at() - loss) <= 1e-13 * loss, name
    for n, w in precise.items():
        for i in np.ndindex(w.shape):
            before, h = w[i], np.longdouble(1e-6)
            w[i] = before + h
            above = loss_at()
            w[i] = before - h
            below = loss_at()
            w[i] = before
            assert abs((above - below) / (2 * h) - gradients[n][i]) <= 1e-8 * np.abs(gradients[n]).max(), (name, n, i)

    cases[name] = {"largest_logit": float(np.abs(z).max())}
    tensors |= {f"{name}/x": x, f"{name}/truth": t, f"{name}/loss": np.array([loss]), f"{name}/predictions": probability}
    tensors |= {f"{name}/initial/{n}": w for n, w in p.items()} | {f"{name}/gradient/{n}": g for n, g in gradients.items()}

path = Path(__file__).resolve().parent / "recorded" / "saturation.safetensors"
tensors = {n: np.ascontiguousarray(t) for n, t in tensors.items()}
save_file(tensors, path, {"recording": json.dumps({"cases": cases})})
path.chmod(0o644)
print(f"{path.name} {len(tensors)} tensors {path.stat().st_size:,} bytes", cases)
