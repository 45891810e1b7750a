// The content of a parameter server's snapshot: weights, the optimizer's state, and which pushes they contain. Needs protozero.
// needs: protozero
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <span>
#include <strata/base/arithmetic.hpp>
#include <strata/net/message.hpp>
#include <strata/parameter_server/waiting.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace strata::detail {

struct server_snapshot {
  std::uint64_t run = 0;
  bool chief_has_left = false;
  std::string arithmetic{};
  static constexpr auto message_name = "snapshot of a server";
  using fields = wire::fields<wire::field<1, &server_snapshot::run>, wire::field<2, &server_snapshot::chief_has_left>,
                              wire::field<3, &server_snapshot::arithmetic>>;
};
struct clock_snapshot {
  std::uint64_t incarnation = 0;
  std::int64_t last_step = -1, progress = 0;
  static constexpr auto message_name = "snapshot of a worker's clock";
  using fields = wire::fields<wire::field<1, &clock_snapshot::incarnation>, wire::field<2, &clock_snapshot::last_step>,
                              wire::field<3, &clock_snapshot::progress>>;
};
/// Weights and the optimizer's state follow as they are in memory, because they may be larger than a message.
struct shard_snapshot {
  std::int64_t number = -1, begin = 0, end = 0, version = -1;
  std::vector<clock_snapshot> clocks{};
  std::vector<double> metric_sums{};  // for a push that is repeated
  static constexpr auto message_name = "snapshot of a shard";
  using fields =
      wire::fields<wire::field<1, &shard_snapshot::number>, wire::field<2, &shard_snapshot::begin>,
                   wire::field<3, &shard_snapshot::end>, wire::field<4, &shard_snapshot::version>,
                   wire::field<5, &shard_snapshot::clocks>, wire::field<6, &shard_snapshot::metric_sums, std::size_t(1) << 30>>;
};

template <class T>
std::string_view bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}
/// Returns false if the sizes differ.
template <class T>
bool copy_bytes(std::string_view bytes, std::span<T> to) {
  if (bytes.size() != to.size_bytes()) return false;
  if (!to.empty()) std::memcpy(to.data(), bytes.data(), bytes.size());
  return true;
}

/// Calls section(std::string_view) once for the server, then three times for each of its shards. A shard is copied, so that no
/// worker waits for it as long as writing takes.
template <class Store, class Section>
void save_snapshot(const Store& store, Section&& section) {
  section(std::string_view(wire::encode(server_snapshot{store.run(), store.chief_has_left(), text_of_arithmetic()})));
  std::string head, weights, slots;
  store.for_each_shard(
      [&](std::size_t number, const auto& shard, const std::vector<worker_clock>& clocks,
          const std::vector<double>& metric_sums) {
        shard_snapshot s{.number = std::int64_t(number),
                         .begin = shard.place().begin,
                         .end = shard.place().end,
                         .version = shard.version(),
                         .metric_sums = metric_sums};
        for (const worker_clock& c : clocks) s.clocks.push_back({c.incarnation, c.last_step, c.progress});
        head.clear();
        wire::encode(s, head);
        weights = bytes_of(shard.weights());
        slots = bytes_of(shard.slots());
      },
      [&] {
        for (const std::string* each : {&head, &weights, &slots}) section(std::string_view(*each));
      });
}

/// True if the values could have been counted by a server, with room to continue.
inline bool is_plausible(const shard_snapshot& s) {
  constexpr std::int64_t most = std::int64_t(1) << 62;
  return s.version >= -1 && s.version < most &&
         std::ranges::all_of(
             s.clocks, [](const clock_snapshot& c) { return c.last_step >= -1 && c.progress >= 0 && c.progress < most; });
}

/// Restores what save_snapshot has saved, from section(), before a worker joins. Returns false if it is of other shards or
/// workers; the store is then as good as new. Writes a line to std::clog if the build that saved it had other arithmetic. Throws
/// wire::malformed_message.
template <class Store, class Section>
bool restore_snapshot(Store& store, Section&& section) {
  const auto server = wire::decode<server_snapshot>(section());
  bool fits = true;
  store.for_each_shard([&](std::size_t number, auto& shard, std::vector<worker_clock>& clocks, std::vector<double>& metric_sums) {
    if (!fits) return;
    const auto s = wire::decode<shard_snapshot>(section());
    fits = is_plausible(s) && s.number == std::int64_t(number) && s.begin == shard.place().begin && s.end == shard.place().end &&
           s.clocks.size() == clocks.size() && copy_bytes(section(), shard.overwrite()) && copy_bytes(section(), shard.slots());
    if (!fits) return;
    shard.set_version(s.version);
    for (std::size_t w = 0; w < clocks.size(); ++w)
      clocks[w] = {s.clocks[w].incarnation, s.clocks[w].last_step, s.clocks[w].progress};
    metric_sums = s.metric_sums;
  });
  if (fits) std::clog << notice_of_arithmetic("the snapshot of the parameters", server.arithmetic);
  if (fits && server.chief_has_left && server.run == store.run()) store.restore_as_over();
  if (!fits)
    store.for_each_shard([](std::size_t, auto& shard, std::vector<worker_clock>& clocks, std::vector<double>& metric_sums) {
      shard.set_version(-1);
      std::ranges::fill(clocks, worker_clock{});
      metric_sums.clear();
    });
  return fits;
}

}  // namespace strata::detail
