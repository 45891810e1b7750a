// Processes of an elastic training that are threads, and die at any of their messages.
#pragma once
#include "some_member.hpp"
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <strata/communicators/elastic.hpp>
#include <strata/communicators/in_process.hpp>
#include <strata/control/generations.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::test {
using namespace core;

/// Takes the place of the coordinator.
class registry {
 public:
  struct place {
    in_process end;
    control::formation all;
    int generation;
  };

  /// `places`: the number of places in a group of a mesh.
  explicit registry(int size, int places = 1) : size(size), generations_({}, 0, 1, std::chrono::hours(1), places) {
    for (int i = 0; i < size; ++i) generations_.now().join(worker(i, size), now);
    open();
  }
  const int size;

  std::optional<place> of(int self) {
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(self);
    return found == places_.end() ? std::nullopt : std::optional(found->second);
  }
  place next(int self, bool is_spare, const std::string& why) {
    std::unique_lock lock(mutex_);
    generations_.come(self, now, is_spare);
    failed_.store(generation_);
    return await(lock, self, why);
  }
  place enter(int self) {
    std::unique_lock lock(mutex_);
    waiting_.insert(self);
    return await(lock, self, "it is late");
  }
  void die(int self) {
    const std::lock_guard lock(mutex_);
    waiting_.erase(self), places_.erase(self);
    generations_.withdraw(self);
    failed_.store(generation_);
    if (generations_.now().contains(self)) generations_.now().leave(self, now);
    form_if_all_came();
  }
  /// Removes a process in good order that needs nothing from the others any more.
  void end(int self) {
    const std::lock_guard lock(mutex_);
    if (generations_.now().contains(self)) generations_.now().leave(self, now);
    form_if_all_came();
  }
  /// Whether, in this generation, a process has died or requested the next generation.
  bool has_failed(int generation) const { return failed_.load() >= generation; }
  bool one_waits() {
    const std::lock_guard lock(mutex_);
    return generations_.can_grow(late());
  }

 private:
  static constexpr control::generations::time now{std::chrono::seconds(1000)};

  place await(std::unique_lock<std::mutex>& lock, int self, const std::string& why) {
    const int before = generation_;
    form_if_all_came();
    const auto is_in = [&] { return generation_ > before && places_.contains(self); };
    if (!formed_.wait_for(lock, std::chrono::seconds(20), [&] { return is_in() || !generations_.end().empty(); }) || !is_in())
      throw communication_error(generations_.end().empty() ? "no other process comes: " + why : generations_.end());
    return places_.at(self);
  }
  std::vector<control::member> late() const {
    std::vector<control::member> all;
    for (const int self : waiting_)
      if (const control::member m = worker(self, size, 2000u + std::uint64_t(++incarnations_));
          generations_.has_place_for(m, now))
        all.push_back(m);
    return all;
  }
  void form_if_all_came() {
    if (generations_.form(late(), now)) open();
    if (!generations_.end().empty()) formed_.notify_all();
  }
  void open() {
    const control::formation all = generations_.current();
    const auto ends = in_process::group(int(all.ranks.size()), std::chrono::milliseconds(10));
    ++generation_;
    places_.clear();
    for (std::size_t k = 0; k < all.ranks.size(); ++k) {
      places_.emplace(all.ranks[k], place{ends[k], all, generation_});
      waiting_.erase(all.ranks[k]);
    }
    formed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable formed_;
  control::generations generations_;
  std::set<int> waiting_;
  std::map<int, place> places_;
  mutable int incarnations_ = 0;
  int generation_ = 0;
  std::atomic<int> failed_{0};  // the last generation that has failed
};

struct death {};

/// A communicator of a process that dies before or after its n-th wait.
class mortal {
 public:
  using memory = in_process::memory;
  mortal(std::shared_ptr<registry> all, int self, bool is_late, int lives = -1)
      : all_(std::move(all)), self_(self), lives_(std::make_shared<int>(lives)) {
    if (!is_late) here_ = all_->of(self);
  }
  /// A process whose first generation fails while it connects.
  static mortal starting_again(std::shared_ptr<registry> all, int self) {
    mortal process(std::move(all), self, false);
    process.form_again("the first generation has failed");
    process.starts_again_ = true;
    return process;
  }

  int rank() const { return here_ ? here_->end.rank() : self_; }
  int size() const { return here_ ? here_->end.size() : all_->size; }
  static memory allocate(std::size_t bytes) { return in_process::allocate(bytes); }
  void send(memory& from, std::size_t offset, std::size_t bytes, int to) {
    while_none_fails([&] { here_->end.send(from, offset, bytes, to); });
  }
  void receive(memory& to, std::size_t offset, std::size_t bytes, int from) { here_->end.receive(to, offset, bytes, from); }
  auto begun() const { return here_->end.begun(); }
  void wait_received(const char* what, std::uint64_t mark) {
    while_none_fails([&] { here_->end.wait_received(what, mark); });
  }
  void wait(const char* what) {
    if (*lives_ > 0 && --*lives_ == 0) die();
    while_none_fails([&] { here_->end.wait(what); });
    if (*lives_ > 0 && --*lives_ == 0) die();
  }

  bool is_elastic() const { return true; }
  int first_size() const { return all_->size; }
  void form_again(const std::string& why) { here_ = all_->next(self_, *is_spare_, why); }
  const std::vector<int>& newcomers() const { return here_->all.newcomers; }
  const std::vector<int>& lacking() const { return here_->all.lacking; }
  int computing() const { return here_->all.computing > 0 ? here_->all.computing : size(); }
  void set_spare(bool is_spare) { *is_spare_ = is_spare; }
  bool late_one_waits() const { return all_->one_waits(); }
  bool starts_again() const { return starts_again_; }
  bool is_late() const { return !here_; }
  void enter() {
    if (here_) all_->die(self_);
    here_ = all_->enter(self_);
  }

  void end() const { all_->end(self_); }

 private:
  /// Repeats a wait that only timed out: on a busy machine messages may be late.
  template <class Wait>
  void while_none_fails(Wait&& wait) {
    for (int attempt = 1;; ++attempt) {
      try {
        return wait();
      } catch (const communication_error&) {
        if (all_->has_failed(here_->generation) || attempt == 2000) throw;
      }
    }
  }
  void die() {
    all_->die(self_);
    throw death();
  }

  std::shared_ptr<registry> all_;
  int self_;
  std::shared_ptr<int> lives_;                                      // shared by all copies
  std::shared_ptr<bool> is_spare_ = std::make_shared<bool>(false);  // shared as well
  std::optional<registry::place> here_;
  bool starts_again_ = false;
};
static_assert(elastic_communicator<mortal>);

}  // namespace strata::test
