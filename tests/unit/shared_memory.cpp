// needs: protozero
// Messages between processes through memory that both map: real processes, made by fork, and peers that send false data, stop
// half-way or die.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <strata/communicators/shared_memory.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/io/file_descriptor.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "error_of.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::core;
using strata::test::contains;
using strata::test::error_of;
using namespace std::chrono_literals;

namespace {
/// A store for processes: a file for each key.
class folder_store final : public key_value_store {
 public:
  explicit folder_store(std::string folder) : folder_(std::move(folder)) {}
  void set(const std::string& key, const std::string& value) override {
    io::atomic_file file(folder_ + '/' + key);
    file.write(std::string_view(value));
    file.commit();
  }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (;;) {
      std::ifstream file(folder_ + '/' + key);
      if (file) return {std::istreambuf_iterator<char>(file), {}};
      if (std::chrono::steady_clock::now() > deadline) throw communication_error("no '" + key + "'");
      std::this_thread::sleep_for(1ms);
    }
  }

 private:
  std::string folder_;
};

/// Falsifies the values that others receive and those that they send.
class lying_store final : public key_value_store {
 public:
  lying_store(key_value_store& store, std::function<std::string(const std::string&, std::string)> lie)
      : store_(store), lie_(std::move(lie)) {}
  void set(const std::string& key, const std::string& value) override { store_.set(key, lie_(key, value)); }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    return lie_(key, store_.get(key, timeout));
  }

 private:
  key_value_store& store_;
  std::function<std::string(const std::string&, std::string)> lie_;
};

/// An encoded address with one field replaced.
std::string with(const std::string& encoded, auto detail::shared_memory_address::* field, const auto& value) {
  auto address = wire::decode<detail::shared_memory_address>(encoded);
  address.*field = value;
  return wire::encode(address);
}

/// Runs f(rank) in processes of its own, all but rank 0, which is this one; their exit status is 0 unless something is thrown.
struct processes {
  std::vector<pid_t> pids;

  processes(int size, const std::function<void(int)>& f) {
    for (int r = 1; r < size; ++r) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        int status = 0;
        try {
          f(r);
        } catch (const std::exception&) {
          status = 1;
        }
        ::_exit(status);
      }
      pids.push_back(pid);
    }
  }
  ~processes() {
    for (const pid_t pid : pids) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  int status(int rank) {
    int status = 0;
    ::waitpid(pids[std::size_t(rank - 1)], &status, 0);
    pids[std::size_t(rank - 1)] = ::fork();  // a pid to clean up, whose process ends at once
    if (pids[std::size_t(rank - 1)] == 0) ::_exit(0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256;
  }
};

unsigned char pattern(int from, int round, std::size_t i) {
  return static_cast<unsigned char>(from * 31 + round * 7 + int(i % 251));
}

/// Sends from each process to each other one, in rounds, messages of up to 100 KB.
void exchange(shared_memory_communicator& c, int rounds) {
  constexpr std::size_t most = 100'000;
  auto out = c.allocate(most);
  auto in = c.allocate(most * std::size_t(c.size()));
  for (int round = 0; round < rounds; ++round) {
    const std::size_t bytes = 1 + std::size_t(round) * 9973 % most;
    for (std::size_t i = 0; i < bytes; ++i) out.data()[i] = std::byte(pattern(c.rank(), round, i));
    for (int r = 0; r < c.size(); ++r) {
      if (r == c.rank()) continue;
      c.receive(in, std::size_t(r) * most, bytes, r);
      c.send(out, 0, bytes, r);
    }
    c.wait("a round");
    for (int r = 0; r < c.size(); ++r)
      for (std::size_t i = 0; r != c.rank() && i < bytes; ++i)
        if (in.data()[std::size_t(r) * most + i] != std::byte(pattern(r, round, i))) throw strata_error("wrong byte");
  }
}
}  // namespace

