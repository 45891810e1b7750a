// secure_stream: what reads and writes a socket so that others on the network can neither read nor change it.
#pragma once
#include <poll.h>

#include <cstddef>
#include <memory>
#include <strata/io/file_descriptor.hpp>
#include <string>

namespace strata::detail {

/// The result of an attempt on a non-blocking socket.
struct stream_progress {
  std::size_t bytes = 0;   // that were moved
  short waits_for = 0;     // with no bytes: POLLIN or POLLOUT; 0: it is done, closed or broken
  bool is_closed = false;  // by the other side, in good order
  bool is_broken = false;  // why_broken() has the reason
};

/// Has one owner, in one thread at a time. After `waits_for`, a write must be repeated with the same bytes.
class secure_stream {
 public:
  virtual ~secure_stream() = default;
  /// Must be called until nothing is waited for. Then the other side has proved that it belongs to the training.
  virtual stream_progress greet() = 0;
  virtual stream_progress read(std::byte* to, std::size_t most) = 0;
  virtual stream_progress write(const std::byte* from, std::size_t bytes) = 0;
  virtual const std::string& why_broken() const = 0;
  virtual int socket() const = 0;
};

/// Makes the streams of a process, each between two given ranks. `accepts`: true if the other side has opened the connection.
class socket_protection {
 public:
  virtual ~socket_protection() = default;
  virtual std::unique_ptr<secure_stream> protect(io::file_descriptor socket, bool accepts, int lower_rank,
                                                 int higher_rank) const = 0;
};

}  // namespace strata::detail
