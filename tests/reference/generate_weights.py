#!/usr/bin/env python3
"""Records recorded/weights.safetensors: the results of Keras' own fit with sample_weight and class_weight.

    python3 -m venv venv && venv/bin/pip install keras==3.15.1 jax==0.10.2 safetensors==0.8.0 numpy==2.4.6
    venv/bin/python generate_weights.py

Keras runs on JAX in float64. Each case is a network of two dense layers, trained by sgd for two epochs of batches of 8, 8 and 4
samples in their order, and validated with sample_weight: kernels and biases before and after, loss and val_loss of each epoch.
The loss of the first batch is computed again from the formula: the sum of weight * loss, divided by the number of samples.
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

COUNT, IN, BATCH, EPOCHS, RATE = 20, 4, 8, 2, 0.25
random = np.random.default_rng(11)
short = lambda low, high, shape: random.uniform(low, high, shape).astype(np.float32).astype(np.float64)
classes = random.integers(0, 3, COUNT)
labels = lambda: classes
hot = lambda: np.eye(3)[classes]
bits = lambda: (classes > 0).astype(np.float64).reshape(-1, 1)
numbers = lambda: short(-1, 1, (COUNT, 2))
CASES = {  # loss, activation, truth, whether by class
    "sparse": (keras.losses.SparseCategoricalCrossentropy(), "softmax", labels, False),
    "sparse_class": (keras.losses.SparseCategoricalCrossentropy(), "softmax", labels, True),
    "logits": (keras.losses.SparseCategoricalCrossentropy(from_logits=True), None, labels, False),
    "hot": (keras.losses.CategoricalCrossentropy(), "softmax", hot, False),
    "hot_class": (keras.losses.CategoricalCrossentropy(), "softmax", hot, True),
    "bits": (keras.losses.BinaryCrossentropy(), "sigmoid", bits, False),
    "bits_class": (keras.losses.BinaryCrossentropy(), "sigmoid", bits, True),
    "numbers": (keras.losses.MeanSquaredError(), None, numbers, False),
    "huber": (keras.losses.Huber(), None, numbers, False),
    "cosine": (keras.losses.CosineSimilarity(), None, numbers, False),
}
CLASS_WEIGHT = {0: 0.5, 2: 3.0}  # class 1 is left out: its weight is 1

tensors, cases = {}, {}
for name, (loss, activation, truth_of, by_class) in CASES.items():
    x, y, weights = short(-1, 1, (COUNT, IN)), truth_of(), short(0, 2, COUNT)
    weights[3] = 0
    units = 3 if y.ndim == 1 else y.shape[-1]
    model = keras.Sequential([keras.Input((IN,)), keras.layers.Dense(5, "tanh"), keras.layers.Dense(units, activation)])
    start = [short(-0.7, 0.7, w.shape) for w in model.weights]
    model.set_weights(start)
    model.compile(keras.optimizers.SGD(RATE), loss)
    used = np.array([CLASS_WEIGHT.get(c, 1.0) for c in (y if y.ndim == 1 else y[:, 0].astype(int) if units == 1 else y.argmax(-1))])
    used = used if by_class else weights

    each = type(loss)(**{**loss.get_config(), "reduction": "none"})
    by_hand = (np.asarray(each(y[:BATCH], model(x[:BATCH]))) * used[:BATCH]).sum() / BATCH
    seen = []
    keep = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(logs["loss"]))
    how = {"class_weight": CLASS_WEIGHT} if by_class else {"sample_weight": weights}
    past = model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=[keep],
                     validation_data=(x, y, weights), **how)
    assert abs(seen[0] - by_hand) < 1e-12, (name, seen[0], by_hand)
    flat = lambda arrays: np.concatenate([np.asarray(a).ravel() for a in arrays])
    for key, value in {"x": x, "y": y.astype(np.int32) if y.ndim == 1 else y, "weights": weights, "start": flat(start),
                       "end": flat(model.get_weights()), "loss": past.history["loss"], "val_loss": past.history["val_loss"]}.items():
        tensors[f"{name}/{key}"] = np.ascontiguousarray(value)
    cases[name] = {}

save_file(tensors, Path(__file__).parent / "recorded/weights.safetensors", {"recording": json.dumps({"cases": cases})})