TEST_CASE("bytes arrive as they were, among more processes than cores") {
  const test::scratch_folder folder("shared_memory");
  const auto run = [&](int rank) {
    folder_store store(folder.path.string());
    shared_memory_communicator c(store, rank, 4, 10s);
    exchange(c, 200);
  };
  processes others(4, run);
  run(0);
  for (const int r : {1, 2, 3}) CHECK(others.status(r) == 0);
}

TEST_CASE("memory that was given back is not taken for new memory") {
  const test::scratch_folder folder("shared_memory");
  const auto run = [&](int rank) {
    folder_store store(folder.path.string());
    shared_memory_communicator c(store, rank, 2, 10s);
    for (int round = 0; round < 50; ++round) {  // the same file number again and again, with other bytes and sizes
      const std::size_t bytes = 1000 + std::size_t(round) * 4096;
      auto memory = c.allocate(2 * bytes);
      std::memset(memory.data(), 10 * rank + round, bytes);
      c.receive(memory, bytes, bytes, 1 - rank);
      c.send(memory, 0, bytes, 1 - rank);
      c.wait("bytes");
      if (memory.data()[bytes] != std::byte(10 * (1 - rank) + round) || memory.data()[2 * bytes - 1] != memory.data()[bytes])
        throw strata_error("old");
    }
  };
  processes others(2, run);
  run(0);
  CHECK(others.status(1) == 0);
}

TEST_CASE("those that do not come in time are named, and the first of them is to blame") {
  in_process_store store;
  const std::string elsewhere = wire::encode(detail::shared_memory_address{1, 1, 1, "elsewhere"}),
                    all = wire::encode(detail::shared_memory_reach{.whole_machine = true});
  const auto why = [&](const std::shared_ptr<wait_state>& waits) {
    return error_of<communication_error>([&] { shared_memory_communicator(store, 2, 4, 100ms, waits); });
  };
  store.set("shared memory of 0", elsewhere);
  const auto waits = std::make_shared<wait_state>(), waits_again = std::make_shared<wait_state>();
  CHECK(why(waits) == "process 2 of 4 could not meet the others: process 1, 3 published no address within 100 ms");
  CHECK(waits->culprit() == 1);
  for (const int r : {1, 3}) store.set("shared memory of " + std::to_string(r), elsewhere);
  for (const int r : {0, 1}) store.set("shared memory reached by " + std::to_string(r), all);
  CHECK(why(waits_again) ==
        "process 2 of 4 could not meet the others: process 3 did not report which processes it reaches within 100 ms");
  CHECK(waits_again->culprit() == 3);
  const auto interrupted = std::make_shared<wait_state>();
  interrupted->interrupt("worker 7 is dead", 7);
  CHECK(why(interrupted) == "worker 7 is dead");  // which came first
  store.set("shared memory of 1", "malformed");
  const auto blames = std::make_shared<wait_state>();
  CHECK(why(blames).starts_with(
      "process 2 of 4 could not meet the others: process 1 published a malformed shared memory address: "));
  CHECK(blames->culprit() == 1);
}

TEST_CASE("what cannot be reached in both directions is left to another way") {
  using address = detail::shared_memory_address;
  const auto changed = [](auto address::* field, auto to, const std::string& of = "shared memory of") {
    return [=](const std::string& key, const std::string& value) { return key.starts_with(of) ? with(value, field, to) : value; };
  };
  std::vector<std::function<std::string(const std::string&, std::string)>> lies = {
      changed(&address::pid, 1),  // another process: access to it may be forbidden, or its file is another one
      changed(&address::pid, -5),
      changed(&address::pid, 999'999'999),
      changed(&address::file, 0),
      changed(&address::file, -1),
      changed(&address::file, 4000),
      changed(&address::token, 7u),
      changed(&address::space, "elsewhere", "shared memory of 1"),
      [](const std::string&, const std::string&) { return std::string(); },
      changed(&address::token, 7u, "shared memory of 0")};  // in one direction only
  for (std::size_t i = 0; i < lies.size(); ++i) {
    CAPTURE(i);
    const test::scratch_folder folder("shared_memory");
    const auto run = [&](int rank) {
      folder_store store(folder.path.string());
      lying_store liar(store, lies[i]);
      shared_memory_communicator c(rank == 1 ? static_cast<key_value_store&>(liar) : store, rank, 2, 10s);
      if (c.reaches(1 - rank)) throw strata_error("reached");
    };
    processes others(2, run);
    CHECK_NOTHROW(run(0));
    CHECK(others.status(1) == 0);
  }
}

