#!/usr/bin/env python3
"""Records the reference tensors in recorded/ from Keras and checks each against a second implementation.

    python3 -m venv venv && venv/bin/pip install keras==3.15.1 jax==0.10.2 torch==2.15.0 safetensors==0.8.0 numpy==2.4.6
    venv/bin/python generate.py             # writes recorded/*.safetensors, fails if the two implementations disagree
    venv/bin/python generate.py --tables    # also prints the tables of README.md
    venv/bin/python generate.py --rounding  # also prints how far float32 training drifts from the recordings

Keras runs on JAX in float64. The second implementation is PyTorch in float64, or NumPy for the optimizers and schedules, which
PyTorch defines otherwise. README.md describes every file and every rule; reading this script is not necessary.
"""

import json
import math
import os
import sys
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_ENABLE_X64"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import keras
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file

keras.config.set_floatx("float64")
keras.src.backend.common.dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"  # Keras on JAX would lower normalisations to float32
torch.set_default_dtype(torch.float64)

RECORDED = Path(__file__).resolve().parent / "recorded"
AGREEMENT = 1e-10  # largest difference of the two implementations, relative to the largest element
WHOLE = 20_000  # larger tensors are sampled
EVERY = 23  # prime, coprime to every dimension of a sampled tensor


# ---------------------------------------------------------------------------------------------- the formula of all inputs
def mix(h):
    h = np.atleast_1d(np.asarray(h, np.uint32))
    h = h ^ (h >> np.uint32(16))
    h = h * np.uint32(0x7FEB352D)
    h = h ^ (h >> np.uint32(15))
    h = h * np.uint32(0x846CA68B)
    return h ^ (h >> np.uint32(16))


def hashed(stream, count):
    return mix(mix(stream) ^ mix(np.arange(count, dtype=np.uint32) + np.uint32(0x9E3779B9)))


def values(stream, shape, scale=1.0, offset=0.0):
    """offset + scale * odd / 65536, in (offset - scale, offset + scale); exact in float32 for powers of two."""
    high = (hashed(stream, math.prod(shape)) >> np.uint32(16)).astype(np.int64)
    result = (offset + scale * (2 * high - 65535) / 65536).reshape(shape)
    assert np.array_equal(result, result.astype(np.float32))
    return result


def classes(stream, shape, number):
    return (hashed(stream, math.prod(shape)) % np.uint32(number)).astype(np.int32).reshape(shape)


def one_hot(labels, number):
    return np.eye(number)[labels]


# ------------------------------------------------------------------------------------------------------- recording, checking
worst = {}


def agree(what, ours, second, tolerance=AGREEMENT):
    ours, second = np.asarray(ours, np.float64), np.asarray(second, np.float64)
    assert ours.shape == second.shape, (what, ours.shape, second.shape)
    assert np.isfinite(ours).all(), what
    difference = np.abs(ours - second).max() / max(np.abs(ours).max(), 1e-30)
    if np.abs(ours - second).max() == 0:
        difference = 0.0
    assert difference <= tolerance, f"{what}: the implementations differ by {difference:.3g}"
    kind = what.split("/")[0]
    worst[kind] = max(worst.get(kind, 0.0), difference)


class Recording:
    """The tensors of one file, and the settings of each case for the header and the tables."""

    def __init__(self, name):
        self.name, self.tensors, self.cases = name, {}, {}

    def case(self, name, **settings):
        assert name not in self.cases, name
        self.cases[name] = settings

    def put(self, name, value):
        value = np.asarray(value)
        if value.dtype not in (np.int32, np.uint32):
            value = value.astype(np.float64)
        assert name not in self.tensors, name
        self.tensors[name] = np.ascontiguousarray(value)

    def put_sampled(self, name, value):
        """Whole if small, else every 23rd element with both sums over all."""
        value = np.asarray(value, np.float64)
        if value.size <= WHOLE:
            return self.put(name, value)
        assert all(n % EVERY for n in value.shape)
        self.put(name + "/every_23rd", value.reshape(-1)[::EVERY])
        self.put(name + "/sum", value.sum())
        self.put(name + "/sum_of_squares", (value * value).sum())

    def save(self):
        metadata = {
            "recording": json.dumps({"keras": keras.__version__, "cases": self.cases})
        }  # one key: their order is not fixed
        path = RECORDED / f"{self.name}.safetensors"
        save_file(self.tensors, path, metadata)
        path.chmod(0o644)
        print(f"{path.name:28} {len(self.tensors):4} tensors {path.stat().st_size:9,} bytes")


# ------------------------------------------------------------------------------------------------------------- whole models
BATCH, STEPS = 8, 10


def scale_of(path, shape):
    """(scale, offset) of the initial values of one parameter."""
    kind = path.split("/")[-1]
    if kind == "kernel":
        fan_in, fan_out = math.prod(shape[:-1]), shape[-1] * math.prod(shape[:-2])
        return 2.0 ** round(math.log2(math.sqrt(6 / (fan_in + fan_out)))), 0.0
    return {
        "bias": (1 / 16, 0.0),
        "gamma": (1 / 4, 1.0),
        "beta": (1 / 8, 0.0),
        "moving_mean": (1 / 8, 0.0),
        "moving_variance": (1 / 2, 1.0),
    }[kind]


def cnn():
    L = keras.layers
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            L.Conv2D(32, 3, activation="relu", name="conv2d"),
            L.MaxPooling2D(2),
            L.Conv2D(64, 3, activation="relu", name="conv2d_1"),
            L.MaxPooling2D(2),
            L.Flatten(),
            L.Dense(64, activation="relu", name="dense"),
            L.Dense(10, activation="softmax", name="dense_1"),
        ]
    )


def mlp(*sizes, last="softmax"):
    def build():
        layers = [keras.Input((784,))]
        for i, size in enumerate(sizes):
            name = "dense" if i == 0 else f"dense_{i}"
            layers.append(keras.layers.Dense(size, activation=last if i == len(sizes) - 1 else "relu", name=name))
        return keras.Sequential(layers)

    return build


def residual():
    L = keras.layers
    convolution = lambda name: L.Conv2D(8, 3, padding="same", use_bias=False, name=name)
    x = inputs = keras.Input((8, 8, 3))
    x = L.ReLU()(L.BatchNormalization(name="batch_norm")(convolution("conv2d")(x)))
    body = L.ReLU()(L.BatchNormalization(name="batch_norm_1")(convolution("conv2d_1")(x)))
    body = L.BatchNormalization(name="batch_norm_2")(convolution("conv2d_2")(body))
    x = L.GlobalAveragePooling2D()(L.ReLU()(L.Add()([x, body])))
    return keras.Model(inputs, L.Dense(5, activation="softmax", name="dense")(x))


class TorchModel:
    """The same networks in PyTorch, on a dictionary of tensors in Keras' layouts."""

    def __init__(self, name):
        self.forward = getattr(self, name.split("_")[0])
        self.logits = name == "mlp_logits"
        self.moving = {}

    def dense(self, p, name, x):
        return x @ p[f"{name}/kernel"] + p[f"{name}/bias"]

    def convolution(self, p, name, x, padding=0):
        return F.conv2d(x, p[f"{name}/kernel"].permute(3, 2, 0, 1), p.get(f"{name}/bias"), padding=padding)

    def cnn(self, p, x, training):
        x = F.max_pool2d(F.relu(self.convolution(p, "conv2d", x.permute(0, 3, 1, 2))), 2)
        x = F.max_pool2d(F.relu(self.convolution(p, "conv2d_1", x)), 2)
        return self.dense(p, "dense_1", F.relu(self.dense(p, "dense", x.permute(0, 2, 3, 1).flatten(1))))

    def mlp(self, p, x, training):
        layers = sorted({name.split("/")[0] for name in p})
        for layer in layers[:-1]:
            x = F.relu(self.dense(p, layer, x))
        return self.dense(p, layers[-1], x)

    def normalised(self, p, name, x, training):
        mean, variance = p[f"{name}/moving_mean"], p[f"{name}/moving_variance"]
        if training:
            with torch.no_grad():
                self.moving[f"{name}/moving_mean"] = 0.99 * mean + 0.01 * x.mean((0, 2, 3))
                self.moving[f"{name}/moving_variance"] = 0.99 * variance + 0.01 * x.var((0, 2, 3), correction=0)
            mean = variance = None
        return F.batch_norm(x, mean, variance, p[f"{name}/gamma"], p[f"{name}/beta"], training=training, eps=1e-3)

    def residual(self, p, x, training):
        x = F.relu(self.normalised(p, "batch_norm", self.convolution(p, "conv2d", x.permute(0, 3, 1, 2), 1), training))
        body = F.relu(self.normalised(p, "batch_norm_1", self.convolution(p, "conv2d_1", x, 1), training))
        body = self.normalised(p, "batch_norm_2", self.convolution(p, "conv2d_2", body, 1), training)
        return self.dense(p, "dense", F.relu(x + body).mean((2, 3)))

    def step(self, parameters, x, labels, training=True):
        """predictions, loss, gradients by name, moving statistics after the step"""
        p = {name: torch.tensor(np.asarray(value)) for name, value in parameters.items()}
        for name in p:
            p[name].requires_grad_("moving" not in name)
        self.moving = {}
        logits = self.forward(p, torch.tensor(x), training)
        loss = F.cross_entropy(logits, torch.tensor(labels).long())
        loss.backward()
        predictions = logits if self.logits else F.softmax(logits, -1)
        return (
            predictions.detach().numpy(),
            loss.item(),
            {name: q.grad.numpy() for name, q in p.items() if q.grad is not None},
            {name: q.numpy() for name, q in self.moving.items()},
        )


