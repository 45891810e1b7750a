#!/usr/bin/env python3
"""Records recorded/graphs.safetensors: two inputs, an encoder that both share, three outputs with weights of their losses, of which one is 0, and one without a loss, ten steps of Adam, five with weights of samples.
Then a variational autoencoder, whose divergence Keras adds by add_loss, five steps of SGD.

    python3 -m venv venv && venv/bin/pip install keras==3.15.1 jax==0.10.2 safetensors==0.8.0 numpy==2.4.6
    venv/bin/python generate_graphs.py     # fails if Keras and the NumPy below disagree

Keras runs on JAX in float64. The values of each step are those that train_on_batch reports, under its names.
"""

import json
import os
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_ENABLE_X64"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"

import keras
import numpy as np
from safetensors.numpy import save_file

keras.config.set_floatx("float64")
keras.src.backend.common.dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"

STEPS, BATCH, CLASSES = 10, 6, 3
WEIGHTED = 5  # from this step on, samples have weights
WEIGHTS = {"kind": 1.0, "box": 0.25, "spot": 0.0}
random = np.random.default_rng(1)


def short(shape, scale):
    """Random numbers that are exact in float32."""
    return random.uniform(-scale, scale, shape).astype(np.float32).astype(np.float64)


data = {
    "left": short((STEPS, BATCH, 4), 2),
    "right": short((STEPS, BATCH, 4), 2),
    "kind": random.integers(0, CLASSES, (STEPS, BATCH)).astype(np.int32),
    "box": short((STEPS, BATCH, 2), 1),
    "spot": short((STEPS, BATCH, 2), 1),
    "weights/kind": short((STEPS, BATCH), 1) + 1,
    "weights/box": short((STEPS, BATCH), 1) + 1,
}
for name in ("weights/kind", "weights/box"):
    data[name][:WEIGHTED] = 1

layers = keras.layers
left, right = keras.Input((4,), name="left"), keras.Input((4,), name="right")
hidden, code = layers.Dense(6, activation="tanh", name="dense"), layers.Dense(3, name="dense_1")
code_of_left, code_of_right = code(hidden(left)), code(hidden(right))
both = layers.Multiply()([code_of_left, code_of_right])
kind = layers.Dense(CLASSES, activation="softmax", name="kind")(both)
box = layers.Dense(2, name="box")(layers.Concatenate()([code_of_left, both]))
spot = layers.Dense(2, name="spot")(code_of_right)
hint = layers.Dense(2, name="hint")(both)
model = keras.Model({"left": left, "right": right}, {"kind": kind, "box": box, "spot": spot, "hint": hint})
model.compile(
    optimizer=keras.optimizers.Adam(0.01),
    loss={"kind": "sparse_categorical_crossentropy", "box": "mean_squared_error", "spot": "mean_squared_error"},
    loss_weights=WEIGHTS,
    metrics={"kind": ["accuracy"], "box": ["mean_absolute_error"]},
)
parameters = {"dense": hidden, "dense_1": code, "dense_2": model.get_layer("kind"), "dense_3": model.get_layer("box"), "dense_4": model.get_layer("spot"), "dense_5": model.get_layer("hint")}
initial = {}
for name, layer in parameters.items():
    kernel, bias = (short(v.shape, 0.5) for v in layer.weights)
    layer.set_weights([kernel, bias])
    initial[f"{name}/kernel"], initial[f"{name}/bias"] = kernel, bias


