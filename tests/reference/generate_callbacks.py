#!/usr/bin/env python3
"""Records recorded/callbacks.safetensors: the decisions of callbacks at the end of each epoch, for given values.

    python3 -m venv venv && venv/bin/pip install keras==3.15.1 jax==0.10.2 safetensors==0.8.0 numpy==2.4.6
    venv/bin/python generate_callbacks.py

The decisions are those of Keras' own callbacks, with a model whose only weight is the number of the epoch.
"""

import json
import os
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"

import keras
import numpy as np
from safetensors.numpy import save_file

random = np.random.default_rng(21)
EPOCHS = 30


class Optimizer:
    def __init__(self):
        self.learning_rate = 0.5


class Model:
    def __init__(self):
        self.stop_training, self.weights, self.optimizer = False, -1, Optimizer()

    def get_weights(self):
        return self.weights

    def set_weights(self, weights):
        self.weights = weights


def run(callback, values, name):
    model = Model()
    callback.set_model(model)
    callback.on_train_begin()
    rates, epoch = [], 0
    for epoch, value in enumerate(values):
        model.weights = epoch
        callback.on_epoch_begin(epoch)
        rates.append(float(model.optimizer.learning_rate))
        callback.on_epoch_end(epoch, {name: float(value), "loss": 1.0})
        if model.stop_training:
            break
    callback.on_train_end()
    return epoch, model.weights, rates


cases, tensors = {}, {}
for i in range(120):
    larger = bool(random.integers(2))
    name = "val_loss" if not larger else "val_auc"
    values = np.cumsum(random.normal(-0.3, 1, EPOCHS)) * (-1 if larger else 1)
    if i % 10 == 9:
        values[random.integers(EPOCHS)] = np.nan
    mode = ("max" if larger else "min") if larger or random.integers(2) else "auto"
    if i % 2 == 0:
        s = dict(min_delta=float(random.choice([0, 0.1, 1])), patience=int(random.integers(8)), mode=mode,
                 baseline=None if random.integers(2) else float(values[5]), restore_best_weights=bool(random.integers(2)),
                 start_from_epoch=int(random.choice([0, 0, 5])))
        last, weights, _ = run(keras.callbacks.EarlyStopping(name, **s), values, name)
        tensors[f"{i}/last"] = np.array([last, weights], np.int32)
        cases[str(i)] = {"callback": "early_stopping", "monitor": name, **s}
    else:
        s = dict(factor=float(random.choice([0.5, 0.25])), patience=int(random.integers(1, 5)), mode=mode,
                 min_delta=float(random.choice([1e-4, 0.5])), cooldown=int(random.integers(4)),
                 min_lr=float(random.choice([0, 0.0625])))
        _, _, rates = run(keras.callbacks.ReduceLROnPlateau(name, **s), values, name)
        tensors[f"{i}/rates"] = np.array(rates)
        cases[str(i)] = {"callback": "reduce_lr_on_plateau", "monitor": name, **s}
    tensors[f"{i}/values"] = values
save_file(tensors, Path(__file__).parent / "recorded/callbacks.safetensors",
          {"recording": json.dumps({"keras": keras.__version__, "cases": cases})})
print(len(cases), "cases")