MODELS = {  # name: (first stream, builder, shape of a sample, classes, one-hot labels, loss)
    "cnn": (1000, cnn, (28, 28, 1), 10, False, lambda: keras.losses.SparseCategoricalCrossentropy()),
    "mlp": (2000, mlp(128, 10), (784,), 10, True, lambda: keras.losses.CategoricalCrossentropy()),
    "mlp_logits": (
        3000,
        mlp(128, 10, last=None),
        (784,),
        10,
        True,
        lambda: keras.losses.CategoricalCrossentropy(from_logits=True),
    ),
    "mlp_deep": (4000, mlp(64, 64, 10), (784,), 10, False, lambda: keras.losses.SparseCategoricalCrossentropy()),
    "residual": (5000, residual, (8, 8, 3), 5, False, lambda: keras.losses.SparseCategoricalCrossentropy()),
}
OPTIMIZERS_OF_MODELS = {"adam": lambda: keras.optimizers.Adam(), "sgd": lambda: keras.optimizers.SGD(momentum=0.9)}


def name_of(variable):
    return "/".join(variable.path.split("/")[-2:])


class KerasModel:
    def __init__(self, name):
        keras.utils.clear_session()
        self.stream, build, shape, number, hot, loss = MODELS[name]
        self.model, self.loss = build(), loss()
        self.inputs = values(self.stream, (1 + STEPS, BATCH, *shape), 0.5, 0.5)
        self.classes = classes(self.stream + 1, (1 + STEPS, BATCH), number)
        self.labels = one_hot(self.classes, number) if hot else self.classes
        self.initial, self.streams = {}, {}
        for i, variable in enumerate(self.model.weights):
            self.streams[name_of(variable)] = (self.stream + 2 + i, *scale_of(name_of(variable), variable.shape))
            self.initial[name_of(variable)] = values(
                self.streams[name_of(variable)][0], variable.shape, *self.streams[name_of(variable)][1:]
            )
        self.reset()
        self.gradient = jax.jit(jax.value_and_grad(self._loss, has_aux=True))

    def reset(self):
        for variable in self.model.weights:
            variable.assign(self.initial[name_of(variable)])

    def _loss(self, trainable, fixed, x, y):
        predictions, fixed = self.model.stateless_call(trainable, fixed, x, training=True)
        return self.loss(y, predictions), (predictions, fixed)

    def state(self):
        return [v.value for v in self.model.trainable_variables], [v.value for v in self.model.non_trainable_variables]

    def names(self):
        return [name_of(v) for v in self.model.trainable_variables], [name_of(v) for v in self.model.non_trainable_variables]

    def train(self, optimizer):
        """loss of each step, parameters at the end, PyTorch-checkable trace of (parameters, x, classes, loss, gradients)"""
        self.reset()
        trainable, fixed = self.state()
        names, fixed_names = self.names()
        optimizer.build(self.model.trainable_variables)
        slots = [v.value for v in optimizer.variables]
        losses, trace = [], []
        dtype = trainable[0].dtype
        for step in range(1, 1 + STEPS):
            x = jnp.asarray(self.inputs[step], dtype)
            before = dict(zip(names + fixed_names, trainable + fixed))
            (loss, (_, fixed)), gradients = self.gradient(trainable, fixed, x, self.labels[step])
            trace.append((before, step, float(loss), dict(zip(names, gradients))))
            trainable, slots = optimizer.stateless_apply(slots, gradients, trainable)
            losses.append(float(loss))
        return losses, dict(zip(names + fixed_names, list(trainable) + list(fixed))), trace


def record_models():
    for name in MODELS:
        keras_model, torch_model, recording = KerasModel(name), TorchModel(name), Recording(f"model_{name}")
        recording.case(
            name,
            parameters={
                p: dict(stream=s, scale=scale, offset=offset, shape=list(keras_model.initial[p].shape))
                for p, (s, scale, offset) in keras_model.streams.items()
            },
            inputs=keras_model.stream,
            labels=keras_model.stream + 1,
        )
        recording.put("check/inputs", keras_model.inputs.reshape(-1)[:16])
        recording.put("check/labels", keras_model.classes.reshape(-1)[:16])
        for p, value in keras_model.initial.items():
            recording.put(f"check/{p}", value.reshape(-1)[:16])

        names, fixed_names = keras_model.names()
        trainable, fixed = keras_model.state()
        (loss, (predictions, moved)), gradients = keras_model.gradient(
            trainable, fixed, keras_model.inputs[0], keras_model.labels[0]
        )
        p2, l2, g2, m2 = torch_model.step(keras_model.initial, keras_model.inputs[0], keras_model.classes[0])
        agree(f"model/{name}/predictions", predictions, p2)
        agree(f"model/{name}/loss", loss, l2)
        recording.put("predictions", predictions)
        recording.put("loss", loss)
        for p, gradient in zip(names, gradients):
            agree(f"model/{name}/gradient/{p}", gradient, g2[p])
            recording.put_sampled(f"gradient/{p}", gradient)
        for p, value in zip(fixed_names, moved):
            agree(f"model/{name}/{p}", value, m2[p])
            recording.put(f"moving/{p}", value)
        if fixed_names:
            inference = keras_model.model(keras_model.inputs[0], training=False)
            agree(
                f"model/{name}/inference",
                inference,
                torch_model.step(keras_model.initial, keras_model.inputs[0], keras_model.classes[0], False)[0],
            )
            recording.put("inference", inference)

        for kind, optimizer in OPTIMIZERS_OF_MODELS.items():
            losses, final, trace = keras_model.train(optimizer())
            for before, step, loss, gradients in trace:
                _, l2, g2, _ = torch_model.step(before, keras_model.inputs[step], keras_model.classes[step])
                agree(f"model/{name}/{kind}/loss", loss, l2)
                for p in gradients:
                    agree(f"model/{name}/{kind}/{p}", gradients[p], g2[p])
            numpy_check = NUMPY_OPTIMIZERS[{"adam": "adam", "sgd": "sgd_momentum"}[kind]]()
            parameters = {p: np.asarray(trace[0][0][p]) for p in names}
            for _, _, _, gradients in trace:
                parameters = numpy_check(parameters, {p: np.asarray(g) for p, g in gradients.items()})
            recording.put(f"{kind}/losses", losses)
            for p, value in final.items():
                if p in parameters:
                    agree(f"model/{name}/{kind}/{p}", value, parameters[p])
                recording.put_sampled(f"{kind}/{p}", value)
            if fixed_names:
                for variable in keras_model.model.weights:
                    variable.assign(final[name_of(variable)])
                recording.put(f"{kind}/inference", keras_model.model(keras_model.inputs[0], training=False))
                keras_model.reset()
        recording.save()


def print_rounding():
    """How far float32 training (Keras on JAX) ends from the recordings: per tensor, relative to its largest or RMS value."""
    for name in MODELS:
        exact = KerasModel(name)
        keras.config.set_floatx("float32")
        single = KerasModel(name)
        for kind in OPTIMIZERS_OF_MODELS:
            keras.config.set_floatx("float64")
            exact_losses, exact_final, exact_trace = exact.train(OPTIMIZERS_OF_MODELS[kind]())
            keras.config.set_floatx("float32")
            losses, final, trace = single.train(OPTIMIZERS_OF_MODELS[kind]())
            assert all(v.dtype == jnp.float32 for v in final.values())
            relative = lambda a, b: float(np.abs(np.asarray(a, np.float64) - np.asarray(b)).max() / np.abs(np.asarray(b)).max())
            root = lambda a, b: float(
                np.sqrt(np.mean((np.asarray(a, np.float64) - np.asarray(b)) ** 2)) / np.sqrt(np.mean(np.asarray(b) ** 2))
            )
            print(
                f"| {name} | {kind} | {max(relative(trace[0][3][p], exact_trace[0][3][p]) for p in trace[0][3]):.1e} "
                f"| {max(abs(a - b) / b for a, b in zip(losses, exact_losses)):.1e} "
                f"| {max(relative(final[p], exact_final[p]) for p in final):.1e} "
                f"| {max(root(final[p], exact_final[p]) for p in final):.1e} |"
            )
        keras.config.set_floatx("float64")


# ---------------------------------------------------------------------------------------------------- optimizers, schedules
def numpy_optimizer(update, lr, weight_decay=0.0, clipnorm=None, clipvalue=None, global_clipnorm=None):
    """Keras' frame around an update rule: clip, decay, update; the rule is update(w, g, slots, lr, t)."""
    slots, iterations = {}, 0

    def step(parameters, gradients):
        nonlocal iterations
        rate = lr(iterations) if callable(lr) else lr
        iterations += 1
        if clipnorm:
            gradients = {p: g * clipnorm / max(np.linalg.norm(g), clipnorm) for p, g in gradients.items()}
        if global_clipnorm:
            norm = math.sqrt(sum((g * g).sum() for g in gradients.values()))
            gradients = {p: g * min(1.0, global_clipnorm / norm) for p, g in gradients.items()}
        if clipvalue:
            gradients = {p: np.clip(g, -clipvalue, clipvalue) for p, g in gradients.items()}
        return {
            p: update(w - w * weight_decay * rate, gradients[p], slots.setdefault(p, {}), rate, iterations)
            for p, w in parameters.items()
        }

    return step


