// An elastic training that loses a process at any of its messages, and takes it in again: the bits of one device. Processes are
// threads.
#include <doctest/doctest.h>

#include "repetitions.hpp"
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <strata/distribute/communicators/in_process.hpp>
#include <strata/distribute/synchronous/among_processes.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <strata/train/late_workers.hpp>
#include <string>
#include <thread>
#include <vector>
using namespace strata;
using strata::test::is_sanitized;
using strata::test::repetitions;
using namespace std::chrono_literals;

namespace {
using normalized =
    sequential<input<28, 28, 1>, flatten, dense<6>, batch_norm<>, activation<relu>, dropout<0.2_r>, dense<10, softmax>>;

/// Takes the place of the coordinator, and keeps the memory of the dead, which others may be reading.
class registry {
 public:
  struct place {
    in_process end;
    std::vector<int> newcomers;
  };

  explicit registry(int size) : size(size) {
    for (int i = 0; i < size; ++i) alive_.insert(i);
    form({});
  }
  const int size;

  std::optional<place> of(int self) {
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(self);
    return found == places_.end() ? std::nullopt : std::optional(found->second);
  }
  place next(int self) {
    std::unique_lock lock(mutex_);
    came_.insert(self);
    return await(lock, self);
  }
  place enter(int self) {
    std::unique_lock lock(mutex_);
    waiting_.insert(self);
    return await(lock, self);
  }
  void die(int self) {
    const std::lock_guard lock(mutex_);
    alive_.erase(self), came_.erase(self), waiting_.erase(self), places_.erase(self);
    failed_ = true;
    form_if_all_came();
  }
  bool one_waits() {
    const std::lock_guard lock(mutex_);
    return !waiting_.empty();
  }
  std::shared_ptr<message_memory> allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    return memories_.emplace_back(std::make_shared<message_memory>(bytes));
  }

 private:
  place await(std::unique_lock<std::mutex>& lock, int self) {
    const int before = generation_;
    form_if_all_came();
    if (!formed_.wait_for(lock, 20s, [&] { return generation_ > before && places_.contains(self); }))
      throw communication_error("no other process comes");
    return places_.at(self);
  }
  void form_if_all_came() {
    if (came_.empty() || !std::ranges::includes(came_, alive_)) return;
    std::set<int> late;
    if (!failed_) late.swap(waiting_);
    form(late);
  }
  void form(const std::set<int>& late) {
    alive_.insert(late.begin(), late.end());
    auto ends = in_process::group(int(alive_.size()), 150ms);
    std::vector<int> newcomers;
    for (int rank = 0; const int self : alive_) {
      if (late.contains(self)) newcomers.push_back(rank);
      ++rank;
    }
    places_.clear();
    for (std::size_t rank = 0; const int self : alive_) places_.emplace(self, place{ends[rank++], newcomers});
    came_.clear();
    failed_ = false;
    ++generation_;
    formed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable formed_;
  std::set<int> alive_, came_, waiting_;
  std::map<int, place> places_;
  std::vector<std::shared_ptr<message_memory>> memories_;
  bool failed_ = false;
  int generation_ = 0;
};

struct death {};

/// Ends at a certain wait, before or after it.
class mortal {
 public:
  struct memory {
    std::shared_ptr<message_memory> bytes;
    std::byte* data() { return bytes->data(); }
  };
  mortal(std::shared_ptr<registry> all, int self, bool is_late, int lives = -1)
      : all_(std::move(all)), self_(self), lives_(std::make_shared<int>(lives)) {
    if (!is_late) here_ = all_->of(self);
  }

  int rank() const { return here_ ? here_->end.rank() : self_; }
  int size() const { return here_ ? here_->end.size() : all_->size; }
  memory allocate(std::size_t bytes) { return {all_->allocate(bytes)}; }
  void send(memory& from, std::size_t offset, std::size_t bytes, int to) { here_->end.send(*from.bytes, offset, bytes, to); }
  void receive(memory& to, std::size_t offset, std::size_t bytes, int from) {
    here_->end.receive(*to.bytes, offset, bytes, from);
  }
  auto begun() const { return here_->end.begun(); }
  void wait_received(const char* what, std::uint64_t mark) { here_->end.wait_received(what, mark); }
  void wait(const char* what) {
    if (*lives_ > 0 && --*lives_ == 0) die();
    here_->end.wait(what);
    if (*lives_ > 0 && --*lives_ == 0) die();
  }

  bool is_elastic() const { return true; }
  int first_size() const { return all_->size; }
  void form_again(const std::string&) { here_ = all_->next(self_); }
  const std::vector<int>& newcomers() const { return here_->newcomers; }
  bool late_one_waits() const { return all_->one_waits(); }
  bool is_late() const { return !here_; }
  void enter() {
    if (here_) all_->die(self_);
    here_ = all_->enter(self_);
  }