def second(p, at):
    """Predictions, reported values and gradients of a batch, in NumPy."""
    of_kind, of_box = data["weights/kind"][at], data["weights/box"][at]
    l, r, y, t, s = (data[name][at] for name in ("left", "right", "kind", "box", "spot"))
    h = [np.tanh(x @ p["dense/kernel"] + p["dense/bias"]) for x in (l, r)]
    c = [x @ p["dense_1/kernel"] + p["dense_1/bias"] for x in h]
    m = c[0] * c[1]
    logits = m @ p["dense_2/kernel"] + p["dense_2/bias"]
    out = np.exp(logits - logits.max(1, keepdims=True))
    out /= out.sum(1, keepdims=True)
    joined = np.concatenate([c[0], m], 1)
    place = joined @ p["dense_3/kernel"] + p["dense_3/bias"]
    corner = c[1] @ p["dense_4/kernel"] + p["dense_4/bias"]
    values = {
        "kind_loss": -(of_kind * np.log(out[np.arange(BATCH), y])).mean(),
        "box_loss": (of_box[:, None] * (place - t) ** 2).mean(),
        "spot_loss": ((corner - s) ** 2).mean(),
        "kind_accuracy": (out.argmax(1) == y).mean(),
        "box_mean_absolute_error": np.abs(place - t).mean(),
    }
    values["loss"] = WEIGHTS["kind"] * values["kind_loss"] + WEIGHTS["box"] * values["box_loss"]
    d_logits = WEIGHTS["kind"] * of_kind[:, None] * (out - np.eye(CLASSES)[y]) / BATCH
    d_place = WEIGHTS["box"] * of_box[:, None] * 2 * (place - t) / t.size
    g = {n: np.zeros_like(w) for n, w in p.items()}
    g["dense_2/kernel"], g["dense_2/bias"] = m.T @ d_logits, d_logits.sum(0)
    g["dense_3/kernel"], g["dense_3/bias"] = joined.T @ d_place, d_place.sum(0)
    d_joined = d_place @ p["dense_3/kernel"].T
    d_m = d_logits @ p["dense_2/kernel"].T + d_joined[:, 3:]
    for x, hx, d in zip((l, r), h, (d_m * c[1] + d_joined[:, :3], d_m * c[0])):
        g["dense_1/kernel"] += hx.T @ d
        g["dense_1/bias"] += d.sum(0)
        d_h = d @ p["dense_1/kernel"].T * (1 - hx**2)
        g["dense/kernel"] += x.T @ d_h
        g["dense/bias"] += d_h.sum(0)
    return {"kind": out, "box": place, "spot": corner, "hint": m @ p["dense_5/kernel"] + p["dense_5/bias"]}, values, g


tensors = dict(data)


def put(name, ours, other):
    ours, other = np.asarray(ours, np.float64), np.asarray(other, np.float64)
    assert ours.shape == other.shape and np.abs(ours - other).max() <= 1e-11 * np.abs(ours).max(), name
    tensors[name] = np.ascontiguousarray(ours)


p, moments, reported, expected = dict(initial), {}, [], []
for n in initial:
    tensors[f"initial/{n}"] = initial[n]
for step in range(STEPS):
    predictions, values, g = second(p, step)
    inputs = {name: data[name][step] for name in ("left", "right")}
    if step == 0:
        ours = model.predict_on_batch(inputs)
        for name in ours:
            put(f"predictions/{name}", ours[name], predictions[name])
    model.reset_metrics()
    truths = {name: data[name][step] for name in WEIGHTS} | {"hint": np.zeros((BATCH, 2))}  # Keras takes one, and ignores it
    weights = None
    if step >= WEIGHTED:  # Keras takes those of all outputs
        weights = {name: data.get(f"weights/{name}", np.ones((STEPS, BATCH)))[step] for name in truths}
    reported.append(model.train_on_batch(inputs, truths, sample_weight=weights, return_dict=True))
    expected.append(values)
    for n, d in g.items():
        m, v = moments.get(n, (0, 0))
        m, v = moments[n] = 0.9 * m + 0.1 * d, 0.999 * v + 0.001 * d * d
        p[n] = p[n] - 0.01 * np.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1)) * m / (np.sqrt(v) + 1e-7)
assert set(reported[0]) == set(expected[0]), (set(reported[0]), set(expected[0]))
for name in expected[0]:
    put(f"reported/{name}", [float(each[name]) for each in reported], [each[name] for each in expected])
