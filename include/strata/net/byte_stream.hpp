// byte_stream: what reads and writes a connection without waiting, plain or encrypted.
#pragma once
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <strata/io/file_descriptor.hpp>
#include <string>
#include <system_error>
#include <utility>

namespace strata::detail {

/// The result of an attempt on a non-blocking socket.
struct stream_progress {
  std::size_t bytes = 0;   // that were moved
  short waits_for = 0;     // with no bytes: POLLIN or POLLOUT; 0: it is done, closed or broken
  bool is_closed = false;  // by the other side, in good order
  bool is_broken = false;  // why_broken() has the reason
};

/// Has one owner, in one thread at a time. After `waits_for`, a write must be repeated with the same bytes.
class byte_stream {
 public:
  virtual ~byte_stream() = default;
  /// Must be called until nothing is waited for. Then the other side has proved that it belongs to the training, if the stream
  /// asks for a proof.
  virtual stream_progress greet() = 0;
  virtual stream_progress read(std::byte* to, std::size_t most) = 0;
  virtual stream_progress write(const std::byte* from, std::size_t bytes) = 0;
  virtual const std::string& why_broken() const = 0;
  virtual int socket() const = 0;
};

/// A socket without encryption. Others on the network can read and change its bytes.
class plain_stream final : public byte_stream {
  io::file_descriptor socket_;
  std::string why_;

 public:
  explicit plain_stream(io::file_descriptor socket) : socket_(std::move(socket)) {}

  stream_progress greet() override { return {}; }
  stream_progress read(std::byte* to, std::size_t most) override {
    const ::ssize_t bytes = ::recv(socket_.number(), to, most, MSG_DONTWAIT);
    if (bytes == 0) return {.is_closed = true};
    return moved(bytes, POLLIN);
  }
  stream_progress write(const std::byte* from, std::size_t bytes) override {
    return moved(::send(socket_.number(), from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT), POLLOUT);
  }
  const std::string& why_broken() const override { return why_; }
  int socket() const override { return socket_.number(); }

 private:
  stream_progress moved(::ssize_t bytes, short waits_for) {
    if (bytes >= 0) return {.bytes = std::size_t(bytes)};
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {.waits_for = waits_for};
    why_ = std::generic_category().message(errno);
    return {.is_broken = true};
  }
};

/// Makes the streams of a process, each between two given ranks. `accepts`: true if the other side has opened the connection.
class socket_protection {
 public:
  virtual ~socket_protection() = default;
  virtual std::unique_ptr<byte_stream> protect(io::file_descriptor socket, bool accepts, int lower_rank,
                                               int higher_rank) const = 0;
};

}  // namespace strata::detail
