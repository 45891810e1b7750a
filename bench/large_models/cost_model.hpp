// A cost model of the training of large networks on many devices: the time of a step, memory and messages, from formulas.
//
// Sources: [M21] Narayanan et al., "Efficient large-scale language model training on GPU clusters" (2021),
// https://arxiv.org/abs/2104.04473. [K22] Korthikanti et al., "Reducing activation recomputation in large transformer models"
// (2022), https://arxiv.org/abs/2205.05198. [R20] Rajbhandari et al., "ZeRO" (2020), https://arxiv.org/abs/1910.02054.
// [T05] Thakur et al., "Optimization of collective communication operations in MPICH" (2005).
#pragma once
#include <algorithm>

namespace strata::bench {

struct link {
  double bandwidth;  // bytes per second in each direction, of one device, as its maker says
  double latency;    // seconds per message
};

/// Devices of one kind, several to a node.
struct machine {
  const char* name;
  double peak;              // FLOP/s of matrix products of 16-bit numbers
  double memory_bandwidth;  // bytes per second
  double memory;            // bytes of a device
  int devices_of_node;
  link inside, network;  // of a device
};

/// What a program reaches of what makers say. `products` and `hidden` are fitted to some of the published rows, the others are
/// assumptions that were not varied.
struct efficiency {
  double products = 0.78;  // of the peak, by a matrix product whose operands lie in fast memory
  double hidden = 0.55;    // with zero 3: of the shorter of computing and sending, the share that takes place during the other
  double memory = 0.85;    // of the memory bandwidth
  double links = 0.75;     // of the bandwidth of links
};

/// How a network is divided, and how a batch is.
struct mesh {
  int data = 1, pipeline = 1, tensor = 1;
  int zero = 0;             // stage, over the data dimension
  int stages_of_place = 1;  // of a pipeline: interleaved<V>
  int micro_batch = 1;      // samples
  enum { nothing, attention, all } computed_again = all;
  bool sequence_parallel = false;    // [K22], 4.2.2
  bool divides_checkpoints = false;  // tensor-parallel devices keep a part each of what is not computed again, [R20], 6.1

  constexpr int devices() const { return data * pipeline * tensor; }
};

/// Bytes that are kept for each parameter. Mixed precision with adam: 2 + 2 + 12, [R20], 3.1; strata in float: 4 + 4 + 8.
struct bytes_of_parameter {
  double value = 2, gradient = 2, slots = 12;
};

/// Bytes of parameters, gradients and slots on one device, [R20], section 5: stage 1 divides slots among `data` devices, 2
/// gradients, too, 3 parameters, too.
struct state_memory {
  double parameters, gradients, slots;
  constexpr double total() const { return parameters + gradients + slots; }
};
constexpr state_memory state_memory_of(double parameters, bytes_of_parameter each, int zero, int data) {
  const auto share = [&](int from) { return zero >= from ? parameters / data : parameters; };
  return {each.value * share(3), each.gradient * share(2), each.slots * share(1)};
}

/// The share of its time that a place of a pipeline waits, [M21], 2.2: of P places with V stages each, for M micro-batches.
constexpr double bubble(double places, double micro_batches, double stages_of_place = 1) {
  return (places - 1) / (stages_of_place * micro_batches + places - 1);
}

/// Seconds of a reduction of `bytes` to all of n devices in a ring, [T05]; a reduction to slices, or gathering slices, takes
/// half.
constexpr double ring(double n, double bytes, link l) {
  return n <= 1 ? 0 : 2 * (n - 1) * l.latency + 2 * (n - 1) / n * bytes / l.bandwidth;
}

/// Seconds of `count` products of an m x k by a k x n matrix of 16-bit numbers: those of the arithmetic, and those in which
/// operands and result pass the memory.
constexpr double product(double m, double n, double k, double count, const machine& on, const efficiency& e) {
  return count * (2 * m * n * k / (e.products * on.peak) + 2 * (m * k + k * n + m * n) / (e.memory * on.memory_bandwidth));
}

/// What a network costs on one device, of which `tensor` share each layer. Times are seconds, for one micro-batch.
struct cost_of_layers {
  double forward = 0, backward = 0, again = 0;  // seconds of all layers
  double head = 0;                              // seconds of what only the last place computes, forward and backward
  double parameters = 0;                        // of the whole network
  double boundary = 0;                          // bytes between two stages
  double kept = 0, largest = 0;                 // bytes of activations: of all layers for a micro-batch, and of one layer that is
                                                // computed again
};

/// A decoder as in [M21]: attention and two dense layers, four times as wide.
struct transformer {
  double layers, hidden, heads, sequence = 2048, vocabulary = 51200;
  double attention = hidden, keys = hidden;        // widths of all heads together; of keys, and of values
  double feed_forward = 4 * hidden, matrices = 2;  // matrices of the feed-forward part: 3 if it is gated
  double reductions = 2;                           // of a layer among tensor-parallel devices; 1 if its parts are parallel

