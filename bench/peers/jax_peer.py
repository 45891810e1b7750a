"""JAX on the CPU: one jitted step per batch, parameters and optimizer state donated.   Threads: one per core of the affinity."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

from networks import NETWORKS, Conv, Dense, MaxPool
from serve import EPOCH, WARM_UP, samples_of, samples_per_second, serve


def glorot(key, *extents):
    fans = np.prod(extents[:-2]) * (extents[-2] + extents[-1])
    return jax.random.uniform(key, extents, minval=-1, maxval=1) * (6 / fans) ** 0.5


def initial(network) -> list:
    key, shape, parameters = jax.random.PRNGKey(1), network.input, []
    for layer in network.layers:
        key, own = jax.random.split(key)
        match layer:
            case Conv():
                parameters.append((glorot(own, layer.kernel, layer.kernel, shape[2], layer.filters), jnp.zeros(layer.filters)))
                shape = (*[n - layer.kernel + 1 for n in shape[:2]], layer.filters)
            case MaxPool():
                shape = (shape[0] // layer.window, shape[1] // layer.window, shape[2])
            case "flatten":
                shape = (int(np.prod(shape)),)
            case Dense():
                parameters.append((glorot(own, shape[0], layer.units), jnp.zeros(layer.units)))
                shape = (layer.units,)
    return parameters


def max_pool(x, window):
    """Max pooling by reshape and max: three times as fast here as reduce_window, whose gradient is a select_and_scatter."""
    n, h, w, c = x.shape
    x = x[:, : h // window * window, : w // window * window]
    return x.reshape(n, h // window, window, w // window, window, c).max((2, 4))


def logits(network, parameters, x):
    parameters = iter(parameters)
    for layer in network.layers[:-1]:
        match layer:
            case Conv():
                kernel, bias = next(parameters)
                x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")) + bias
            case MaxPool():
                x = max_pool(x, layer.window)
            case "flatten":
                x = x.reshape(x.shape[0], -1)
            case Dense():
                kernel, bias = next(parameters)
                x = x @ kernel + bias
            case "relu":
                x = jax.nn.relu(x)
    return x


class Model:
    def __init__(self, name: str, batch: int):
        network = NETWORKS[name]
        optimizer = optax.adam(1e-3)
        parameters = initial(network)
        self.parameters = sum(p.size for p in jax.tree.leaves(parameters))
        self.state = (parameters, optimizer.init(parameters))
        self.random = np.random.default_rng(1)
        self.x = jnp.asarray(samples_of(network.input, EPOCH))
        self.y = jnp.asarray(self.random.integers(0, 10, EPOCH, np.int32))

        def loss(parameters, x, y):
            return optax.softmax_cross_entropy_with_integer_labels(logits(network, parameters, x), y).mean()

        @functools.partial(jax.jit, donate_argnums=0)
        def step(state, x, y, indices):
            parameters, slots = state
            gradient = jax.grad(loss)(parameters, x[indices], y[indices])
            change, slots = optimizer.update(gradient, slots)
            return optax.apply_updates(parameters, change), slots

        self.step = step
        self.epoch(batch, WARM_UP)

    def epoch(self, batch: int, steps: int) -> None:
        for indices in self.random.permutation(EPOCH)[: steps * batch].astype(np.int32).reshape(steps, batch):
            self.state = self.step(self.state, self.x, self.y, indices)
        jax.block_until_ready(self.state)


model_of = functools.cache(Model)


def answer(request: dict) -> dict:
    batch = request["batch"]
    model, steps = model_of(request["model"], batch), EPOCH // batch
    speed = samples_per_second(lambda: model.epoch(batch, steps), steps * batch)
    return {"samples_per_second": speed, "parameters": model.parameters}


if __name__ == "__main__":
    serve({"jax": jax.__version__}, answer)
