"""Microseconds per training step of PyTorch on a GPU, a line "network batch mode microseconds" each: with a CUDA graph, eager, and
by torch.compile, which takes longest to start; "bf16" in a name means autocast to bfloat16. steps.cu has the same networks."""
import time

import torch
from torch import nn
from torch.nn import functional

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
torch.backends.cudnn.benchmark = True


def cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(1600, 64), nn.ReLU(), nn.Linear(64, 10))


def mlp(*sizes):
    layers = [each for i, o in zip(sizes, sizes[1:]) for each in (nn.Linear(i, o), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


def microseconds(model, shape, batch, mode, halves):
    model = model.cuda()
    x = torch.rand(batch, *shape, device="cuda")
    y = torch.ones(batch, dtype=torch.long, device="cuda")
    if len(shape) == 3:
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), fused=True, capturable=mode == "graph")

    def loss_of(x, y):
        with torch.autocast("cuda", torch.bfloat16, enabled=halves):
            return functional.cross_entropy(model(x), y)

    loss = torch.compile(loss_of) if mode == "compile" else loss_of

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(x, y).backward()
        optimizer.step()

    run = step
    if mode == "graph":
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(5):
                step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            step()
        run = graph.replay
    for _ in range(10):
        run()
    torch.cuda.synchronize()
    steps, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < 2:
        for _ in range(20):
            run()
        torch.cuda.synchronize()
        steps += 20
    return (time.perf_counter() - begin) / steps * 1e6


for mode in ("graph", "eager", "compile"):
    for name, make, shape, batch in (("reference CNN", cnn, (1, 28, 28), 64), ("reference CNN", cnn, (1, 28, 28), 4096),
                                     ("reference CNN bf16", cnn, (1, 28, 28), 64),
                                     ("reference CNN bf16", cnn, (1, 28, 28), 4096),
                                     ("mlp 784-128-10", lambda: mlp(784, 128, 10), (784,), 64),
                                     ("mlp 4096 x 4", lambda: mlp(4096, 4096, 4096, 4096, 4096), (4096,), 8192),
                                     ("mlp 4096 x 4 bf16", lambda: mlp(4096, 4096, 4096, 4096, 4096), (4096,), 8192)):
        try:
            print(f"{name} b={batch} {mode} {microseconds(make(), shape, batch, mode, 'bf16' in name):.1f}", flush=True)
        except Exception as e:  # one network that does not fit must not end the others
            print(f"{name} b={batch} {mode}: {type(e).__name__}: {str(e)[:150]}", flush=True)
