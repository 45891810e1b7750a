// needs: protozero
// Frames, as a server or a caller reads them from a connection, in pieces of any size.
#include <strata/net/message_link.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "fuzz.hpp"
using namespace strata;

namespace {
/// A connection over which `in` comes, in pieces of at most `piece` bytes.
struct stream_in_memory final : detail::byte_stream {
  std::string_view in;
  std::size_t piece;
  std::string& out;
  std::string why{};

  stream_in_memory(std::string_view bytes, std::size_t most, std::string& written) : in(bytes), piece(most), out(written) {}
  detail::stream_progress greet() override { return {}; }
  detail::stream_progress read(std::byte* to, std::size_t most) override {
    if (in.empty()) return {.is_closed = true};
    const std::size_t some = std::min({most, piece, in.size()});
    std::memcpy(to, in.data(), some);
    in.remove_prefix(some);
    return {.bytes = some};
  }
  detail::stream_progress write(const std::byte* from, std::size_t bytes) override {
    const std::size_t some = std::min(bytes, piece);
    out.append(reinterpret_cast<const char*>(from), some);
    return {.bytes = some};
  }
  const std::string& why_broken() const override { return why; }
  int socket() const override { return -1; }
};

constexpr std::size_t largest = 1 << 15;

std::vector<detail::received_frame> frames_in(std::string_view bytes, bool serves, std::size_t piece, std::string& ends) {
  std::string written;
  detail::message_link link(std::make_unique<stream_in_memory>(bytes, piece, written), serves, largest);
  std::vector<detail::received_frame> all;
  while (std::optional<detail::received_frame> f = link.receive()) all.push_back(std::move(*f));
  fuzz::check(link.has_ended());
  ends = link.why();
  return all;
}
/// The bytes with which a link sends frames like these.
std::string bytes_of_frames(const std::vector<detail::received_frame>& all, std::size_t piece) {
  std::string written;
  detail::message_link link(std::make_unique<stream_in_memory>("", piece, written), true, largest);
  for (const detail::received_frame& f : all) link.send(f.head, f.method(), {std::string(f.content()), {}});
  link.flush();
  return written;
}

std::vector<std::string> seeds() {
  std::string of_server, of_caller;
  detail::message_link server(std::make_unique<stream_in_memory>("", 1 << 20, of_server), true, largest);
  detail::message_link caller(std::make_unique<stream_in_memory>("", 1 << 20, of_caller), false, largest);
  caller.send({.call = 1, .kind = detail::frame_kind::request}, "/strata.Coordinator/Get", {"\x12\3\x0a\1k", {}});
  caller.send(detail::frame_kind::ping);
  caller.send(detail::frame_kind::cancel, 1);
  server.send({.call = 1, .kind = detail::frame_kind::answer}, {}, {"\x12\3\x0a\1v", {}});
  server.send({.call = 2, .kind = detail::frame_kind::answer, .code = detail::status_code::aborted}, {}, {"why", {}});
  server.send(detail::frame_kind::pong);
  return {fuzz::with_choice(1, of_caller), fuzz::with_choice(0, of_server), fuzz::with_choice(7, of_caller),
          fuzz::with_choice(254, of_server)};
}

std::vector<std::string> larger(int count) {
  std::string of_caller;
  detail::message_link caller(std::make_unique<stream_in_memory>("", 1 << 20, of_caller), false, largest);
  for (int i = 0; i < count; ++i) caller.send(detail::frame_kind::ping);
  std::string pings = std::exchange(of_caller, {});
  for (int i = 0; i < count; ++i) caller.send({.call = 1, .kind = detail::frame_kind::request}, "/m", {"\x12\0", {}});
  return {fuzz::with_choice(1, pings), fuzz::with_choice(1, std::string(detail::greeting) + of_caller)};
}

void read(std::string_view input) {
  const fuzz::choice chosen(input);
  const bool serves = chosen.number & 1;
  const std::size_t piece = chosen.number >> 1 == 0 ? 1 << 16 : chosen.number >> 1;
  std::string ends, ends_again;
  std::vector<detail::received_frame> all = frames_in(chosen.rest, serves, piece, ends);
  fuzz::check(!ends.empty());
  for (const detail::received_frame& f : all) {
    fuzz::check(f.head.bytes <= largest ? f.is_whole() : f.bytes.size() == 0);
    fuzz::look_at(f.bytes.text());
  }
  std::erase_if(all, [](const detail::received_frame& f) { return !f.is_whole(); });
  const std::vector<detail::received_frame> again = frames_in(bytes_of_frames(all, piece), serves, 1 << 16, ends_again);
  fuzz::check(again.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    fuzz::check(again[i].head.call == all[i].head.call && again[i].bytes.text() == all[i].bytes.text() &&
                again[i].method() == all[i].method());
}

const fuzz::target frames{"frames", seeds, read, larger};
}  // namespace