  constexpr double matrices_of_layer() const { return hidden * (2 * attention + 2 * keys + matrices * feed_forward); }
  /// [M21], equation 2, with the terms of biases and norms.
  constexpr double parameters() const { return layers * (matrices_of_layer() + 13 * hidden) + hidden * (vocabulary + sequence); }
  /// Multiplications and additions of forward and backward: [M21], equation 3, without what is computed again.
  constexpr double operations(double samples) const {
    return 6 * samples * sequence * (layers * (matrices_of_layer() + 2 * sequence * attention) + hidden * vocabulary);
  }
  /// The same with all layers forward a second time, which is how [M21] counts.
  constexpr double operations_with_recomputation(double samples) const {
    return operations(samples) + 2 * samples * sequence * layers * (matrices_of_layer() + 2 * sequence * attention);
  }

  constexpr cost_of_layers cost(const mesh& by, const machine& on, const efficiency& e) const {
    const double t = by.tensor, samples = by.micro_batch, tokens = samples * sequence, s = sequence;
    const double passes = e.memory * on.memory_bandwidth;
    const auto of = [&](double n, double k) { return product(tokens, n, k, 1, on, e); };
    const double scores = product(s, s, attention / heads, samples * heads / t, on, e) +
                          product(s, attention / heads, s, samples * heads / t, on, e);
    const double products = of((attention + 2 * keys) / t, hidden) + of(hidden, attention / t) +
                            (matrices - 1) * of(feed_forward / t, hidden) + of(hidden, feed_forward / t) + scores;
    // [K22], equations 2 and 4: bytes of activations of a layer. What is not a product writes and reads each of them.
    const double whole = tokens * hidden * 10 / (by.sequence_parallel ? t : 1), divided = tokens * hidden * 24 / t,
                 of_scores = tokens * 5 * heads * s / t;
    const double elementwise = 2 * (whole + divided + of_scores) / passes;
    const link l{e.links * on.inside.bandwidth, on.inside.latency};
    const double messages = reductions * ring(t, 2 * tokens * hidden, l);

    cost_of_layers c;
    c.parameters = parameters();
    c.forward = layers * (products + elementwise + messages);
    c.backward = layers * (2 * (products + elementwise) + messages);
    if (by.computed_again == mesh::all) c.again = c.forward;
    if (by.computed_again == mesh::attention) c.again = layers * (scores + 2 * of_scores / passes);
    // The logits: a product, and float logits that are written and read about four times.
    c.head = 3 * of(vocabulary / t, hidden) + 16 * tokens * vocabulary / t / passes;
    c.boundary = 2 * tokens * hidden;
    c.largest = whole + divided + of_scores;
    c.kept = layers * (by.computed_again == mesh::all         ? 2 * tokens * hidden / (by.divides_checkpoints ? t : 1)
                       : by.computed_again == mesh::attention ? whole + divided
                                                              : c.largest);
    return c;
  }
};

/// `layers` dense layers of `units` units each, and as many inputs.
struct dense_network {
  double layers, units;

  constexpr double parameters() const { return layers * (units * units + units); }
  constexpr double operations(double samples) const { return 6 * samples * layers * units * units; }
  constexpr double operations_with_recomputation(double samples) const { return operations(samples) * 4 / 3; }