for name, layer in parameters.items():
    kernel, bias = layer.get_weights()
    put(f"trained/{name}/kernel", kernel, p[f"{name}/kernel"])
    put(f"trained/{name}/bias", bias, p[f"{name}/bias"])

# The autoencoder.
KL_WEIGHT, RATE, VAE_STEPS = 0.1, 0.05, 5
x, noise = short((VAE_STEPS, BATCH, 4), 2), short((VAE_STEPS, BATCH, 2), 1)
tensors["vae/x"], tensors["vae/noise"] = x, noise


class Divergence(layers.Layer):
    def call(self, mean, deviation):
        ops = keras.ops
        self.add_loss(KL_WEIGHT * ops.mean(ops.sum((mean**2 + deviation**2 - 1) / 2 - ops.log(deviation), axis=1)))
        return mean, deviation


inputs = keras.Input((4,), name="x"), keras.Input((2,), name="noise")
dense = [layers.Dense(5, activation="tanh"), layers.Dense(2), layers.Dense(2, activation="softplus"), layers.Dense(4)]
seen = dense[0](inputs[0])
mean, deviation = Divergence()(dense[1](seen), dense[2](seen))
decoded = dense[3](layers.Add()([mean, layers.Multiply()([deviation, inputs[1]])]))
vae = keras.Model(list(inputs), decoded)
vae.compile(optimizer=keras.optimizers.SGD(RATE), loss="mean_squared_error")
q = []
for number, layer in enumerate(dense):
    layer.set_weights([short(v.shape, 0.5) for v in layer.weights])
    q += layer.get_weights()
    for name, value in zip(("kernel", "bias"), layer.get_weights()):
        tensors[f"vae/initial/dense{f'_{number}' if number else ''}/{name}"] = value
losses, ours = [], {"loss": [], "divergence": []}
for step in range(VAE_STEPS):
    vae.reset_metrics()
    losses.append(float(vae.train_on_batch([x[step], noise[step]], x[step], return_dict=True)["loss"]))
    h = np.tanh(x[step] @ q[0] + q[1])
    m, before = h @ q[2] + q[3], h @ q[4] + q[5]
    s = np.log1p(np.exp(before))
    z = m + s * noise[step]
    error = z @ q[6] + q[7] - x[step]
    ours["divergence"].append(((m**2 + s**2 - 1) / 2 - np.log(s)).sum(1).mean())
    ours["loss"].append((error**2).mean() + KL_WEIGHT * ours["divergence"][-1])
    d = 2 * error / error.size
    d_z = d @ q[6].T
    d_m = d_z + KL_WEIGHT * m / BATCH
    d_before = (d_z * noise[step] + KL_WEIGHT * (s - 1 / s) / BATCH) / (1 + np.exp(-before))
    d_h = (d_m @ q[2].T + d_before @ q[4].T) * (1 - h**2)
    gradients = [x[step].T @ d_h, d_h.sum(0), h.T @ d_m, d_m.sum(0), h.T @ d_before, d_before.sum(0), z.T @ d, d.sum(0)]
    q = [w - RATE * g for w, g in zip(q, gradients)]
put("vae/reported/loss", ours["loss"], losses)
tensors["vae/reported/divergence"] = np.array(ours["divergence"])
for k, (w, other) in enumerate(zip(q, sum((layer.get_weights() for layer in dense), []))):
    put(f"vae/trained/dense{f'_{k // 2}' if k > 1 else ''}/{('kernel', 'bias')[k % 2]}", w, other)

path = Path(__file__).resolve().parent / "recorded" / "graphs.safetensors"
save_file(tensors, path, {"recording": json.dumps({"keras": keras.__version__})})
path.chmod(0o644)
print(f"{path.name} {len(tensors)} tensors {path.stat().st_size:,} bytes")