TEST_CASE("machines are those that reach each other; where that is no question of either or, each process has one of its own") {
  for (const bool all_reach : {true, false}) {
    const test::scratch_folder folder("shared_memory");
    const auto run = [&](int rank) {
      folder_store store(folder.path.string());
      lying_store liar(store, [&](const std::string& key, const std::string& value) {  // process 1 does not reach process 2
        return key == "shared memory of 2" && !all_reach ? with(value, &detail::shared_memory_address::token, 7u) : value;
      });
      shared_memory_communicator c(rank == 1 ? static_cast<key_value_store&>(liar) : store, rank, 3, 10s);
      for (int r = 0; r < 3; ++r) {
        if (c.machine_of(r) != (all_reach ? 0 : r)) throw strata_error("another machine");
        if (r != rank && c.reaches(r) != (all_reach || r == 0 || rank == 0)) throw strata_error("reached");
      }
    };
    processes others(3, run);
    CHECK_NOTHROW(run(0));
    CHECK(others.status(1) == 0);
    CHECK(others.status(2) == 0);
  }
}

TEST_CASE("one that is not to share memory is alone on its machine") {
  const test::scratch_folder folder("shared_memory");
  const auto run = [&](int rank) {
    folder_store store(folder.path.string());
    shared_memory_communicator c(store, rank, 3, 10s, std::make_shared<wait_state>(), rank != 1);
    if (c.machine_of(0) != 0 || c.machine_of(1) != 1 || c.machine_of(2) != 0) throw strata_error("another machine");
    if (c.reaches(1) || (rank != 1 && !c.reaches(2 - rank))) throw strata_error("reached");
  };
  processes others(3, run);
  CHECK_NOTHROW(run(0));
  CHECK(others.status(1) == 0);
  CHECK(others.status(2) == 0);
}

