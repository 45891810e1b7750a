// The engine that computes a program on a backend; and the arithmetic that a backend does on the host without an engine.
#pragma once
#include <strata/concepts/device.hpp>
#include <strata/program/compute_options.hpp>

namespace strata {

namespace core {
struct cpu;

/// The backend of a strategy that names none.
using default_backend = cpu;
}  // namespace core

template <class Backend>
struct on_backend;
namespace core {
// The parts of the diagnostic about a backend whose header is not included. Never defined.
template <class Backend>
struct include_the_header_that_defines_the_engine_of;

/// `type` is the engine (concepts/engine.hpp) that computes Program on Backend. Each backend specialises it; the CPU in
/// cpu/engine/engine.hpp.
template <class Program, class Backend>
struct engine_for {
  static_assert(sizeof(include_the_header_that_defines_the_engine_of<Backend>) > 0,
                "no header that defines the engine of this backend is included; that of the CPU is <strata/cpu/cpu.hpp>");
};

/// Arithmetic of a process on arrays in its own memory, without an engine: a parameter server updates parameters, processes add
/// up gradients. Specialised by backends that run on the host:
///   `team(threads)`              has `size()` and `for_tasks(count, f)`, which calls f(task, thread) for each task
///   `scope`                      lives while arithmetic is done, so that denormals are flushed as in a step
///   `sum_leaves(to, arrays, count, begin, end)`  elements [begin, end) of the sum in the tree over arrays
///   `update<T, Optimizer>`       the weight_update of cpu/engine/weight_update.hpp, or one with its interface
template <class Backend>
struct host_arithmetic;

/// The host backend that stands beside a backend: `Backend::host`, or the CPU.
template <class Backend>
struct host_backend_of {
  using type = default_backend;
};
template <class Backend>
  requires requires { typename Backend::host; }
struct host_backend_of<Backend> {
  using type = typename Backend::host;
};

/// The settings of a backend's engine, which strategies pass on. A backend with settings of its own specialises it.
template <class Backend>
struct engine_options {
  using type = compute_options;
};
/// A backend that computes as another one does, such as fits_in<8_MiB>, has the settings of that one.
template <class Backend>
  requires requires { typename Backend::whole; }
struct engine_options<Backend> : engine_options<typename Backend::whole> {};
}  // namespace core

}  // namespace strata
