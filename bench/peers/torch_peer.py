"""PyTorch eager on the CPU in its best case: data in memory as tensors, channels last, fused Adam.   torch_peer.py THREADS"""
import functools
import itertools
import sys

import torch
from torch import distributed, nn
from torch.nn import functional
from torch.utils import data

from networks import NETWORKS, AveragePool, Conv, Dense, MaxPool, Residual
from serve import BATCHES, EPOCH, WARM_UP, WORKERS_EPOCH, fastest, samples_of, samples_per_second, serve

torch.set_num_threads(int(sys.argv[1]))
torch.set_flush_denormal(True)
torch.manual_seed(1)

PLAIN = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "softmax": lambda: nn.Softmax(1)}


class Sum(nn.Module):
    def __init__(self, body: nn.Module, short_cut: nn.Module):
        super().__init__()
        self.body, self.short_cut = body, short_cut

    def forward(self, x):
        return self.body(x) + self.short_cut(x)


def build(layers: tuple, shape: tuple) -> tuple[nn.Sequential, tuple]:
    """The module and its output shape; shapes are (height, width, channels) or (features)."""
    stack = nn.Sequential()
    for layer in layers:
        match layer:
            case Conv():
                groups = shape[2] if layer.depthwise else 1
                padding = (layer.kernel - 1) // 2 if layer.same else 0
                stack.append(nn.Conv2d(shape[2], layer.filters, layer.kernel, layer.stride, padding, groups=groups, bias=layer.bias))
                shape = (*[(n + 2 * padding - layer.kernel) // layer.stride + 1 for n in shape[:2]], layer.filters)
            case MaxPool() | AveragePool():
                stack.append((nn.MaxPool2d if isinstance(layer, MaxPool) else nn.AvgPool2d)(layer.window))
                shape = (shape[0] // layer.window, shape[1] // layer.window, shape[2])
            case Dense():
                stack.append(nn.Linear(shape[0], layer.units))
                shape = (layer.units,)
            case Residual():
                body, after = build(layer.body, shape)
                short_cut, _ = build(layer.short_cut, shape)
                stack.append(Sum(body, short_cut))
                shape = after
            case "batch_norm":
                stack.append(nn.BatchNorm2d(shape[2]))
            case "flatten" | "global_average_pool":
                if len(shape) == 1:
                    continue
                if layer == "global_average_pool":
                    stack.append(nn.AdaptiveAvgPool2d(1))
                    shape = (1, 1, shape[2])
                stack.append(nn.Flatten())
                shape = (shape[0] * shape[1] * shape[2],)
            case _:
                stack.append(PLAIN[layer]())
    return stack, shape


class Model:
    def __init__(self, name: str, count: int):
        """Holds `count` samples in memory."""
        network = NETWORKS[name]
        self.last = network.layers[-1]
        self.module, out = build(network.layers[:-1], network.input)
        self.x = torch.from_numpy(samples_of(network.input, count))
        if self.x.dim() == 4:
            self.module = self.module.to(memory_format=torch.channels_last)
            self.x = self.x.permute(0, 3, 1, 2)
        # Losses of logits are faster.
        self.y = self.x if self.last == "sigmoid" else torch.randint(0, out[0], (count,))
        self.loss = functional.binary_cross_entropy_with_logits if self.last == "sigmoid" else functional.cross_entropy
        self.optimizer = torch.optim.Adam(self.module.parameters(), lr=1e-3, fused=True)
        self.parameters = sum(p.numel() for p in self.module.parameters())

    def step(self, x: torch.Tensor, y: torch.Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.module(x), y).backward()
        self.optimizer.step()

    def train(self, batch: int, seconds: float) -> float:
        self.module.train()
        batches = itertools.cycle(zip(self.x.split(batch), self.y.split(batch)))
        return fastest(lambda: self.step(*next(batches)), batch, seconds)

    def predict(self, batch: int, seconds: float) -> float:
        module = nn.Sequential(self.module, PLAIN[self.last]()).eval()
        batches = itertools.cycle(self.x.split(batch))
        with torch.inference_mode():
            return fastest(lambda: module(next(batches)), batch, seconds)

    def epoch(self, batch: int, samples: int = EPOCH) -> None:
        for indices in torch.randperm(EPOCH)[:samples].split(batch):
            self.step(self.x[indices], self.y[indices])


@functools.cache
def model_for_epochs(name: str, batch: int) -> Model:
    model = Model(name, EPOCH)
    for indices in torch.randperm(EPOCH)[: batch * WARM_UP].split(batch):
        model.step(model.x[indices], model.y[indices])
    return model


@functools.cache
def model_of_worker(name: str, batch: int) -> Model:
    """A model in the process group of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Each process computes its share of a batch."""
    distributed.init_process_group("gloo")
    model = Model(name, EPOCH)
    model.module = nn.parallel.DistributedDataParallel(model.module)
    model.epoch(batch, batch * WARM_UP)
    return model


def standardized(images: torch.Tensor) -> torch.Tensor:
    """Standardizes one image or several, as tf.image.per_image_standardization does."""
    images = images.float()
    deviation, mean = torch.std_mean(images, (-3, -2, -1), correction=0, keepdim=True)
    return (images - mean) / deviation.clamp_min(1 / 28)


class Standardized(data.Dataset):
    def __init__(self, x: torch.Tensor, y: torch.Tensor):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return standardized(self.x[i]), self.y[i]


def input_pipeline(model: str, loader: str, batch: int, seconds: float) -> float:
    """Samples per second of shuffled bytes as floats, in [0, 1] or standardized: by DataLoader as in the tutorials, with one worker per
    thread; by a DataLoader that fetches whole batches; or by indexing tensors."""
    x, y = torch.randint(0, 256, (EPOCH, 1, 28, 28), dtype=torch.uint8), torch.ones(EPOCH, dtype=torch.long)
    scale = standardized if model == "standardized_28x28" else lambda images: images.float().mul_(1 / 255)
    dataset, in_batches = data.TensorDataset(x, y), scale
    if model == "standardized_28x28" and loader == "DataLoader":
        dataset, in_batches = Standardized(x, y), lambda images: images
    workers = torch.get_num_threads() if torch.get_num_threads() > 1 else 0
    loaders = {
        "DataLoader": lambda: data.DataLoader(dataset, batch, shuffle=True, drop_last=True, num_workers=workers,
                                              persistent_workers=workers > 0),
        "DataLoader of batches": lambda: data.DataLoader(
            dataset, batch_size=None, sampler=data.BatchSampler(data.RandomSampler(dataset), batch, drop_last=True)),
    }
    if loader in loaders:
        epochs = itertools.repeat(loaders[loader]())
    else:
        epochs = (((x[k], y[k]) for k in torch.randperm(EPOCH)[: EPOCH // batch * batch].split(batch)) for _ in itertools.count())
    batches = (b for epoch in epochs for b in epoch)

    def step():
        images, _ = next(batches)
        return in_batches(images)

    return fastest(step, batch, seconds)


def answer(request: dict) -> dict:
    name, batch, seconds = request["model"], request["batch"], request["seconds"]
    match request["what"]:
        case "input":
            return {"samples_per_second": input_pipeline(name, request["loader"], batch, seconds)}
        case "fit":
            model = model_for_epochs(name, batch)
            model.module.train()
            speed = samples_per_second(lambda: model.epoch(batch), EPOCH)
        case "workers" | "workers_tcp":
            model, workers = model_of_worker(name, batch), distributed.get_world_size()
            speed = samples_per_second(lambda: model.epoch(batch // workers, WORKERS_EPOCH // workers), WORKERS_EPOCH)
        case "train":
            model = Model(name, BATCHES * batch)
            speed = model.train(batch, seconds)
        case "predict":
            model = Model(name, BATCHES * batch)
            speed = model.predict(batch, seconds)
    return {"samples_per_second": speed, "parameters": model.parameters}


serve({"torch": torch.__version__}, answer)
