"""Keras with TensorFlow: compile and fit as its guides show them, data in memory.   keras_peer.py THREADS"""
import functools
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import numpy as np
import tensorflow as tf

from networks import NETWORKS, AveragePool, Conv, Dense, MaxPool
from serve import EPOCH, WARM_UP, WORKERS_EPOCH, fastest, samples_of, samples_per_second, serve

if "TF_CONFIG" in os.environ:
    import tf_keras as keras  # under Keras 3, fit of MultiWorkerMirroredStrategy raises a ValueError
else:
    import keras
L = keras.layers

tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[1]))
keras.utils.set_random_seed(1)

PLAIN = {"flatten": L.Flatten, "batch_norm": L.BatchNormalization, "global_average_pool": L.GlobalAveragePooling2D}


def layer_of(layer, activation: str | None):
    match layer:
        case Conv():
            padding = "same" if layer.same else "valid"
            return L.Conv2D(layer.filters, layer.kernel, layer.stride, padding, use_bias=layer.bias, activation=activation)
        case Dense():
            return L.Dense(layer.units, activation=activation)
        case MaxPool():
            return L.MaxPooling2D(layer.window)
        case AveragePool():
            return L.AveragePooling2D(layer.window)
        case _:
            return PLAIN[layer]() if layer in PLAIN else L.Activation(layer)


def compiled(name: str):
    network = NETWORKS[name]
    model = keras.Sequential([L.Input(network.input)])
    items = list(network.layers)
    while items:
        layer = items.pop(0)
        takes_activation = isinstance(layer, (Conv, Dense)) and items and items[0] in ("relu", "tanh", "softmax")
        activation = items.pop(0) if takes_activation else None
        model.add(layer_of(layer, activation))
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


@functools.cache
def trained(name: str, batch: int):
    """A warmed-up model, and its data."""
    model, network = compiled(name), NETWORKS[name]
    x = samples_of(network.input, EPOCH)
    y = np.random.default_rng(2).integers(0, 10, EPOCH, np.int32)
    model.fit(x[: batch * WARM_UP], y[: batch * WARM_UP], batch_size=batch, verbose=0)
    return model, x, y


@functools.cache
def trained_by_workers(name: str, batch: int):
    """As trained(), for the processes of TF_CONFIG. The batch is the global batch."""
    with tf.distribute.MultiWorkerMirroredStrategy().scope():
        model = compiled(name)
    x = samples_of(NETWORKS[name].input, EPOCH)
    y = np.random.default_rng(2).integers(0, 10, EPOCH, np.int32)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    batches = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(10_000).repeat().batch(batch).prefetch(tf.data.AUTOTUNE)
    batches = batches.with_options(options)
    model.fit(batches, steps_per_epoch=WARM_UP, verbose=0)
    return model, batches


def input_pipeline(model: str, batch: int, seconds: float) -> float:
    x = np.random.default_rng(1).integers(0, 256, (EPOCH, 28, 28, 1), np.uint8)
    pipeline = tf.data.Dataset.from_tensor_slices((x, np.ones(EPOCH, np.int32))).shuffle(EPOCH).repeat()
    if model == "standardized_28x28":
        pipeline = pipeline.map(lambda x, y: (tf.image.per_image_standardization(x), y), num_parallel_calls=tf.data.AUTOTUNE).batch(batch)
    else:
        pipeline = pipeline.batch(batch).map(lambda x, y: (tf.cast(x, tf.float32) / 255, y), num_parallel_calls=tf.data.AUTOTUNE)
    batches = iter(pipeline.prefetch(tf.data.AUTOTUNE))
    return fastest(lambda: next(batches), batch, seconds)


def answer(request: dict) -> dict:
    batch = request["batch"]
    if request["what"] == "input":
        return {"samples_per_second": input_pipeline(request["model"], batch, request["seconds"])}
    if request["what"].startswith("workers"):
        model, batches = trained_by_workers(request["model"], batch)
        steps = WORKERS_EPOCH // batch
        speed = samples_per_second(lambda: model.fit(batches, steps_per_epoch=steps, verbose=0), steps * batch)
    else:
        model, x, y = trained(request["model"], batch)
        speed = samples_per_second(lambda: model.fit(x, y, batch_size=batch, verbose=0), EPOCH)
    return {"samples_per_second": speed, "parameters": sum(int(np.prod(w.shape)) for w in model.trainable_weights)}


serve({"keras": keras.__version__, "tensorflow": tf.__version__}, answer)