  /// Split by columns and by rows in turn, so that two layers need one reduction.
  constexpr cost_of_layers cost(const mesh& by, const machine& on, const efficiency& e) const {
    const double t = by.tensor, samples = by.micro_batch, activation = 2 * samples * units;
    const link l{e.links * on.inside.bandwidth, on.inside.latency};
    const double products = product(samples, units / t, units, 1, on, e) + 2 * activation / (e.memory * on.memory_bandwidth),
                 messages = 0.5 * ring(t, activation, l);
    cost_of_layers c;
    c.parameters = parameters();
    c.forward = layers * (products + messages);
    c.backward = layers * (2 * products + messages);
    if (by.computed_again == mesh::all) c.again = c.forward;
    c.boundary = activation;
    c.largest = activation;
    c.kept = layers * activation;
    return c;
  }
};

/// What a training takes.
struct prediction {
  double step = 0;                                               // seconds
  double computing = 0, waiting = 0, sending = 0, updating = 0;  // its parts: of a place that is never early
  double memory = 0, state = 0, activations = 0;                 // bytes of a device
  double network_bytes = 0;                                      // that a device sends to others in a step
  double achieved = 0;                                           // FLOP/s of a device, counted as [M21] does
  double utilisation = 0;                                        // of the peak, by the operations of the model: MFU
};

/// A step with `batch` samples. The batch is divided into micro-batches of `by.micro_batch` samples on each of `by.data`
/// replicas. Gradients and messages between stages are not sent while others are computed, as in [M21]. With zero 3 parameters
/// are fetched forward and backward and gradients sent for each micro-batch, partly meanwhile; a device does so through its own
/// connection.
template <class Network>
constexpr prediction predict(const Network& network, double batch, const mesh& by, const machine& on, const efficiency& e = {},
                             const bytes_of_parameter& each = {}) {
  const cost_of_layers c = network.cost(by, on, e);
  const double p = by.pipeline, v = by.stages_of_place, d = by.data, micro_batches = batch / d / by.micro_batch;
  const double own = c.parameters / p / by.tensor;
  // Replicas of one node share its connections to the network, so a ring through all of them uses those of each.
  const double neighbours = std::clamp(double(on.devices_of_node) / by.tensor, 1.0, d);
  const link inside{e.links * on.inside.bandwidth, on.inside.latency};
  const link between = neighbours >= d
                           ? inside
                           : link{std::min(e.links * on.network.bandwidth * neighbours, inside.bandwidth), on.network.latency};
  const link next = by.tensor * 2 > on.devices_of_node ? link{e.links * on.network.bandwidth, on.network.latency} : inside;

  prediction out;
  double turn = (c.forward + c.backward + c.again) / p + c.head;
  if (p > 1) {
    const double sent = 2 * v * c.boundary / by.tensor;  // the devices of a place send a part each
    turn += 2 * v * next.latency + sent / next.bandwidth;
    out.network_bytes += micro_batches * sent;
  }
  if (by.zero == 3) {
    const link alone{std::min(e.links * on.network.bandwidth, inside.bandwidth), on.network.latency};
    const double messages = 1.5 * ring(d, each.value * own, neighbours >= d ? inside : alone);
    turn = std::max(turn, messages) + (1 - e.hidden) * std::min(turn, messages);
    out.network_bytes += micro_batches * 3 * each.value * own * (d - 1) / d;
  } else if (d > 1) {
    out.sending = ring(d, each.gradient * own, between);
    out.network_bytes += 2 * each.gradient * own * (d - 1) / d;
  }
  out.computing = micro_batches * turn;
  out.waiting = (p - 1) / v * turn;
  // adam reads the gradient and the slots, and writes the slots and the value
  out.updating = (each.gradient + 2 * each.slots + each.value) * own / (by.zero >= 1 ? d : 1) / (e.memory * on.memory_bandwidth);
  out.step = out.computing + out.waiting + out.sending + out.updating;

  const double in_flight = p > 1 ? std::min(micro_batches / p, 1 + (p - 1) / (p * v)) : 1;  // [K22], 4.2.3
  out.state = state_memory_of(own, each, by.zero, by.data).total();
  out.activations = c.kept * in_flight + (by.computed_again == mesh::nothing ? 0 : c.largest);
  out.memory = out.state + out.activations;
  out.achieved = network.operations_with_recomputation(batch) / by.devices() / out.step;
  out.utilisation = network.operations(batch) / by.devices() / out.step / on.peak;
  return out;
}

}  // namespace strata::bench
