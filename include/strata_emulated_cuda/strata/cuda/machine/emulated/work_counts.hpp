// Counts of what a device was asked to do.
#pragma once
#include <algorithm>

namespace strata::machine {

/// Counts of the work of one device since the last call of take_counts. Work is counted when it is enqueued, except for
/// bytes_read, bytes_written and most_bytes_of_thread. Work of a graph is counted at each launch of the graph.
struct work_counts {
  long kernels = 0, copies_to_device = 0, copies_to_host = 0, copies_between = 0;
  long sums = 0;                           // sums of NCCL
  long bytes_to_device = 0;                // the bytes that copies_to_device copied
  long library_calls = 0;                  // how many of the kernels are calls of cuBLASLt or cuDNN
  long graphs = 0, captures = 0;           // graphs that were launched, captures that were begun
  long waits = 0, event_waits = 0;         // how often the host waited for a queue, for an event
  long bytes_read = 0, bytes_written = 0;  // the bytes of pages that kernels and copies touched: see count_bytes
  /// The most bytes, read and written, for each thread of a kernel. Where they are many, few threads do what many could do.
  long most_bytes_of_thread = 0;

  /// Adds each count of `more` to the same count of this one.
  constexpr work_counts& operator+=(const work_counts& more) {
    kernels += more.kernels, library_calls += more.library_calls, graphs += more.graphs, captures += more.captures;
    copies_to_device += more.copies_to_device, copies_to_host += more.copies_to_host, copies_between += more.copies_between,
        sums += more.sums, bytes_to_device += more.bytes_to_device;
    waits += more.waits, event_waits += more.event_waits;
    bytes_read += more.bytes_read, bytes_written += more.bytes_written;
    most_bytes_of_thread = std::max(most_bytes_of_thread, more.most_bytes_of_thread);
    return *this;
  }
};

}  // namespace strata::machine
