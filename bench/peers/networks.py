"""The networks of bench/networks/architectures.hpp for all peers: lists of layers that each peer builds in its own way."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Conv:
    filters: int
    kernel: int
    stride: int = 1
    same: bool = False
    bias: bool = True
    depthwise: bool = False


@dataclass(frozen=True)
class Dense:
    units: int


@dataclass(frozen=True)
class MaxPool:
    window: int = 2


@dataclass(frozen=True)
class AveragePool:
    window: int = 2


@dataclass(frozen=True)
class Residual:
    """body(x) + short_cut(x); an empty short cut is the identity."""
    body: tuple
    short_cut: tuple = ()


# Layers without settings: "relu" "tanh" "sigmoid" "softmax" "flatten" "batch_norm" "global_average_pool"


@dataclass(frozen=True)
class Network:
    """The last layer is softmax or sigmoid, the loss the crossentropy that goes with it; with sigmoid, the targets are the inputs."""
    input: tuple
    layers: tuple


def mlp(inputs, *units):
    hidden = [layer for n in units[:-1] for layer in (Dense(n), "relu")]
    return Network(inputs, ("flatten", *hidden, Dense(units[-1]), "softmax"))


def normalized(filters, kernel, stride=1, depthwise=False):
    return (Conv(filters, kernel, stride, same=True, bias=False, depthwise=depthwise), "batch_norm", "relu")


def residual(filters, stride=1):
    body = (*normalized(filters, 3, stride), Conv(filters, 3, same=True, bias=False), "batch_norm")
    return (Residual(body, () if stride == 1 else (Conv(filters, 1, stride, bias=False), "batch_norm")), "relu")


def separable(channels, filters, stride=1):
    return (*normalized(channels, 3, stride, depthwise=True), *normalized(filters, 1))


def vgg_stage(filters):
    return (Conv(filters, 3, same=True), "relu", Conv(filters, 3, same=True), "relu", MaxPool())


def single(size, channels, filters, stride, same):
    return Network((size, size, channels), (Conv(filters, 3, stride, same), "relu", "global_average_pool", Dense(10), "softmax"))


MNIST, CIFAR = (28, 28, 1), (32, 32, 3)
NETWORKS = {
    "cnn": Network(MNIST, (Conv(32, 3), "relu", MaxPool(), Conv(64, 3), "relu", MaxPool(),
                           "flatten", Dense(64), "relu", Dense(10), "softmax")),
    "mlp_128": mlp(MNIST, 128, 10),
    "mlp_64_64": mlp(MNIST, 64, 64, 10),
    "mlp_512_512": mlp(MNIST, 512, 512, 10),
    "wide_mlp": mlp((1024,), 2048, 2048, 100),
    "autoencoder": Network((784,), (Dense(256), "relu", Dense(32), "relu", Dense(256), "relu", Dense(784), "sigmoid")),
    "lenet5": Network(MNIST, (Conv(6, 5, same=True), "tanh", AveragePool(), Conv(16, 5), "tanh", AveragePool(),
                              "flatten", Dense(120), "tanh", Dense(84), "tanh", Dense(10), "softmax")),
    "vgg": Network(CIFAR, (*vgg_stage(64), *vgg_stage(128), *vgg_stage(256), "flatten", Dense(256), "relu", Dense(10), "softmax")),
    "resnet20": Network(CIFAR, (*normalized(16, 3),
                                *residual(16), *residual(16), *residual(16),
                                *residual(32, 2), *residual(32), *residual(32),
                                *residual(64, 2), *residual(64), *residual(64),
                                "global_average_pool", Dense(10), "softmax")),
    "mobilenet": Network(CIFAR, (*normalized(32, 3), *separable(32, 64), *separable(64, 128, 2), *separable(128, 128),
                                 *separable(128, 256, 2), *separable(256, 256), "global_average_pool", Dense(10), "softmax")),
    "conv_27x27x1_same": single(27, 1, 32, 1, True),
    "conv_27x27x1_stride2": single(27, 1, 32, 2, False),
    "conv_15x15x1": single(15, 1, 32, 1, False),
    "conv_27x27x3": single(27, 3, 32, 1, False),
    "conv_27x27x3_same_stride2": single(27, 3, 32, 2, True),
    "conv_15x15x3_same": single(15, 3, 32, 1, True),
    "conv_27x27x17_same": single(27, 17, 40, 1, True),
    "conv_27x27x17_stride2": single(27, 17, 40, 2, False),
    "conv_15x15x17": single(15, 17, 40, 1, False),
    "conv_27x27x64": single(27, 64, 64, 1, False),
    "conv_15x15x64_same": single(15, 64, 64, 1, True),
    "conv_15x15x64_same_stride2": single(15, 64, 64, 2, True),
}
