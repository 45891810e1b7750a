"""The models of bench/train.cpp in PyTorch on the CPU, in its best case: the data in memory as tensors, shuffled by a permutation,
no DataLoader, channels last, fused Adam.   torch_train.py MODEL BATCH THREADS EPOCHS; prints one JSON object."""
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional

model_name, batch, threads, epochs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(threads)
torch.manual_seed(1)


def dense(*sizes):
    layers = [nn.Flatten()]
    for k, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers += [nn.Linear(a, b)] + ([nn.ReLU()] if k + 2 < len(sizes) else [])
    return nn.Sequential(*layers)


MODELS = {
    "cnn": lambda: nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(1600, 64), nn.ReLU(), nn.Linear(64, 10)).to(memory_format=torch.channels_last),
    "mlp_128": lambda: dense(784, 128, 10),
    "mlp_64_64": lambda: dense(784, 64, 64, 10),
    "mlp_512_512": lambda: dense(784, 512, 512, 10),
}
model = MODELS[model_name]()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

# Speed does not depend on what the images show.
count = 60_000
x, y = torch.rand(count, 1, 28, 28), torch.randint(0, 10, (count,))


def step(indices):
    optimizer.zero_grad(set_to_none=True)
    functional.cross_entropy(model(x[indices]), y[indices]).backward()
    optimizer.step()


for indices in torch.randperm(count)[: batch * 20].split(batch):
    step(indices)
best = 0
for _ in range(epochs):
    order, start = torch.randperm(count), time.perf_counter()
    for k in range(0, count - batch + 1, batch):
        step(order[k : k + batch])
    best = max(best, count // batch * batch / (time.perf_counter() - start))
print(json.dumps({"model": model_name, "batch": batch, "threads": threads, "samples_per_second": round(best), "torch": torch.__version__}))
