// Counts of what a device was asked to do.
#pragma once

namespace strata::machine {

/// What one device has done since it was asked last.
struct work_counts {
  long kernels = 0, copies_to_device = 0, copies_to_host = 0, copies_between = 0, sums = 0;  // also those of graphs
  long bytes_to_device = 0;                                                                  // of copies_to_device
  long library_calls = 0;                  // of the kernels, those of cuBLASLt and cuDNN
  long graphs = 0, captures = 0;           // launched, recorded
  long waits = 0, event_waits = 0;         // of the host: for a queue, for an event
  long bytes_read = 0, bytes_written = 0;  // by kernels and copies: see count_bytes
  constexpr work_counts& operator+=(const work_counts& more) {
    kernels += more.kernels, library_calls += more.library_calls, graphs += more.graphs, captures += more.captures;
    copies_to_device += more.copies_to_device, copies_to_host += more.copies_to_host, copies_between += more.copies_between,
        sums += more.sums, bytes_to_device += more.bytes_to_device;
    waits += more.waits, event_waits += more.event_waits;
    bytes_read += more.bytes_read, bytes_written += more.bytes_written;
    return *this;
  }
};

}  // namespace strata::machine