  int lives() const { return *lives_; }

 private:
  void die() {
    all_->die(self_);
    throw death();
  }

  std::shared_ptr<registry> all_;
  int self_;
  std::shared_ptr<int> lives_;  // of all copies
  std::optional<registry::place> here_;
};
static_assert(elastic_communicator<mortal>);

struct elastic_among {
  static constexpr auto name = "elastic_among";
  mortal processes;
  using fit_callback = late_workers;

  template <class Program>
  using executor = synchronous_executor<Program, cpu, mortal>;
  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, {.threads = 1, .leaves = 8}, processes};
  }
};

struct outcome {
  std::vector<float> weights;
  double loss = 0, val_accuracy = 0;
  bool died = false;
  std::string problem;

  bool operator==(const outcome& o) const {
    return weights.size() == o.weights.size() &&
           std::memcmp(weights.data(), o.weights.data(), weights.size() * sizeof(float)) == 0 && loss == o.loss &&
           val_accuracy == o.val_accuracy;
  }
};

/// So that a late one need not hurry.
struct take_time {
  std::chrono::milliseconds pause;
  void on_batch_end(training_state&) { std::this_thread::sleep_for(pause); }
};

outcome trained(const auto& strategy, std::chrono::milliseconds pause = 0ms) {
  static const data::digits digits = data::synthetic_digits(150, 3);
  trainer model{normalized{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(7)};
  backup_and_restore backup("elastic-backup",
                            {.save_every_epochs = 0});  // writes nothing, but tells all whether it has found something
  const history past = model.fit(digits | data::shuffle(150) | data::batch<64>, epochs(2), validation(digits | data::batch<80>),
                                 take_time{pause}, backup, verbose::off);  // 150 = 2 x 64 + 22
  const auto w = model.executor().parameters();
  return {{w.begin(), w.end()}, past["loss"].back(), past["val_accuracy"].back(), false, ""};
}
outcome survived(const mortal& processes, std::chrono::milliseconds pause = 0ms) {
  outcome out;
  try {
    out = trained(elastic_among{processes}, pause);
  } catch (const death&) {
    out.died = true;
  } catch (const std::exception& e) {
    out.problem = e.what();
  }
  return out;
}

/// Of three processes the last one dies at a wait. Returns whether it did before the end.
bool dies_at(int lives, const outcome& expected) {
  CAPTURE(lives);
  const auto all = std::make_shared<registry>(3);
  std::vector<outcome> outcomes(3);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&, i] { outcomes[std::size_t(i)] = survived(mortal(all, i, false, i == 2 ? lives : -1)); });
  for (auto& t : threads) t.join();
  for (const outcome& o : outcomes) {
    CHECK(o.problem == "");
    if (!o.died) CHECK(o == expected);
  }
  return outcomes[2].died;
}
}  // namespace

TEST_CASE("a process that dies at any of its messages: the others have the bits of one device") {
  const outcome expected = trained(one_device{{.threads = 1, .leaves = 8}});
  int lives = 1;
  while (dies_at(lives, expected)) lives += is_sanitized ? 3 : 1;
  CHECK(lives >
        40);  // 6 steps of batch_norm, 4 batches to evaluate, what there is to restore, whether to stop, the final barrier
}

TEST_CASE("it comes back, and may die again at any message from then on") {
  const outcome expected = trained(one_device{{.threads = 1, .leaves = 8}});
  int came_back = 0, died_twice = 0;
  const int rounds = repetitions(16, 6);
  for (int again = 0; again < rounds; ++again) {
    CAPTURE(again);
    const auto all = std::make_shared<registry>(3);
    std::vector<outcome> outcomes(4);
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i)
      threads.emplace_back([&, i] { outcomes[std::size_t(i)] = survived(mortal(all, i, false), 20ms); });
    threads.emplace_back([&] {
      outcomes[2] = survived(mortal(all, 2, false, 3 + again % 5));
      outcomes[3] = survived(mortal(all, 2, true, again == 0 ? -1 : again));
    });
    for (auto& t : threads) t.join();
    CHECK(outcomes[2].died);
    for (const std::size_t i : {0u, 1u, 3u}) {
      CHECK(outcomes[i].problem == "");
      if (!outcomes[i].died) CHECK(outcomes[i] == expected);
    }
    (outcomes[3].died ? died_twice : came_back) += 1;
  }
  CHECK(came_back > 0);
  CHECK(died_twice > rounds / 2);
}

TEST_CASE("a late process can do nothing before fit") {
  const auto all = std::make_shared<registry>(2);
  const data::digits digits = data::synthetic_digits(64, 3);
  const elastic_among strategy{mortal(all, 1, true)};
  trainer model{normalized{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(7)};
  CHECK_THROWS_WITH_AS(model.evaluate(digits | data::batch<64>),
                       "the training is under way: a worker that joins late has to call fit before anything else", error);
}
