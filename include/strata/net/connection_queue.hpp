// Connections that wait for something, the oldest first. When there are too many of them, older ones make room.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <list>
#include <string>
#include <utility>

namespace strata::detail {

/// Limits: 512, and 64 per address. Beyond, the oldest one is closed, of all or of that address, but not in its first 250 ms.
template <class Connection>
class connection_queue {
  using time = std::chrono::steady_clock::time_point;

 public:
  static constexpr std::size_t most = 512, most_of_one_address = 64;
  static constexpr std::chrono::milliseconds undisturbed{250};

  struct entry {
    Connection connection;
    std::string address;
    time since;
  };
  using iterator = typename std::list<entry>::iterator;

  /// True if another connection cannot be added yet.
  bool is_full(time now) const { return all_.size() >= most && now - all_.front().since < undisturbed; }
  /// Adds a connection. Must not be called while is_full().
  void add(Connection connection, const std::string& address, time now) {
    const auto is_from_there = [&](const entry& e) { return e.address == address; };
    if (all_.size() >= most) {
      all_.pop_front();
    } else if (std::size_t(std::ranges::count_if(all_, is_from_there)) >= most_of_one_address) {
      const auto oldest = std::ranges::find_if(all_, is_from_there);
      if (now - oldest->since >= undisturbed) all_.erase(oldest);
    }
    all_.push_back({std::move(connection), address, now});
  }
  void close_older_than(std::chrono::milliseconds age, time now) {
    while (!all_.empty() && now - all_.front().since >= age) all_.pop_front();
  }
  /// Closes the oldest connection. Returns false if there is none.
  bool close_oldest() {
    if (all_.empty()) return false;
    all_.pop_front();
    return true;
  }
  /// Removes the oldest connection of the address for which count(address) is smallest. There must be one.
  template <class Count>
  entry take_of_fewest(Count&& count) {
    auto next = all_.begin();
    std::size_t fewest = count(next->address);
    for (auto e = std::next(next); e != all_.end() && fewest > 0; ++e) {
      if (e->address == next->address) continue;
      if (const std::size_t these = count(e->address); these < fewest) next = e, fewest = these;
    }
    entry taken = std::move(*next);
    all_.erase(next);
    return taken;
  }

  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }
  iterator begin() { return all_.begin(); }
  iterator end() { return all_.end(); }
  iterator erase(iterator e) { return all_.erase(e); }

 private:
  std::list<entry> all_;
};

}  // namespace strata::detail
