// pipeline: the layers of one network on several groups of threads, which compute different micro-batches at the same time.
#pragma once
#include <strata/cpu/engine/split_engine.hpp>
#include <strata/distribute/in_threads.hpp>
#include <strata/program/stages/pipelined.hpp>
#include <strata/synchronous/pipelines.hpp>

namespace strata {

/// `pipeline<balanced<4>, micro_batches<8>, one_forward_one_backward>{}`: the network is cut into four stages, a batch into eight
/// micro-batches, and each stage is computed by a thread of its own. Cut: balanced<N> or stages<counts of layers...>. Schedule:
/// gpipe, one_forward_one_backward or interleaved<V>. compute_options::threads is the number of threads of each place: as many
/// micro-batches are computed beside each other. The results are those of one_device with as many leaves, bit for bit. With S
/// places and M micro-batches a place is idle for (S - 1) / (M + S - 1) of the time, if stages take equally long. Throws
/// strata_error for a batch that micro-batches do not divide.
template <class Cut, class MicroBatches = micro_batches<8>, class Schedule = one_forward_one_backward,
          class Backend = core::default_backend>
using pipeline = core::in_threads<core::pipelines<1, core::pipelined<Cut, MicroBatches, Schedule>, Backend>>;

}  // namespace strata