TEST_CASE("memory beyond the limit of file sizes is an error, but not where no process would read it") {
  const test::scratch_folder folder("shared_memory");
  const auto run = [&](int rank) {
    folder_store store(folder.path.string());
    shared_memory_communicator c(store, rank, 2, 10s);
    const rlimit little{1 << 20, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &little);
    (void)c.allocate(100'000);
    const std::string why = error_of<communication_error>([&] { (void)c.allocate(2'000'000); });
    if (why != "cannot share 2000000 bytes of memory with other processes: File too large") throw strata_error(why);
  };
  processes two(3, [&](int rank) { run(rank - 1); });
  CHECK(two.status(1) == 0);
  CHECK(two.status(2) == 0);
  processes one(2, [&](int) {
    in_process_store store;
    shared_memory_communicator alone(store, 0, 1, 10s);
    const rlimit little{1 << 20, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &little);
    (void)alone.allocate(2'000'000);
  });
  CHECK(one.status(1) == 0);
}

TEST_CASE("a pipe in place of the memory does not block") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  CHECK(contains(error_of<communication_error>([&] { detail::shared_pages(::getpid(), ends[0]); }), "not shared memory"));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("a plain file in place of the memory is refused: it could be made shorter") {
  const test::scratch_folder folder("shared_memory");
  const io::file_descriptor plain(::open(folder.write("plain", std::string(10'000, 'x')).c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(plain);
  CHECK(contains(error_of<communication_error>([&] { detail::shared_pages(::getpid(), plain.number()); }), "not shared memory"));
}

TEST_CASE("memory cannot be made smaller under those who read it") {
  const detail::shared_pages pages(10'000);
  CHECK(::ftruncate(pages.number(), 0) != 0);
  CHECK(::ftruncate(pages.number(), 20'000) != 0);
}

TEST_CASE("a process that dies is named at once, whether it is waited for or has left a message") {
  for (const bool after_message : {false, true}) {
    const test::scratch_folder folder("shared_memory");
    const auto connect = [&](int rank) {
      folder_store store(folder.path.string());
      return shared_memory_communicator(store, rank, 2, 10s);
    };
    processes others(2, [&](int rank) {
      auto c = connect(rank);
      if (after_message) {
        auto memory = c.allocate(100);
        c.send(memory, 0, 100, 0);
      }
      ::raise(SIGKILL);
    });
    auto c = connect(0);
    auto memory = c.allocate(100);
    if (after_message) std::this_thread::sleep_for(200ms);
    c.receive(memory, 0, 100, 1);
    const auto began = std::chrono::steady_clock::now();
    const std::string why = error_of<communication_error>([&] { c.wait("gradients"); });
    CHECK(contains(why, "gradients: process 1 (pid " + std::to_string(others.pids[0]) +
                            " on this machine), for which process 0 waits, has ended"));
    CHECK(std::chrono::steady_clock::now() - began < 8s);  // not 10
    // Later waits end at once, too, with the same words.
    c.receive(memory, 0, 100, 1);
    CHECK(error_of<communication_error>([&] { c.wait("metrics"); }) == why);
    CHECK(std::chrono::steady_clock::now() - began < 8s);  // not 10
  }
}

TEST_CASE("the last messages of a process that ends in good order are read") {
  for (int i = 0; i < 50; ++i) {
    const test::scratch_folder folder("shared_memory");
    const auto run = [&](int rank) {
      folder_store store(folder.path.string());
      shared_memory_communicator c(store, rank, 2, 10s);
      auto memory = c.allocate(128);
      for (int round = 0; round < 3; ++round) {
        rank == 0 ? c.receive(memory, 0, 64, 1) : c.send(memory, 0, 64, 0);
        c.wait("the last");
        rank == 1 ? c.receive(memory, 0, 64, 0) : c.send(memory, 0, 64, 1);
        c.wait("the last");
      }
    };
    processes others(2, run);
    CHECK(error_of<communication_error>([&] { run(0); }) == "no error");
    CHECK(others.status(1) == 0);
  }
}

TEST_CASE("a message of another length, a full ring and an interruption are errors, not hangs") {
  for (const int what : {0, 1, 2}) {
    CAPTURE(what);
    const test::scratch_folder folder("shared_memory");
    const auto connect = [&](int rank, std::shared_ptr<wait_state> waits) {
      folder_store store(folder.path.string());
      return shared_memory_communicator(store, rank, 2, 3s, std::move(waits));
    };
    processes others(2, [&](int rank) {
      auto c = connect(rank, std::make_shared<wait_state>());
      auto memory = c.allocate(100);
      if (what == 0) c.send(memory, 0, 99, 0);
      std::this_thread::sleep_for(60s);
    });
    const auto waits = std::make_shared<wait_state>();
    auto c = connect(0, waits);
    auto memory = c.allocate(100);
    std::thread interrupter;
    if (what == 2)
      interrupter = std::thread([&] {
        while (waits->now().on != 1) std::this_thread::yield();
        CHECK(waits->now().what == "gradients");
        waits->interrupt("worker 7 is dead");
      });
    const std::string why = error_of<communication_error>([&] {
      for (int i = 0; what == 1 && i < 65; ++i) c.send(memory, 0, 1, 1);
      c.receive(memory, 0, 100, 1);
      c.wait("gradients");
    });
    if (interrupter.joinable()) interrupter.join();
    CHECK(contains(why, what == 0   ? "sent 99 bytes instead of 100"
                        : what == 1 ? "room for a message: process 1 (pid "
                                    : "worker 7 is dead"));
    CHECK(waits->now().on == -1);
    CHECK(error_of<communication_error>([&] { c.wait("metrics"); }) == why);
  }
}
