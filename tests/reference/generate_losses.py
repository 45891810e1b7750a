#!/usr/bin/env python3
"""Records recorded/more_losses.safetensors: the losses that generate.py does not have, with values and gradients.

    python3 -m venv venv && venv/bin/pip install keras==3.15.1 jax==0.10.2 safetensors==0.8.0 numpy==2.4.6
    venv/bin/python generate_losses.py     # fails if Keras and the NumPy below disagree

Keras runs on JAX in float64. The second computation is NumPy, with gradients by central differences in numpy.longdouble.
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

K, EPSILON = keras.losses, np.longdouble("1e-7")
random = np.random.default_rng(7)
long = lambda x: np.asarray(x, np.longdouble)


def short(low, high, shape):
    """Random numbers that are exact in float32."""
    return random.uniform(low, high, shape).astype(np.float32).astype(np.float64)


# --------------------------------------------------------------------------------------------------------- the same in NumPy
def clip(x, low=EPSILON, high=1 - EPSILON):
    return np.minimum(np.maximum(x, low), high)


def smoothed(y, amount, towards):
    return y * (1 - long(amount)) + long(amount) * towards


def hinge(y, p):
    return np.maximum(1 - np.where(y == 0, -1, y) * p, 0)


def categorical_hinge(y, p):
    return np.maximum(((1 - y) * p).max(-1) - (y * p).sum(-1) + 1, 0)


def kl_divergence(y, p):
    y, p = clip(y, EPSILON, 1), clip(p, EPSILON, 1)
    return (y * np.log(y / p)).sum(-1)


def cosine_similarity(y, p):
    unit = lambda x: x / np.maximum(np.sqrt((x * x).sum(-1, keepdims=True)), EPSILON)
    return -(unit(y) * unit(p)).sum(-1)


def binary_focal(alpha=0.25, gamma=2, apply_class_balancing=False, from_logits=False, label_smoothing=0):
    def loss(y, p):
        y = smoothed(y, label_smoothing, long(0.5))
        p = 1 / (1 + np.exp(-p)) if from_logits else p
        crossentropy = -(y * np.log(clip(p)) + (1 - y) * np.log(1 - clip(p)))
        weight = y * long(alpha) + (1 - y) * (1 - long(alpha)) if apply_class_balancing else 1
        return (weight * (1 - y * p - (1 - y) * (1 - p)) ** long(gamma) * crossentropy).mean(-1)

    return loss


def categorical_focal(alpha=0.25, gamma=2, from_logits=False, label_smoothing=0):
    def loss(y, p):
        y = smoothed(y, label_smoothing, 1 / long(y.shape[-1]))
        p = np.exp(p) if from_logits else p
        p = clip(p / p.sum(-1, keepdims=True))
        return (long(alpha) * (1 - p) ** long(gamma) * -y * np.log(p)).sum(-1)

    return loss


def central_differences(loss, y, p):
    y, p, h = long(y), long(p), np.longdouble("1e-6")
    gradient = np.empty(p.shape, np.longdouble)
    for i in np.ndindex(p.shape):
        above, below = p.copy(), p.copy()
        above[i] += h
        below[i] -= h
        gradient[i] = (loss(y, above).mean() - loss(y, below).mean()) / (2 * h)
    return gradient


# ----------------------------------------------------------------------------------------------------------------- recording
flat, image = (6, 7), (2, 3, 4, 5)
bits = lambda shape: random.integers(0, 2, shape).astype(np.float64)
numbers = lambda shape: short(-3, 3, shape)
positive = lambda shape: short(0.125, 4, shape)
probabilities = lambda shape: short(0.03, 0.97, shape)
hot = lambda shape: np.eye(shape[-1])[random.integers(0, shape[-1], shape[:-1])]


def counts(shape):
    return random.integers(0, 5, shape).astype(np.float64)


def shares(shape):
    x = short(0.1, 1, shape)
    return (x / x.sum(-1, keepdims=True)).astype(np.float32).astype(np.float64)


mean = lambda f: lambda y, p: f(y, p).mean(-1)
squared_logarithmic = lambda y, p: (np.log1p(np.maximum(p, EPSILON)) - np.log1p(np.maximum(y, EPSILON))) ** 2
of = {  # Keras, the same in NumPy, labels, predictions
    "hinge": (K.Hinge, lambda: mean(hinge), lambda s: 2 * bits(s) - 1, numbers),
    "hinge_bits": (K.Hinge, lambda: mean(hinge), bits, numbers),
    "squared_hinge": (K.SquaredHinge, lambda: mean(lambda y, p: hinge(y, p) ** 2), bits, numbers),
    "categorical_hinge": (K.CategoricalHinge, lambda: categorical_hinge, hot, numbers),
    "log_cosh": (K.LogCosh, lambda: mean(lambda y, p: np.log(np.cosh(p - y))), numbers, numbers),
    "poisson": (K.Poisson, lambda: mean(lambda y, p: p - y * np.log(p + EPSILON)), counts, positive),
    "mean_absolute_percentage_error": (
        K.MeanAbsolutePercentageError,
        lambda: mean(lambda y, p: 100 * np.abs((y - p) / np.maximum(np.abs(y), EPSILON))),
        numbers,
        numbers,
    ),
    "mean_squared_logarithmic_error": (
        K.MeanSquaredLogarithmicError,
        lambda: mean(squared_logarithmic),
        counts,
        numbers,
    ),
    "kl_divergence": (K.KLDivergence, lambda: kl_divergence, shares, shares),
    "kl_divergence_zeros": (K.KLDivergence, lambda: kl_divergence, hot, shares),
    "cosine_similarity": (K.CosineSimilarity, lambda: cosine_similarity, numbers, numbers),
    "binary_focal_crossentropy": (K.BinaryFocalCrossentropy, binary_focal, bits, probabilities),
    "categorical_focal_crossentropy": (K.CategoricalFocalCrossentropy, categorical_focal, hot, shares),
}
logits, balanced = dict(from_logits=True), dict(apply_class_balancing=True, alpha=0.75, gamma=1.5)
several = dict(alpha=0.5, gamma=1.5, label_smoothing=0.1)
cases = [(name, name, flat, {}) for name in of]
cases += [(f"{name}_image", name, image, {}) for name in of if name not in ("hinge_bits", "kl_divergence_zeros")]
cases += [
    ("binary_focal_crossentropy_balanced", "binary_focal_crossentropy", flat, balanced),
    ("binary_focal_crossentropy_label_smoothing", "binary_focal_crossentropy", flat, dict(label_smoothing=0.1)),
    ("binary_focal_crossentropy_from_logits", "binary_focal_crossentropy", flat, logits),
    ("categorical_focal_crossentropy_settings", "categorical_focal_crossentropy", flat, several),
    ("categorical_focal_crossentropy_from_logits", "categorical_focal_crossentropy", flat, logits),
]

tensors, settings_of = {}, {}
for name, kind, shape, settings in cases:
    keras_loss, second, labels, predictions = of[kind]
    y, p = labels(shape), (numbers if settings == logits else predictions)(shape)
    each, whole = keras_loss(reduction=None, **settings), keras_loss(**settings)
    value, gradient = jax.value_and_grad(lambda p: whole(y, p))(jnp.asarray(p))
    expected = {"per_position": np.asarray(each(y, p)), "loss": np.asarray(value), "gradient": np.asarray(gradient)}
    loss = second(**settings)
    losses = loss(long(y), long(p))
    again = {"per_position": losses, "loss": losses.mean(), "gradient": central_differences(loss, y, p)}
    for what, array in expected.items():
        worst = float(np.abs(array - again[what]).max() / np.abs(array).max())
        assert worst < (1e-9 if what == "gradient" else 1e-12), (name, what, worst)
        tensors[f"{name}/{what}"] = np.asarray(array, np.float64)
    tensors[f"{name}/labels"], tensors[f"{name}/predictions"] = y, p
    settings_of[name] = {"shape": shape, **settings}

metadata = {"recording": json.dumps({"keras": keras.__version__, "cases": settings_of})}
path = Path(__file__).resolve().parent / "recorded" / "more_losses.safetensors"
save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, path, metadata)
path.chmod(0o644)
print(f"{path.name}: {len(tensors)} tensors, {path.stat().st_size:,} bytes")