def numpy_sgd(lr=0.01, momentum=0.0, nesterov=False, **frame):
    def update(w, g, s, lr, t):
        s["v"] = momentum * s.get("v", 0.0) - lr * g
        return w + momentum * s["v"] - lr * g if nesterov else w + s["v"]

    return lambda: numpy_optimizer(update, lr, **frame)


def numpy_rmsprop(lr=0.001, rho=0.9, momentum=0.0, epsilon=1e-7, centered=False, **frame):
    def update(w, g, s, lr, t):
        s["v"] = rho * s.get("v", 0.0) + (1 - rho) * g * g
        s["a"] = rho * s.get("a", 0.0) + (1 - rho) * g
        variance = s["v"] - s["a"] ** 2 if centered else s["v"]
        s["m"] = momentum * s.get("m", 0.0) + lr * g / np.sqrt(variance + epsilon)
        return w - s["m"]

    return lambda: numpy_optimizer(update, lr, **frame)


def numpy_adam(lr=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, amsgrad=False, **frame):
    def update(w, g, s, lr, t):
        s["m"] = beta_1 * s.get("m", 0.0) + (1 - beta_1) * g
        s["v"] = beta_2 * s.get("v", 0.0) + (1 - beta_2) * g * g
        s["top"] = np.maximum(s.get("top", 0.0), s["v"])
        second = s["top"] if amsgrad else s["v"]
        return w - lr * math.sqrt(1 - beta_2**t) / (1 - beta_1**t) * s["m"] / (np.sqrt(second) + epsilon)

    return lambda: numpy_optimizer(update, lr, **frame)


