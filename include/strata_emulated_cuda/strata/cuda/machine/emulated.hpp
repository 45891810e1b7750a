// CUDA devices without CUDA, for tests. Each thread of a kernel is a function call or, where threads wait for each other, a
// fiber. Work on a queue is done when the host waits, in an order that a seed chooses: where a queue should wait for another
// one and does not, results are wrong with some seed. The host cannot read or write the memory of a device: code that does so
// crashes. hardware.cuh has the same names for nvcc.
#pragma once
#include <strata/cuda/machine/emulated/allocation.hpp>
#include <strata/cuda/machine/emulated/capture.hpp>
#include <strata/cuda/machine/emulated/copies.hpp>
#include <strata/cuda/machine/emulated/device_count.hpp>
#include <strata/cuda/machine/emulated/event.hpp>
#include <strata/cuda/machine/emulated/graph.hpp>
#include <strata/cuda/machine/emulated/lane.hpp>
#include <strata/cuda/machine/emulated/launch.hpp>
#include <strata/cuda/machine/emulated/pinned_memory.hpp>
#include <strata/cuda/machine/emulated/queue.hpp>
#include <strata/cuda/machine/emulated/test_controls.hpp>
#include <strata/cuda/machine/emulated/work_counts.hpp>