def optimizer_cases():
    """name: (settings in Keras' spelling, Keras optimizer, NumPy optimizer)"""
    K, S = keras.optimizers, keras.optimizers.schedules
    kinds = {
        "sgd": (K.SGD, numpy_sgd),
        "rmsprop": (K.RMSprop, numpy_rmsprop),
        "adam": (K.Adam, numpy_adam),
        "adamw": (K.AdamW, numpy_adam),
        "lamb": (K.Lamb, numpy_lamb),
        "nadam": (K.Nadam, numpy_nadam),
        "adamax": (K.Adamax, numpy_adamax),
        "adagrad": (K.Adagrad, numpy_adagrad),
        "adadelta": (K.Adadelta, numpy_adadelta),
        "lion": (K.Lion, numpy_lion),
        "ftrl": (K.Ftrl, numpy_ftrl),
        "adafactor": (K.Adafactor, numpy_adafactor),
    }
    cases = {}

    def case(name, kind, schedule=None, **settings):
        keras_kind, numpy_kind = kinds[kind]
        renamed = {{"learning_rate": "lr"}.get(k, k): v for k, v in settings.items()}
        if kind == "adamw":
            renamed.setdefault("weight_decay", 0.004)
        if schedule:
            renamed["lr"] = schedule[2]
            build = lambda: keras_kind(learning_rate=schedule[1], **settings)
            described = dict(optimizer=kind, learning_rate=schedule[0], **settings)
        else:
            build = lambda: keras_kind(**settings)
            described = dict(optimizer=kind, **settings)
        cases[name] = (described, build, numpy_kind(**renamed))

    case("sgd", "sgd")
    case("sgd_momentum", "sgd", momentum=0.9)
    case("sgd_nesterov", "sgd", momentum=0.9, nesterov=True)
    case("sgd_weight_decay", "sgd", learning_rate=0.05, momentum=0.9, weight_decay=0.01)
    case("sgd_clipnorm", "sgd", learning_rate=0.1, clipnorm=1.0)
    case("sgd_clipvalue", "sgd", learning_rate=0.1, clipvalue=0.25)
    case("sgd_global_clipnorm", "sgd", learning_rate=0.1, global_clipnorm=1.5)
    case("rmsprop", "rmsprop")
    case("rmsprop_momentum", "rmsprop", momentum=0.9)
    case("rmsprop_centered", "rmsprop", centered=True)
    case("rmsprop_centered_momentum", "rmsprop", learning_rate=0.01, rho=0.8, momentum=0.5, epsilon=1e-3, centered=True)
    case("adam", "adam")
    case("adam_settings", "adam", learning_rate=0.01, beta_1=0.8, beta_2=0.95, epsilon=1e-3)
    case("adam_amsgrad", "adam", learning_rate=0.01, beta_2=0.9, amsgrad=True)
    case("adam_weight_decay", "adam", weight_decay=0.1)
    case("adam_clipnorm", "adam", clipnorm=1.0)
    case("adam_clipvalue", "adam", clipvalue=0.25)
    case("adam_global_clipnorm", "adam", global_clipnorm=1.5)
    case("adamw", "adamw")
    case("adamw_amsgrad", "adamw", learning_rate=0.01, weight_decay=0.05, beta_2=0.9, amsgrad=True, global_clipnorm=1.5)
    decay = ("exponential_decay(0.1, 3, 0.5)", S.ExponentialDecay(0.1, 3, 0.5), lambda i: 0.1 * 0.5 ** (i / 3))
    stair = (
        "exponential_decay(0.1, 3, 0.5, staircase)",
        S.ExponentialDecay(0.1, 3, 0.5, staircase=True),
        lambda i: 0.1 * 0.5 ** (i // 3),
    )
    warm = (
        "cosine_decay(0.0, 6, alpha = 0.1, warmup_target = 0.02, warmup_steps = 3)",
        S.CosineDecay(0.0, 6, alpha=0.1, warmup_target=0.02, warmup_steps=3),
        lambda i: 0.02 * i / 3 if i < 3 else 0.02 * (0.9 * (1 + math.cos(math.pi * min(i - 3, 6) / 6)) / 2 + 0.1),
    )
    case("sgd_momentum_exponential_decay", "sgd", decay, momentum=0.9)
    case("sgd_nesterov_staircase", "sgd", stair, momentum=0.9, nesterov=True)
    case("adamw_cosine_decay", "adamw", warm)
    case("lamb", "lamb")
    case("lamb_settings", "lamb", learning_rate=0.1, beta_1=0.8, beta_2=0.95, epsilon=1e-3)
    case("lamb_weight_decay", "lamb", learning_rate=0.05, weight_decay=0.1)
    case("lamb_clipnorm", "lamb", learning_rate=0.02, clipnorm=1.0)
    case("lamb_clipvalue", "lamb", clipvalue=0.25)
    case("lamb_global_clipnorm", "lamb", global_clipnorm=1.5)
    case("lamb_cosine_decay", "lamb", warm)
    frame = dict(weight_decay=0.1), dict(clipnorm=1.0), dict(clipvalue=0.25), dict(global_clipnorm=1.5)
    for kind, settings in {
        "nadam": dict(learning_rate=0.01, beta_1=0.8, beta_2=0.95, epsilon=1e-3),
        "adamax": dict(learning_rate=0.01, beta_1=0.8, beta_2=0.7, epsilon=1e-3),
        "adagrad": dict(learning_rate=0.1, initial_accumulator_value=0.0, epsilon=1e-3),
        "adadelta": dict(learning_rate=1.0, rho=0.8, epsilon=1e-3),
        "lion": dict(learning_rate=0.01, beta_1=0.8, beta_2=0.95),
        "ftrl": dict(learning_rate=0.1, initial_accumulator_value=0.5, l1_regularization_strength=0.25, beta=0.5),
        "adafactor": dict(learning_rate=0.5, beta_2_decay=-0.5, epsilon_1=1e-3, epsilon_2=0.25, clip_threshold=0.5),
    }.items():
        case(kind, kind)
        case(f"{kind}_settings", kind, **settings)
        for setting in frame:
            case(f"{kind}_{next(iter(setting))}", kind, learning_rate=0.02, **setting)
        case(f"{kind}_exponential_decay", kind, decay)
    case(
        "ftrl_power",
        "ftrl",
        learning_rate=0.1,
        learning_rate_power=-0.25,
        l2_regularization_strength=0.5,
        l2_shrinkage_regularization_strength=0.25,
    )
    return cases


def numpy_adafactor(lr=0.001, beta_2_decay=-0.8, epsilon_1=1e-30, epsilon_2=1e-3, clip_threshold=1.0, **frame):
    root = lambda x: math.sqrt((x * x).mean())

    def update(w, g, s, lr, t):
        keep, square = 1 - t**beta_2_decay, g * g + epsilon_1
        average = lambda name, now: s.__setitem__(name, keep * s.get(name, 0.0) + (1 - keep) * now) or s[name]
        if w.ndim > 1:
            rows, columns = average("r", square.mean(-1, keepdims=True)), average("c", square.mean(-2, keepdims=True))
            v = rows * columns / rows.mean(-2, keepdims=True)
        else:
            v = average("v", square)
        d = g / np.sqrt(v)
        return w - min(lr, 1 / math.sqrt(t)) * max(epsilon_2, root(w)) / max(1.0, root(d) / clip_threshold) * d

    return lambda: numpy_optimizer(update, lr, **frame)


def numpy_lamb(lr=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, **frame):
    def update(w, g, s, lr, t):
        s["m"] = beta_1 * s.get("m", 0.0) + (1 - beta_1) * g
        s["v"] = beta_2 * s.get("v", 0.0) + (1 - beta_2) * g * g
        d = s["m"] / (1 - beta_1**t) / (np.sqrt(s["v"] / (1 - beta_2**t)) + epsilon)
        norms = np.linalg.norm(w), np.linalg.norm(d)
        return w - lr * (norms[0] / norms[1] if min(norms) > 0 else 1.0) * d

    return lambda: numpy_optimizer(update, lr, **frame)


def numpy_nadam(lr=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, **frame):
    def update(w, g, s, lr, t):
        s["m"] = beta_1 * s.get("m", 0.0) + (1 - beta_1) * g
        s["v"] = beta_2 * s.get("v", 0.0) + (1 - beta_2) * g * g
        of_step = [beta_1 * (1 - 0.96**i / 2) for i in range(1, t + 2)]
        ahead = of_step[t] * s["m"] / (1 - math.prod(of_step)) + (1 - of_step[t - 1]) * g / (1 - math.prod(of_step[:t]))
        return w - lr * ahead / (np.sqrt(s["v"] / (1 - beta_2**t)) + epsilon)

    return lambda: numpy_optimizer(update, lr, **frame)


def numpy_adamax(lr=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, **frame):
    def update(w, g, s, lr, t):
        s["m"] = beta_1 * s.get("m", 0.0) + (1 - beta_1) * g
        s["u"] = np.maximum(beta_2 * s.get("u", 0.0), np.abs(g))
        return w - lr / (1 - beta_1**t) * s["m"] / (s["u"] + epsilon)

    return lambda: numpy_optimizer(update, lr, **frame)


def numpy_adagrad(lr=0.001, initial_accumulator_value=0.1, epsilon=1e-7, **frame):
    def update(w, g, s, lr, t):
        s["n"] = s.get("n", initial_accumulator_value) + g * g
        return w - lr * g / np.sqrt(s["n"] + epsilon)

    return lambda: numpy_optimizer(update, lr, **frame)


def numpy_adadelta(lr=0.001, rho=0.95, epsilon=1e-7, **frame):
    def update(w, g, s, lr, t):
        s["v"] = rho * s.get("v", 0.0) + (1 - rho) * g * g
        d = g * np.sqrt((s.get("u", 0.0) + epsilon) / (s["v"] + epsilon))
        s["u"] = rho * s.get("u", 0.0) + (1 - rho) * d * d
        return w - lr * d

    return lambda: numpy_optimizer(update, lr, **frame)


def numpy_lion(lr=0.001, beta_1=0.9, beta_2=0.99, **frame):
    def update(w, g, s, lr, t):
        m = s.get("m", 0.0)
        s["m"] = beta_2 * m + (1 - beta_2) * g
        return w - lr * np.sign(beta_1 * m + (1 - beta_1) * g)

    return lambda: numpy_optimizer(update, lr, **frame)


def numpy_ftrl(
    lr=0.001,
    learning_rate_power=-0.5,
    initial_accumulator_value=0.1,
    l1_regularization_strength=0.0,
    l2_regularization_strength=0.0,
    l2_shrinkage_regularization_strength=0.0,
    beta=0.0,
    **frame,
):
    def update(w, g, s, lr, t):
        before = s.get("n", initial_accumulator_value)
        s["n"] = before + g * g
        sigma = (s["n"] ** -learning_rate_power - before**-learning_rate_power) / lr
        s["z"] = s.get("z", 0.0) + g + 2 * l2_shrinkage_regularization_strength * w - sigma * w
        clipped = np.clip(s["z"], -l1_regularization_strength, l1_regularization_strength)
        return (clipped - s["z"]) / ((s["n"] ** -learning_rate_power + beta) / lr + 2 * l2_regularization_strength)

    return lambda: numpy_optimizer(update, lr, **frame)


NUMPY_OPTIMIZERS = {"adam": numpy_adam(), "sgd_momentum": numpy_sgd(momentum=0.9)}


def record_optimizers():
    recording = Recording("optimizers")
    initial = {"kernel": values(101, (7, 3)), "bias": values(102, (3,))}
    # Sizes for which the placement of epsilon matters, and that clip only in some steps.
    size = 2.0 ** np.array([0, -2, 1, -1, 2, -3, 0, 1, -2, 0])
    kernel = values(103, (STEPS, 7, 3)) * size[:, None, None]
    kernel[:, :, 2] *= 2.0**-12
    kernel[:, 6, :] *= 2.0**-12
    bias = values(104, (STEPS, 3)) * size[:, None]
    bias[:, 0] = 0
    gradients = {"kernel": kernel, "bias": bias}
    for p in initial:
        assert np.array_equal(gradients[p], gradients[p].astype(np.float32))
        recording.put(f"initial/{p}", initial[p])
        recording.put(f"gradients/{p}", gradients[p])
    for name, (settings, build, numpy_build) in optimizer_cases().items():
        recording.case(name, **settings)
        variables = {p: keras.Variable(value, name=p) for p, value in initial.items()}
        optimizer, second, state = build(), numpy_build(), dict(initial)
        optimizer.build(list(variables.values()))
        seen = {p: [] for p in initial}
        for step in range(STEPS):
            optimizer.apply([jnp.asarray(gradients[p][step]) for p in initial], list(variables.values()))
            state = second(state, {p: gradients[p][step] for p in initial})
            for p in initial:
                seen[p].append(np.asarray(variables[p].value))
                agree(f"optimizer/{name}/{p}", seen[p][-1], state[p])
        for p in initial:
            recording.put(f"{name}/{p}", np.stack(seen[p]))
        for variable in optimizer.variables:
            for p in initial:
                if variable.name.startswith(p + "_"):
                    recording.put(f"{name}/slots/{variable.name.removeprefix(p + '_')}/{p}", variable.value)
    recording.save()
    return recording


def record_schedules():
    S, recording = keras.optimizers.schedules, Recording("schedules")
    steps = np.array([*range(101), 149, 150, 151, 309, 310, 311, 1000, 12_345, 1_000_000], np.int32)
    recording.put("steps", steps)

    def polynomial(initial, n, end, power, cycle=False):
        def rate(i):
            length = n * max(1, math.ceil(i / n)) if cycle else n
            return (initial - end) * (1 - min(i, length) / length) ** power + end

        return rate

    def cosine(initial, n, alpha=0.0, target=None, warm=0):
        if target is None:
            return lambda i: initial * ((1 - alpha) * (1 + math.cos(math.pi * min(i, n) / n)) / 2 + alpha)
        return lambda i: (
            initial + (target - initial) * i / warm
            if i < warm
            else target * ((1 - alpha) * (1 + math.cos(math.pi * min(i - warm, n) / n)) / 2 + alpha)
        )

    def restarts(initial, n, t_mul=2.0, m_mul=1.0, alpha=0.0):
        def rate(i):
            length, factor = n, 1.0
            while i >= length:
                i, length, factor = i - length, length * t_mul, factor * m_mul
            return initial * ((1 - alpha) * factor * (1 + math.cos(math.pi * i / length)) / 2 + alpha)

        return rate

    cases = {
        "exponential_decay": (S.ExponentialDecay(0.1, 10, 0.9), lambda i: 0.1 * 0.9 ** (i / 10), "(0.1, 10, 0.9)"),
        "exponential_decay_staircase": (
            S.ExponentialDecay(0.1, 10, 0.9, staircase=True),
            lambda i: 0.1 * 0.9 ** (i // 10),
            "(0.1, 10, 0.9, staircase)",
        ),
        "inverse_time_decay": (S.InverseTimeDecay(0.1, 10, 0.5), lambda i: 0.1 / (1 + 0.5 * i / 10), "(0.1, 10, 0.5)"),
        "inverse_time_decay_staircase": (
            S.InverseTimeDecay(0.1, 10, 0.5, staircase=True),
            lambda i: 0.1 / (1 + 0.5 * (i // 10)),
            "(0.1, 10, 0.5, staircase)",
        ),
        "piecewise_constant_decay": (
            S.PiecewiseConstantDecay([10, 20], [1.0, 0.5, 0.1]),
            lambda i: 1.0 if i <= 10 else 0.5 if i <= 20 else 0.1,
            "(boundaries 10, 20; values 1.0, 0.5, 0.1)",
        ),
        "polynomial_decay": (S.PolynomialDecay(0.1, 20), polynomial(0.1, 20, 0.0001, 1.0), "(0.1, 20)"),
        "polynomial_decay_power": (
            S.PolynomialDecay(0.1, 20, 0.01, 2.0),
            polynomial(0.1, 20, 0.01, 2.0),
            "(0.1, 20, end 0.01, power 2)",
        ),
        "polynomial_decay_cycle": (
            S.PolynomialDecay(0.1, 15, 0.01, 0.5, cycle=True),
            polynomial(0.1, 15, 0.01, 0.5, True),
            "(0.1, 15, end 0.01, power 0.5, cycle)",
        ),
        "cosine_decay": (S.CosineDecay(0.1, 20), cosine(0.1, 20), "(0.1, 20)"),
        "cosine_decay_alpha": (S.CosineDecay(0.1, 20, alpha=0.1), cosine(0.1, 20, 0.1), "(0.1, 20, alpha 0.1)"),
        "cosine_decay_warmup": (
            S.CosineDecay(0.01, 20, alpha=0.1, warmup_target=0.2, warmup_steps=10),
            cosine(0.01, 20, 0.1, 0.2, 10),
            "(0.01, 20, alpha 0.1, warmup_target 0.2, warmup_steps 10)",
        ),
        "cosine_decay_warmup_from_0": (
            S.CosineDecay(0.0, 40, warmup_target=0.1, warmup_steps=7),
            cosine(0.0, 40, 0.0, 0.1, 7),
            "(0.0, 40, warmup_target 0.1, warmup_steps 7)",
        ),
        "cosine_decay_warmup_steps_alone": (
            S.CosineDecay(0.1, 20, warmup_steps=10),
            cosine(0.1, 20),
            "(0.1, 20, warmup_steps 10)",
        ),
        "cosine_decay_restarts": (S.CosineDecayRestarts(0.1, 10), restarts(0.1, 10), "(0.1, 10)"),
        "cosine_decay_restarts_equal": (
            S.CosineDecayRestarts(0.1, 15, t_mul=1.0, m_mul=0.9, alpha=0.1),
            restarts(0.1, 15, 1.0, 0.9, 0.1),
            "(0.1, 15, t_mul 1, m_mul 0.9, alpha 0.1)",
        ),
        "cosine_decay_restarts_settings": (
            S.CosineDecayRestarts(0.2, 8, t_mul=1.5, m_mul=0.8, alpha=0.05),
            restarts(0.2, 8, 1.5, 0.8, 0.05),
            "(0.2, 8, t_mul 1.5, m_mul 0.8, alpha 0.05)",
        ),
    }
    for name, (schedule, second, settings) in cases.items():
        rates = np.array([np.asarray(schedule(jnp.asarray(int(i), "int64"))) for i in steps])
        assert rates.dtype == np.float64, name
        agree(f"schedule/{name}", rates, [second(int(i)) for i in steps], 1e-13)
        recording.case(name, settings=settings)
        recording.put(name, rates)
    recording.save()
    return recording


# ------------------------------------------------------------------------------------------------------------------- layers
def to_first(x):
    return x.permute(0, 3, 1, 2)


def to_last(x):
    return x.permute(0, 2, 3, 1)


def pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def same_pad(x, window, stride, dilation, fill):
    """TensorFlow's `same`: one element more after than before where the total is odd. x is channels first."""
    amounts = []
    for n, k, s, d in zip(x.shape[2:], pair(window), pair(stride), pair(dilation)):
        total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        amounts.append((total // 2, total - total // 2))
    return F.pad(x, (*amounts[1], *amounts[0]), value=fill)


def torch_dense(p, x, training, units, use_bias=True, activation=None):
    y = x @ p["kernel"] + (p["bias"] if use_bias else 0)
    return F.relu(y) if activation == "relu" else y


def torch_conv2d(
    p, x, training, filters, kernel_size, strides=1, padding="valid", dilation_rate=1, groups=1, use_bias=True, activation=None
):
    x = to_first(x)
    if padding == "same":
        x = same_pad(x, kernel_size, strides, dilation_rate, 0.0)
    y = to_last(
        F.conv2d(x, p["kernel"].permute(3, 2, 0, 1), p.get("bias"), stride=strides, dilation=dilation_rate, groups=groups)
    )
    return F.relu(y) if activation == "relu" else y


def torch_max_pool2d(p, x, training, pool_size=2, strides=None, padding="valid"):
    strides = strides or pool_size
    x = to_first(x)
    if padding == "same":
        x = same_pad(x, pool_size, strides, 1, -math.inf)
    return to_last(F.max_pool2d(x, pool_size, strides))


def torch_average_pool2d(p, x, training, pool_size=2, strides=None, padding="valid"):
    strides = strides or pool_size
    x = to_first(x)
    area = math.prod(pair(pool_size))
    count = torch.ones_like(x)
    if padding == "same":
        x, count = same_pad(x, pool_size, strides, 1, 0.0), same_pad(count, pool_size, strides, 1, 0.0)
    return to_last(F.avg_pool2d(x, pool_size, strides) * area / (F.avg_pool2d(count, pool_size, strides) * area))


def torch_global_average_pool2d(p, x, training, keepdims=False):
    return x.mean((1, 2), keepdim=keepdims)


def torch_batch_norm(p, x, training, momentum=0.99, epsilon=1e-3, center=True, scale=True):
    axes = tuple(range(x.ndim - 1))
    mean, variance = p["moving_mean"], p["moving_variance"]
    if training:
        mean, variance = x.mean(axes), x.var(axes, correction=0)
        p["moved_mean"] = p["moving_mean"] * momentum + mean.detach() * (1 - momentum)
        p["moved_variance"] = p["moving_variance"] * momentum + variance.detach() * (1 - momentum)
    y = (x - mean) / torch.sqrt(variance + epsilon)
    return y * p.get("gamma", 1.0) + p.get("beta", 0.0)


def torch_layer_norm(p, x, training, epsilon=1e-3, center=True, scale=True):
    return F.layer_norm(x, x.shape[-1:], p.get("gamma"), p.get("beta"), epsilon)


def torch_zero_padding2d(p, x, training, padding=1):
    top_bottom, left_right = (pair(padding)) if isinstance(padding, int) else padding
    return F.pad(x, (0, 0, *pair(left_right), *pair(top_bottom)))


LAYERS = {
    "dense": (keras.layers.Dense, torch_dense),
    "conv2d": (keras.layers.Conv2D, torch_conv2d),
    "max_pool2d": (keras.layers.MaxPooling2D, torch_max_pool2d),
    "average_pool2d": (keras.layers.AveragePooling2D, torch_average_pool2d),
    "global_average_pool2d": (keras.layers.GlobalAveragePooling2D, torch_global_average_pool2d),
    "batch_norm": (keras.layers.BatchNormalization, torch_batch_norm),
    "layer_norm": (keras.layers.LayerNormalization, torch_layer_norm),
    "zero_padding2d": (keras.layers.ZeroPadding2D, torch_zero_padding2d),
}

LAYER_CASES = [  # (name, layer, shape of the input with the batch, settings[, training])
    ("dense", "dense", (3, 5), dict(units=7)),
    ("dense_no_bias", "dense", (4, 9), dict(units=3, use_bias=False)),
    ("dense_relu", "dense", (5, 13), dict(units=11, activation="relu")),
    ("dense_wide", "dense", (17, 67), dict(units=35)),
    ("dense_single", "dense", (1, 1), dict(units=1)),
    ("dense_rank3", "dense", (2, 3, 5), dict(units=4)),
    ("conv2d", "conv2d", (2, 7, 9, 3), dict(filters=5, kernel_size=3)),
    ("conv2d_same", "conv2d", (2, 7, 9, 3), dict(filters=5, kernel_size=3, padding="same")),
    ("conv2d_no_bias", "conv2d", (2, 6, 5, 2), dict(filters=3, kernel_size=3, use_bias=False)),
    ("conv2d_relu", "conv2d", (3, 6, 7, 2), dict(filters=4, kernel_size=3, activation="relu")),
    ("conv2d_one_channel", "conv2d", (3, 11, 13, 1), dict(filters=9, kernel_size=3)),
    ("conv2d_many_channels", "conv2d", (2, 5, 6, 17), dict(filters=19, kernel_size=3)),
    ("conv2d_1x1", "conv2d", (2, 5, 4, 6), dict(filters=7, kernel_size=1)),
    ("conv2d_5x5", "conv2d", (2, 9, 8, 2), dict(filters=3, kernel_size=5)),
    ("conv2d_5x5_same", "conv2d", (1, 7, 6, 3), dict(filters=2, kernel_size=5, padding="same")),
    ("conv2d_3x5", "conv2d", (2, 8, 9, 2), dict(filters=3, kernel_size=(3, 5), padding="same")),
    ("conv2d_stride2", "conv2d", (2, 8, 11, 3), dict(filters=4, kernel_size=3, strides=2)),
    ("conv2d_stride2_same_odd", "conv2d", (2, 7, 9, 3), dict(filters=4, kernel_size=3, strides=2, padding="same")),
    ("conv2d_stride2_same_even", "conv2d", (2, 8, 10, 3), dict(filters=4, kernel_size=3, strides=2, padding="same")),
    ("conv2d_stride3_same", "conv2d", (2, 10, 11, 2), dict(filters=3, kernel_size=3, strides=3, padding="same")),
    ("conv2d_stride_2x1", "conv2d", (2, 9, 7, 2), dict(filters=3, kernel_size=(3, 2), strides=(2, 1))),
    ("conv2d_1x1_stride2_same", "conv2d", (2, 7, 8, 3), dict(filters=4, kernel_size=1, strides=2, padding="same")),
    ("conv2d_2x2_same", "conv2d", (2, 5, 7, 3), dict(filters=4, kernel_size=2, padding="same")),
    ("conv2d_4x4_same", "conv2d", (2, 7, 6, 2), dict(filters=3, kernel_size=4, padding="same")),
    ("conv2d_4x4_stride2_same", "conv2d", (2, 7, 8, 2), dict(filters=3, kernel_size=4, strides=2, padding="same")),
    ("conv2d_7x7_same_small", "conv2d", (2, 4, 5, 2), dict(filters=3, kernel_size=7, padding="same")),
    ("conv2d_dilation2", "conv2d", (2, 9, 8, 3), dict(filters=4, kernel_size=3, dilation_rate=2)),
    ("conv2d_dilation2_same", "conv2d", (2, 7, 6, 3), dict(filters=4, kernel_size=3, dilation_rate=2, padding="same")),
    ("conv2d_dilation2_2x2_same", "conv2d", (1, 6, 7, 2), dict(filters=3, kernel_size=2, dilation_rate=2, padding="same")),
    ("conv2d_groups2", "conv2d", (2, 7, 6, 4), dict(filters=6, kernel_size=3, groups=2)),
    ("conv2d_groups2_stride2_same", "conv2d", (2, 7, 8, 4), dict(filters=6, kernel_size=3, groups=2, strides=2, padding="same")),
    ("conv2d_depthwise", "conv2d", (2, 6, 7, 5), dict(filters=5, kernel_size=3, groups=5, padding="same")),
    ("max_pool2d", "max_pool2d", (2, 6, 8, 3), dict()),
    ("max_pool2d_odd", "max_pool2d", (2, 7, 9, 3), dict(pool_size=2)),
    ("max_pool2d_3", "max_pool2d", (2, 9, 7, 2), dict(pool_size=3)),
    ("max_pool2d_overlapping", "max_pool2d", (2, 9, 8, 3), dict(pool_size=3, strides=2)),
    ("max_pool2d_gaps", "max_pool2d", (2, 8, 9, 2), dict(pool_size=2, strides=3)),
    ("max_pool2d_2x3", "max_pool2d", (2, 6, 7, 2), dict(pool_size=(2, 3), strides=(1, 2))),
    ("max_pool2d_same", "max_pool2d", (2, 5, 7, 3), dict(pool_size=2, padding="same")),
    ("max_pool2d_3_stride2_same_odd", "max_pool2d", (2, 7, 9, 2), dict(pool_size=3, strides=2, padding="same")),
    ("max_pool2d_3_stride2_same_even", "max_pool2d", (2, 8, 6, 2), dict(pool_size=3, strides=2, padding="same")),
    ("max_pool2d_3_stride1_same", "max_pool2d", (1, 5, 6, 2), dict(pool_size=3, strides=1, padding="same")),
    ("max_pool2d_ties", "max_pool2d", (2, 6, 6, 2), dict(pool_size=3, strides=2)),
    ("average_pool2d", "average_pool2d", (2, 6, 8, 3), dict(pool_size=2)),
    ("average_pool2d_odd", "average_pool2d", (2, 7, 9, 3), dict(pool_size=2)),
    ("average_pool2d_overlapping", "average_pool2d", (2, 9, 8, 3), dict(pool_size=3, strides=2)),
    ("average_pool2d_same", "average_pool2d", (2, 5, 7, 3), dict(pool_size=2, padding="same")),
    ("average_pool2d_3_stride1_same", "average_pool2d", (2, 5, 6, 2), dict(pool_size=3, strides=1, padding="same")),
    ("average_pool2d_3_stride2_same_even", "average_pool2d", (2, 8, 6, 2), dict(pool_size=3, strides=2, padding="same")),
    ("average_pool2d_2x3_same", "average_pool2d", (2, 5, 7, 2), dict(pool_size=(2, 3), strides=(1, 2), padding="same")),
    ("global_average_pool2d", "global_average_pool2d", (3, 5, 7, 4), dict()),
    ("global_average_pool2d_keepdims", "global_average_pool2d", (2, 3, 4, 5), dict(keepdims=True)),
    ("batch_norm", "batch_norm", (5, 3, 4, 3), dict(), True),
    ("batch_norm_inference", "batch_norm", (5, 3, 4, 3), dict(), False),
    ("batch_norm_rank2", "batch_norm", (9, 7), dict(), True),
    ("batch_norm_rank2_inference", "batch_norm", (9, 7), dict(), False),
    ("batch_norm_settings", "batch_norm", (4, 3, 5, 2), dict(momentum=0.8, epsilon=1e-2), True),
    ("batch_norm_no_center", "batch_norm", (4, 3, 2, 5), dict(center=False), True),
    ("batch_norm_no_scale", "batch_norm", (4, 3, 2, 5), dict(scale=False), True),
    ("batch_norm_plain", "batch_norm", (6, 5), dict(center=False, scale=False), True),
    ("batch_norm_plain_inference", "batch_norm", (6, 5), dict(center=False, scale=False), False),
    ("layer_norm", "layer_norm", (4, 7), dict()),
    ("layer_norm_rank3", "layer_norm", (2, 3, 5), dict()),
    ("layer_norm_rank4", "layer_norm", (2, 3, 2, 9), dict()),
    ("layer_norm_no_center", "layer_norm", (3, 6), dict(center=False)),
    ("layer_norm_no_scale", "layer_norm", (3, 6), dict(scale=False)),
    ("layer_norm_epsilon", "layer_norm", (3, 5), dict(epsilon=1e-5)),
    ("zero_padding2d", "zero_padding2d", (2, 3, 4, 3), dict()),
    ("zero_padding2d_2x1", "zero_padding2d", (2, 4, 3, 2), dict(padding=(2, 1))),
    ("zero_padding2d_asymmetric", "zero_padding2d", (2, 3, 5, 2), dict(padding=((1, 2), (0, 3)))),
]


def layer_gradients(recording, name, layer, second, x, stream, training, check="layer"):
    """Records output and gradients of sum(output * output_gradient) for a Keras layer and compares with second(parameters, x)."""
    layer.build(x.shape)
    parameters = {}
    for i, variable in enumerate(layer.weights):
        kind = variable.path.split("/")[-1]
        parameters[kind] = values(
            stream + 2 + i,
            variable.shape,
            *{"kernel": (0.5, 0.0), "bias": (0.5, 0.0)}.get(kind) or scale_of(kind, variable.shape),
        )
        variable.assign(parameters[kind])
    trainable, fixed = [v.value for v in layer.trainable_variables], [v.value for v in layer.non_trainable_variables]
    names = [v.path.split("/")[-1] for v in layer.trainable_variables]
    fixed_names = [v.path.split("/")[-1] for v in layer.non_trainable_variables]
    call = (
        (lambda t, x: layer.stateless_call(t, fixed, x, training=training))
        if "batch_norm" in name
        else lambda t, x: layer.stateless_call(t, fixed, x)
    )
    output, moved = call(trainable, jnp.asarray(x))
    output_gradient = values(stream + 1, output.shape)
    gradients, input_gradient = jax.grad(lambda t, x: (call(t, x)[0] * output_gradient).sum(), (0, 1))(trainable, jnp.asarray(x))

    p = {kind: torch.tensor(value).requires_grad_("moving" not in kind) for kind, value in parameters.items()}
    tx = torch.tensor(x).requires_grad_()
    ty = second(p, tx)
    (ty * torch.tensor(output_gradient)).sum().backward()
    agree(f"{check}/{name}/output", output, ty.detach())
    agree(f"{check}/{name}/input_gradient", input_gradient, tx.grad)
    recording.put(f"{name}/input", x)
    recording.put(f"{name}/output", output)
    recording.put(f"{name}/output_gradient", output_gradient)
    recording.put(f"{name}/input_gradient", input_gradient)
    for kind, value in parameters.items():
        recording.put(f"{name}/{kind}", value)
    for kind, gradient in zip(names, gradients):
        agree(f"{check}/{name}/{kind}_gradient", gradient, p[kind].grad)
        recording.put(f"{name}/{kind}_gradient", gradient)
    if training:
        for kind, value in zip(fixed_names, moved):
            agree(f"{check}/{name}/{kind}", value, p[kind.replace("moving", "moved")])
            recording.put(f"{name}/{kind}_after", value)


def record_layers():
    recording = Recording("layers")
    for i, (name, kind, shape, settings, *training) in enumerate(LAYER_CASES):
        keras_kind, second = LAYERS[kind]
        training = bool(training and training[0])
        recording.case(name, layer=kind, shape=shape, training=training, **settings)
        stream = 10_000 + 20 * i
        x = values(stream, shape, 2.0, 0.5 if "norm" in kind else 0.0)
        if name == "max_pool2d_ties":
            x = classes(stream, shape, 3).astype(np.float64)
        layer_gradients(
            recording, name, keras_kind(**settings), lambda p, x: second(p, x, training, **settings), x, stream, training
        )
    recording.save()
    return recording


def record_activations():
    A, L, recording = keras.activations, keras.layers, Recording("activations")
    selu_alpha, selu_scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    general_relu = lambda slope, top, at: lambda x: torch.where(
        x >= top, torch.full_like(x, top), torch.where(x > at, x, slope * (x - at))
    )
    cases = {  # name: (Keras, PyTorch, settings)
        "relu": (L.ReLU(), F.relu, ""),
        "relu_max_value": (L.ReLU(max_value=1.5), general_relu(0.0, 1.5, 0.0), "max_value 1.5"),
        "relu6": (L.ReLU(max_value=6.0), F.relu6, "max_value 6"),
        "relu_negative_slope": (L.ReLU(negative_slope=0.1), lambda x: F.leaky_relu(x, 0.1), "negative_slope 0.1"),
        "relu_threshold": (L.ReLU(threshold=0.75), general_relu(0.0, math.inf, 0.75), "threshold 0.75"),
        "relu_all": (
            L.ReLU(max_value=3.0, negative_slope=0.1, threshold=0.5),
            general_relu(0.1, 3.0, 0.5),
            "max_value 3, negative_slope 0.1, threshold 0.5",
        ),
        "leaky_relu_layer": (L.LeakyReLU(), lambda x: F.leaky_relu(x, 0.3), "the layer's default, negative_slope 0.3"),
        "leaky_relu_function": (
            L.Activation(A.leaky_relu),
            lambda x: F.leaky_relu(x, 0.2),
            "the function's default, negative_slope 0.2",
        ),
        "elu": (L.ELU(), F.elu, "alpha 1"),
        "elu_alpha": (L.ELU(alpha=0.5), lambda x: F.elu(x, 0.5), "alpha 0.5"),
        "selu": (L.Activation(A.selu), lambda x: selu_scale * torch.where(x > 0, x, selu_alpha * torch.expm1(x)), ""),
        "gelu": (L.Activation(A.gelu), F.gelu, "exact, Keras' default"),
        "gelu_approximate": (
            L.Activation(lambda x: A.gelu(x, approximate=True)),
            lambda x: F.gelu(x, approximate="tanh"),
            "approximate",
        ),
        "silu": (L.Activation(A.silu), F.silu, ""),
        "sigmoid": (L.Activation(A.sigmoid), torch.sigmoid, ""),
        "tanh": (L.Activation(A.tanh), torch.tanh, ""),
        "softplus": (L.Activation(A.softplus), lambda x: x.clamp(min=0) + torch.log1p(torch.exp(-x.abs())), ""),
        "softmax": (L.Softmax(), lambda x: F.softmax(x, -1), "last axis"),
    }
    for i, (name, (layer, second, settings)) in enumerate(cases.items()):
        recording.case(name, shape=(5, 13), settings=settings)
        stream = 20_000 + 20 * i
        layer_gradients(recording, name, layer, lambda p, x: second(x), values(stream, (5, 13), 8.0), stream, False, "activation")
    recording.case("softmax_rank3", shape=(2, 3, 7), settings="last axis")
    layer_gradients(
        recording,
        "softmax_rank3",
        L.Softmax(),
        lambda p, x: F.softmax(x, -1),
        values(21_000, (2, 3, 7), 8.0),
        21_000,
        False,
        "activation",
    )
    recording.save()
    return recording


# ----------------------------------------------------------------------------------------------------------- losses, metrics
def record_losses():
    K, recording = keras.losses, Recording("losses")
    fuzz = 1e-7
    single = lambda x: np.asarray(x, np.float32).astype(np.float64)

    def categorical(logits=False, smoothing=0.0):
        def second(y, p):
            y = y * (1 - smoothing) + smoothing / y.shape[-1]
            log = F.log_softmax(p, -1) if logits else torch.log((p / p.sum(-1, keepdim=True)).clamp(fuzz, 1 - fuzz))
            return -(y * log).sum(-1)

        return second

    def sparse(logits=False):
        return lambda y, p: categorical(logits)(F.one_hot(y.long(), p.shape[-1]).double(), p)

    def binary(logits=False, smoothing=0.0):
        def second(y, p):
            y = y * (1 - smoothing) + smoothing / 2
            if logits:
                return F.binary_cross_entropy_with_logits(p, y, reduction="none").mean(-1)
            p = p.clamp(fuzz, 1 - fuzz)
            return -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean(-1)

        return second

    square = lambda y, p: ((p - y) ** 2).mean(-1)
    absolute = lambda y, p: (p - y).abs().mean(-1)
    huber = lambda delta: lambda y, p: F.huber_loss(p, y, reduction="none", delta=delta).mean(-1)

    def softmax(stream, shape):
        z = values(stream, shape, 2.0)
        e = np.exp(z - z.max(-1, keepdims=True))
        return single(e / e.sum(-1, keepdims=True))

    def soft(stream, shape):
        return softmax(stream, shape)

    flat, image = (6, 7), (2, 3, 4, 5)
    edge = np.array([[0, 1, 0, 0], [0.25, 0.75, 0, 0], [2.0**-30, 0.5, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]])
    edge_labels = np.array([1, 2, 0, 3], np.int32)
    binary_edge = np.array([[0, 1, 0.5], [2.0**-30, 1, 0.25]])
    binary_edge_labels = np.array([[1.0, 1, 1], [1, 0, 0]])
    hot = lambda stream, shape: one_hot(classes(stream, shape[:-1], shape[-1]), shape[-1])
    bits = lambda stream, shape: classes(stream, shape, 2).astype(np.float64)
    probability = lambda stream, shape: values(stream, shape, 0.5, 0.5)

    cases = [  # (name, Keras, second, labels, predictions, settings)
        ("categorical_crossentropy", K.CategoricalCrossentropy, categorical(), hot(1, flat), softmax(2, flat), {}),
        (
            "categorical_crossentropy_unnormalised",
            K.CategoricalCrossentropy,
            categorical(),
            hot(3, flat),
            probability(4, flat),
            {},
        ),
        ("categorical_crossentropy_soft_labels", K.CategoricalCrossentropy, categorical(), soft(5, flat), softmax(6, flat), {}),
        ("categorical_crossentropy_clamped", K.CategoricalCrossentropy, categorical(), one_hot(edge_labels, 4), edge, {}),
        (
            "categorical_crossentropy_label_smoothing",
            K.CategoricalCrossentropy,
            categorical(smoothing=0.1),
            hot(7, flat),
            softmax(8, flat),
            dict(label_smoothing=0.1),
        ),
        (
            "categorical_crossentropy_from_logits",
            K.CategoricalCrossentropy,
            categorical(True),
            hot(9, flat),
            values(10, flat, 4.0),
            dict(from_logits=True),
        ),
        (
            "categorical_crossentropy_from_logits_soft_labels",
            K.CategoricalCrossentropy,
            categorical(True),
            soft(11, flat),
            values(12, flat, 4.0),
            dict(from_logits=True),
        ),
        (
            "categorical_crossentropy_from_logits_large",
            K.CategoricalCrossentropy,
            categorical(True),
            hot(13, flat),
            values(14, flat, 256.0),
            dict(from_logits=True),
        ),
        (
            "categorical_crossentropy_from_logits_label_smoothing",
            K.CategoricalCrossentropy,
            categorical(True, 0.1),
            hot(15, flat),
            values(16, flat, 4.0),
            dict(from_logits=True, label_smoothing=0.1),
        ),
        ("categorical_crossentropy_image", K.CategoricalCrossentropy, categorical(), hot(17, image), softmax(18, image), {}),
        (
            "categorical_crossentropy_from_logits_image",
            K.CategoricalCrossentropy,
            categorical(True),
            hot(19, image),
            values(20, image, 4.0),
            dict(from_logits=True),
        ),
        (
            "sparse_categorical_crossentropy",
            K.SparseCategoricalCrossentropy,
            sparse(),
            classes(21, flat[:1], 7),
            softmax(22, flat),
            {},
        ),
        (
            "sparse_categorical_crossentropy_unnormalised",
            K.SparseCategoricalCrossentropy,
            sparse(),
            classes(23, flat[:1], 7),
            probability(24, flat),
            {},
        ),
        ("sparse_categorical_crossentropy_clamped", K.SparseCategoricalCrossentropy, sparse(), edge_labels, edge, {}),
        (
            "sparse_categorical_crossentropy_from_logits",
            K.SparseCategoricalCrossentropy,
            sparse(True),
            classes(25, flat[:1], 7),
            values(26, flat, 4.0),
            dict(from_logits=True),
        ),
        (
            "sparse_categorical_crossentropy_from_logits_large",
            K.SparseCategoricalCrossentropy,
            sparse(True),
            classes(27, flat[:1], 7),
            values(28, flat, 256.0),
            dict(from_logits=True),
        ),
        (
            "sparse_categorical_crossentropy_image",
            K.SparseCategoricalCrossentropy,
            sparse(),
            classes(29, image[:3], 5),
            softmax(30, image),
            {},
        ),
        (
            "sparse_categorical_crossentropy_from_logits_image",
            K.SparseCategoricalCrossentropy,
            sparse(True),
            classes(31, image[:3], 5),
            values(32, image, 4.0),
            dict(from_logits=True),
        ),
        ("binary_crossentropy", K.BinaryCrossentropy, binary(), bits(33, (6, 3)), probability(34, (6, 3)), {}),
        ("binary_crossentropy_single", K.BinaryCrossentropy, binary(), bits(35, (5, 1)), probability(36, (5, 1)), {}),
        ("binary_crossentropy_clamped", K.BinaryCrossentropy, binary(), binary_edge_labels, binary_edge, {}),
        (
            "binary_crossentropy_label_smoothing",
            K.BinaryCrossentropy,
            binary(smoothing=0.1),
            bits(37, (6, 3)),
            probability(38, (6, 3)),
            dict(label_smoothing=0.1),
        ),
        (
            "binary_crossentropy_from_logits",
            K.BinaryCrossentropy,
            binary(True),
            bits(39, (6, 3)),
            values(40, (6, 3), 4.0),
            dict(from_logits=True),
        ),
        (
            "binary_crossentropy_from_logits_large",
            K.BinaryCrossentropy,
            binary(True),
            bits(41, (6, 3)),
            values(42, (6, 3), 256.0),
            dict(from_logits=True),
        ),
        (
            "binary_crossentropy_from_logits_label_smoothing",
            K.BinaryCrossentropy,
            binary(True, 0.1),
            bits(43, (6, 3)),
            values(44, (6, 3), 4.0),
            dict(from_logits=True, label_smoothing=0.1),
        ),
        ("binary_crossentropy_image", K.BinaryCrossentropy, binary(), bits(45, image), probability(46, image), {}),
        ("mean_squared_error", K.MeanSquaredError, square, values(47, flat), values(48, flat), {}),
        ("mean_squared_error_image", K.MeanSquaredError, square, values(49, image), values(50, image), {}),
        ("mean_absolute_error", K.MeanAbsoluteError, absolute, values(51, flat), values(52, flat), {}),
        ("mean_absolute_error_image", K.MeanAbsoluteError, absolute, values(53, image), values(54, image), {}),
        ("huber", K.Huber, huber(1.0), values(55, flat, 2.0), values(56, flat, 2.0), {}),
        ("huber_delta", K.Huber, huber(0.5), values(57, flat), values(58, flat), dict(delta=0.5)),
        ("huber_image", K.Huber, huber(1.0), values(59, image, 2.0), values(60, image, 2.0), {}),
    ]
    for name, kind, second, labels, predictions, settings in cases:
        recording.case(name, shape=predictions.shape, **settings)
        each, mean = kind(reduction=None, **settings), kind(**settings)
        per_position = each(labels, predictions)
        value, gradient = jax.value_and_grad(lambda p: mean(labels, p))(jnp.asarray(predictions))
        p = torch.tensor(predictions).requires_grad_()
        losses = second(torch.tensor(labels), p)
        losses.mean().backward()
        agree(f"loss/{name}/per_position", per_position, losses.detach())
        agree(f"loss/{name}/loss", value, losses.mean().item())
        agree(f"loss/{name}/gradient", gradient, p.grad)
        recording.put(f"{name}/labels", labels)
        recording.put(f"{name}/predictions", predictions)
        recording.put(f"{name}/per_position", per_position)
        recording.put(f"{name}/loss", value)
        recording.put(f"{name}/gradient", gradient)
    recording.save()
    return recording


def record_metrics():
    K, recording = keras.metrics, Recording("metrics")
    number, first = 8, 5
    tied = classes(1, (number, 6), 3) / 4.0  # many equal scores
    distinct = values(2, (number, 6))
    image = values(3, (number, 3, 2, 5))
    labels, image_labels = classes(23, (number,), 6), classes(5, (number, 3, 2), 5)
    halves = classes(6, (number, 3), 5) / 4.0  # 0, 0.25, 0.5, 0.75, 1: half is the boundary
    bits = classes(7, (number, 3), 2).astype(np.float64)
    argmax = lambda x: np.array([row.tolist().index(row.max()) for row in x.reshape(-1, x.shape[-1])]).reshape(x.shape[:-1])

    def inside(label, scores, k):
        label, scores = label.reshape(-1), scores.reshape(-1, scores.shape[-1])
        return np.array([sum(s > row[c] for s in row) < k for c, row in zip(label, scores)], float).reshape(-1)

    def sparse_accuracy(y, p):
        return (y == argmax(p)).astype(float)

    categorical = lambda y, p: sparse_accuracy(argmax(y), p)
    top = lambda k: lambda y, p: inside(argmax(y), p, k).reshape(y.shape[:-1])
    sparse_top = lambda k: lambda y, p: inside(y, p, k).reshape(y.shape)
    binary = lambda threshold: lambda y, p: (y == (p > threshold)).astype(float)
    cases = [  # (name, Keras, second, labels, predictions, settings)
        (
            "accuracy",
            K.Accuracy,
            lambda y, p: (y == p).astype(float),
            classes(8, (number, 3), 3).astype(np.float64),
            classes(9, (number, 3), 3).astype(np.float64),
            {},
        ),
        ("binary_accuracy", K.BinaryAccuracy, binary(0.5), bits, halves, {}),
        ("binary_accuracy_single", K.BinaryAccuracy, binary(0.5), bits[:, :1], halves[:, :1], {}),
        ("binary_accuracy_threshold", K.BinaryAccuracy, binary(0.25), bits, halves, dict(threshold=0.25)),
        ("categorical_accuracy", K.CategoricalAccuracy, categorical, one_hot(labels, 6), distinct, {}),
        ("categorical_accuracy_ties", K.CategoricalAccuracy, categorical, tied[::-1].copy(), tied, {}),
        ("categorical_accuracy_image", K.CategoricalAccuracy, categorical, one_hot(image_labels, 5), image, {}),
        ("sparse_categorical_accuracy", K.SparseCategoricalAccuracy, sparse_accuracy, labels, distinct, {}),
        ("sparse_categorical_accuracy_ties", K.SparseCategoricalAccuracy, sparse_accuracy, labels, tied, {}),
        ("sparse_categorical_accuracy_image", K.SparseCategoricalAccuracy, sparse_accuracy, image_labels, image, {}),
        ("top_k_categorical_accuracy", K.TopKCategoricalAccuracy, top(5), one_hot(labels, 6), distinct, {}),
        ("top_k_categorical_accuracy_2", K.TopKCategoricalAccuracy, top(2), one_hot(labels, 6), distinct, dict(k=2)),
        ("top_k_categorical_accuracy_ties", K.TopKCategoricalAccuracy, top(2), one_hot(labels, 6), tied, dict(k=2)),
        ("sparse_top_k_categorical_accuracy", K.SparseTopKCategoricalAccuracy, sparse_top(5), labels, distinct, {}),
        ("sparse_top_k_categorical_accuracy_3", K.SparseTopKCategoricalAccuracy, sparse_top(3), labels, distinct, dict(k=3)),
        ("sparse_top_k_categorical_accuracy_ties", K.SparseTopKCategoricalAccuracy, sparse_top(2), labels, tied, dict(k=2)),
        (
            "sparse_top_k_categorical_accuracy_image",
            K.SparseTopKCategoricalAccuracy,
            sparse_top(2),
            image_labels,
            image,
            dict(k=2),
        ),
        (
            "mean_absolute_error",
            K.MeanAbsoluteError,
            lambda y, p: np.abs(p - y),
            values(10, (number, 7)),
            values(11, (number, 7)),
            {},
        ),
        ("mean_absolute_error_image", K.MeanAbsoluteError, lambda y, p: np.abs(p - y), values(12, image.shape), image, {}),
        (
            "mean_squared_error",
            K.MeanSquaredError,
            lambda y, p: (p - y) ** 2,
            values(13, (number, 7)),
            values(14, (number, 7)),
            {},
        ),
        ("mean_squared_error_image", K.MeanSquaredError, lambda y, p: (p - y) ** 2, values(15, image.shape), image, {}),
    ]
    for name, kind, second, y, p, settings in cases:
        recording.case(name, shape=p.shape, **settings)
        metric = kind(**settings)
        metric.update_state(y[:first], p[:first])
        after_first = float(metric.result())
        metric.update_state(y[first:], p[first:])
        result = float(metric.result())
        samples = second(y, p).reshape(number, -1).mean(1)
        agree(f"metric/{name}", result, samples.mean())
        agree(f"metric/{name}", after_first, samples[:first].mean())
        assert 0 < result and ("accuracy" not in name or result < 1), f"{name} tells nothing: {result}"
        recording.put(f"{name}/labels", y)
        recording.put(f"{name}/predictions", p)
        recording.put(f"{name}/result_of_5", after_first)
        recording.put(f"{name}/result", result)
    recording.save()
    return recording


def print_table(recording):
    print(f"\n## {recording.name}")
    for name, settings in recording.cases.items():
        print(f"| `{name}` | {', '.join(f'{k} {v}' for k, v in settings.items())} |")


def main():
    RECORDED.mkdir(exist_ok=True)
    if "--rounding" in sys.argv:
        print_rounding()
    record_models()
    recordings = [
        record_optimizers(),
        record_schedules(),
        record_layers(),
        record_activations(),
        record_losses(),
        record_metrics(),
    ]
    if "--tables" in sys.argv:
        for recording in recordings:
            print_table(recording)
        for name in MODELS:
            print(f"\n## {name}")
            for p, (stream, scale, offset) in KerasModel(name).streams.items():
                print(f"| `{p}` | {KerasModel(name).initial[p].shape} | {stream} | {scale} | {offset} |")
    print("largest disagreement:", ", ".join(f"{kind} {value:.1e}" for kind, value in worst.items()))
    print("mix(1) = 0x%08x, hashed(1)[0..2] = %s" % (mix(1)[0], [hex(h) for h in hashed(1, 3)]))
    print("values(1)[0..3] =", values(1, (4,)).tolist())


if __name__ == "__main__":
    main()
