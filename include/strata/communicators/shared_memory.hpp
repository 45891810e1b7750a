// Processes of one machine: a message is copied once, from the sender's memory to the receiver's. Needs protozero; Linux only.
// needs: protozero
#pragma once
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <strata/base/text.hpp>
#include <strata/communicators/key_value_store.hpp>
#include <strata/communicators/meeting.hpp>
#include <strata/communicators/message_queue.hpp>
#include <strata/communicators/wait_state.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/without_size_signal.hpp>
#include <strata/net/message.hpp>
#include <strata/net/random_token.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace strata {

namespace detail {
/// Anonymous memory that other processes of the same user can map while its owner lives. It never shrinks: the system would kill
/// a process that reads beyond its end. Where Linux refuses such memory, the pages are private.
class shared_pages {
  static constexpr unsigned close_on_exec = 1, allow_sealing = 2;                                                // MFD_*
  static constexpr int add_seals = 1033, get_seals = 1034, no_more_seals = 1, no_shrinking = 2, no_growing = 4;  // F_*

 public:
  shared_pages() = default;
  explicit shared_pages(std::size_t bytes)
      : file_(int(::syscall(SYS_memfd_create, "strata", close_on_exec | allow_sealing))),
        bytes_(std::max<std::size_t>(bytes, 1)) {
    const io::without_size_signal guard;  // shared memory counts as a file
    if (!file_ || ::ftruncate(file_.number(), off_t(bytes_)) != 0 ||
        ::fcntl(file_.number(), add_seals, no_more_seals | no_shrinking | no_growing) != 0) {
      why_private_ = errno;
      file_ = {};
    }
    map();
  }
  /// The pages that process `pid` has as that file. Throws communication_error for any other kind of file, as when another
  /// process has that pid now.
  shared_pages(int pid, int number)
      : file_(::open(detail::text_of({"/proc/", pid, "/fd/", number}).c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    struct stat status{};
    if (!file_ || ::fstat(file_.number(), &status) != 0) fail(detail::text_of({"open the shared memory of process ", pid}));
    // Any other file could be made shorter. It has no seals that could be read: the answer is -1.
    const int seals = ::fcntl(file_.number(), get_seals);
    if (!S_ISREG(status.st_mode) || status.st_size <= 0 || seals < 0 || (seals & no_shrinking) == 0)
      throw communication_error(detail::text_of({"file ", number, " of process ", pid, " is not shared memory"}));
    bytes_ = std::size_t(status.st_size);
    map();
  }
  shared_pages(shared_pages&& other) noexcept
      : file_(std::move(other.file_)),
        first_(std::exchange(other.first_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        why_private_(other.why_private_) {}
  shared_pages& operator=(shared_pages&& other) noexcept {
    file_ = std::move(other.file_);
    std::swap(first_, other.first_);
    std::swap(bytes_, other.bytes_);
    std::swap(why_private_, other.why_private_);
    return *this;
  }
  ~shared_pages() {
    if (first_) ::munmap(first_, bytes_);
  }

  std::byte* data() const { return static_cast<std::byte*>(first_); }
  std::size_t size() const { return bytes_; }
  int number() const { return file_.number(); }
  /// Throws communication_error with the reason if these pages, of this process, are private.
  void require_shared() const {
    if (file_) return;
    throw communication_error(detail::text_of(
        {"cannot share ", bytes_, " bytes of memory with other processes: ", std::generic_category().message(why_private_)}));
  }

 private:
  void map() {
    first_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | (file_ ? 0 : MAP_ANONYMOUS), file_.number(), 0);
    if (first_ == MAP_FAILED) {
      first_ = nullptr;
      fail("map shared memory");
    }
  }
  [[noreturn]] static void fail(const std::string& what) {
    throw communication_error(detail::text_of({"cannot ", what, ": ", std::generic_category().message(errno)}));
  }

  io::file_descriptor file_;
  void* first_ = nullptr;
  std::size_t bytes_ = 0;
  int why_private_ = 0;
};

/// Names the machine and the PID namespace of this process.
inline std::string process_space() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char space[64] = {};
  if (::readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) return "";
  return detail::text_of({boot, "/", space});
}
}  // namespace detail

/// Copies are the same end of the same connections. At most 64 messages to one process are under way at a time. After an error
/// every wait throws.
class shared_memory_communicator {
  static constexpr std::uint32_t ring = 64;
  struct message {
    std::int32_t number;  // file descriptor of the sender's memory
    std::uint32_t generation;
    std::uint64_t offset, bytes;
  };
  /// Messages from one process to another, in the memory of the receiver.
  struct mailbox {
    alignas(64) std::atomic<std::uint32_t> posted{0};
    alignas(64) std::atomic<std::uint32_t> taken{0};
    std::array<message, ring> messages{};
  };
  struct inbox {
    alignas(64) std::atomic<std::uint32_t> bell{0};  // incremented after each change that the owner may wait for
    std::atomic<std::uint32_t> sleeping{0};
    std::uint64_t token = 0;  // tells this memory from that of another process or machine
    mailbox* from(int rank) { return reinterpret_cast<mailbox*>(reinterpret_cast<std::byte*>(this) + sizeof(inbox)) + rank; }
  };
  struct mapped {
    std::int32_t number;
    std::uint32_t generation;
    detail::shared_pages pages;
  };
  struct peer {
    int pid = 0;
    io::file_descriptor life;  // readable once the process has ended
    detail::shared_pages inbox_pages;
    std::vector<mapped> memories;
    std::uint32_t posted = 0, taken = 0;  // messages to it; messages from it
    bool here = false;                    // can be reached through shared memory
  };
  using expected = detail::expected_message;
  using address = detail::shared_memory_address;
  struct state {
    int rank = 0, size = 0;
    std::chrono::milliseconds timeout{};
    std::shared_ptr<core::wait_state> waits;
    detail::shared_pages inbox_pages;
    std::vector<peer> peers;
    std::vector<int> machines;  // of all
    detail::message_queue<expected> under_way;
    std::uint32_t generation = 0;  // of allocated memory
    std::function<bool()> meanwhile;
  };

 public:
  class memory {
   public:
    memory() = default;
    memory(detail::shared_pages pages, std::uint32_t generation) : pages_(std::move(pages)), generation_(generation) {}
    std::byte* data() { return pages_.data(); }

   private:
    friend shared_memory_communicator;
    detail::shared_pages pages_;
    std::uint32_t generation_ = 0;
  };

  /// Meets the other processes through the store. Processes without common shared memory do not reach each other: see reaches. A
  /// process with `shares` = false reaches none. Throws communication_error if a process does not appear in time.
  shared_memory_communicator(core::key_value_store& store, int rank, int size,
                             std::chrono::milliseconds timeout = std::chrono::seconds(30),
                             std::shared_ptr<core::wait_state> waits = std::make_shared<core::wait_state>(), bool shares = true)
      : state_(std::make_shared<state>()) {
    state& s = *state_;
    s.rank = rank, s.size = size, s.timeout = timeout, s.waits = std::move(waits);
    s.inbox_pages = detail::shared_pages(inbox_size());
    s.peers.resize(std::size_t(size));
    const address mine{::getpid(), s.inbox_pages.number(), detail::random_token(), shares ? detail::process_space() : ""};
    inbox_of(rank).token = mine.token;
    const std::string addresses = "shared memory of ", reached_by = "shared memory reached by ";
    store.set(detail::text_of({addresses, rank}), wire::encode(mine));
    const auto all = read_all<address>(store, addresses, "published no address");
    // Even on one machine, a process may not be allowed to access another one, or may see other PIDs: memory is used only if it
    // can be mapped in both directions. Usually all processes of a machine reach each other, for which there is a flag: lists of
    // all ranks, size * size in total, would be too much to send.
    const std::vector<bool> machine = members_of(all, rank);
    std::vector<bool> reached = machine;
    for (int r = 0; r < size; ++r)
      if (reached[std::size_t(r)] && r != rank && !meets(r, all[std::size_t(r)])) reached[std::size_t(r)] = false;
    detail::shared_memory_reach reach{.whole_machine = reached == machine};
    for (int r = 0; r < size && !reach.whole_machine; ++r)
      if (reached[std::size_t(r)]) reach.ranks.push_back(r);
    store.set(detail::text_of({reached_by, rank}), wire::encode(reach));
    std::vector<std::vector<bool>> everyone;
    for (const auto& its :
         read_all<detail::shared_memory_reach>(store, reached_by, "did not report which processes it reaches")) {
      const int r = int(everyone.size());
      everyone.push_back(its.whole_machine ? members_of(all, r) : std::vector<bool>(std::size_t(size)));
      for (const int other : its.ranks)
        if (other >= 0 && other < size) everyone.back()[std::size_t(other)] = true;
    }
    for (int r = 0; r < size; ++r) s.peers[std::size_t(r)].here = reach_each_other(everyone, rank, r);
    find_machines(everyone);
  }

  int rank() const { return state_->rank; }
  int size() const { return state_->size; }
  bool reaches(int rank) const { return state_->peers[std::size_t(rank)].here; }
  /// The lowest rank on the machine of `rank`.
  int machine_of(int rank) const { return state_->machines[std::size_t(rank)]; }
  /// Memory that the processes in reach can read. Throws communication_error if it is larger than the limit of file sizes.
  memory allocate(std::size_t bytes) {
    detail::shared_pages pages(bytes);
    for (int r = 0; r < size(); ++r)
      if (r != rank() && reaches(r)) pages.require_shared();
    return {std::move(pages), ++state_->generation};
  }

  /// A thread that waits here calls `f` repeatedly, and more often while `f` returns true: there is more to do.
  void while_waiting(std::function<bool()> f) { state_->meanwhile = std::move(f); }

  void send(memory& from, std::size_t offset, std::size_t bytes, int to) {
    peer& p = state_->peers[std::size_t(to)];
    mailbox& box = *inbox_of(to).from(rank());
    const auto has_room = [&] { return p.posted - box.taken.load(std::memory_order_acquire) < ring; };
    const auto can_go_on = [&] {
      take_what_is_there();  // or two processes that send to each other would wait without end
      return has_room();
    };
    if (!has_room()) wait_until(can_go_on, "room for a message", to);
    box.messages[p.posted % ring] = {from.pages_.number(), from.generation_, offset, bytes};
    box.posted.store(++p.posted, std::memory_order_seq_cst);
    ring_bell(inbox_of(to));
  }
  void receive(memory& to, std::size_t offset, std::size_t bytes, int from) {
    state_->under_way.push({to.data() + offset, bytes, from});
  }
  std::uint64_t begun() const { return state_->under_way.added(); }
  void wait_received(const char* what, std::uint64_t mark) {
    state_->waits->throw_if_interrupted();
    while (state_->under_way.taken() < mark) {
      const expected& e = state_->under_way.front();
      wait_until([&] { return is_there(e); }, what, e.from);
      take(e, what);
    }
  }
  void wait(const char* what) {
    wait_received(what, begun());
    for (int to = 0; to < size(); ++to) {
      if (to == rank() || !reaches(to)) continue;
      const std::uint32_t posted = state_->peers[std::size_t(to)].posted;
      mailbox& box = *inbox_of(to).from(rank());
      wait_until([&] { return box.taken.load(std::memory_order_acquire) == posted; }, what, to);
    }
  }

 private:
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

  std::size_t inbox_size() const { return sizeof(inbox) + std::size_t(state_->size) * sizeof(mailbox); }
  /// The values that all processes have set in the store. An error names the first process that has not.
  template <wire::message M>
  std::vector<M> read_all(core::key_value_store& store, const std::string& prefix, const std::string& lacks) const {
    std::vector<M> all;
    try {
      for (const std::string& left : store.get_all(prefix, size(), state_->timeout)) all.push_back(wire::decode<M>(left));
    } catch (const core::missing_values& e) {
      fail_to_meet(detail::text_of({"process ", e.indices(), ' ', lacks, " within ", state_->timeout.count(), " ms"}), e.first());
    } catch (const wire::malformed_message& e) {
      fail_to_meet(detail::text_of({"process ", all.size(), " published a ", e.what()}), int(all.size()));
    }
    return all;
  }
  [[noreturn]] void fail_to_meet(const std::string& why, int on) const {
    state_->waits->interrupt(detail::text_of({"process ", rank(), " of ", size(), " could not meet the others: ", why}), on);
    throw communication_error(state_->waits->why());
  }
  /// For each rank: true if its process reports the same space as `rank`.
  static std::vector<bool> members_of(const std::vector<address>& all, int rank) {
    const std::string& space = all[std::size_t(rank)].space;
    std::vector<bool> members;
    for (const address& a : all) members.push_back(!space.empty() && a.space == space);
    return members;
  }
  static bool reach_each_other(const std::vector<std::vector<bool>>& reached, int a, int b) {
    return reached[std::size_t(a)][std::size_t(b)] && reached[std::size_t(b)][std::size_t(a)];
  }
  /// A machine is a set of processes that reach each other. If reaching is not transitive, each process has a machine of its own.
  /// All processes come to the same result.
  void find_machines(const std::vector<std::vector<bool>>& reached) {
    const auto together = [&](int a, int b) { return a == b || reach_each_other(reached, a, b); };
    auto& machines = state_->machines;
    for (int a = 0; a < size(); ++a) {
      int lowest = 0;
      while (!together(a, lowest)) ++lowest;
      machines.push_back(lowest);
    }
    for (int a = 0; a < size(); ++a)
      for (int b = 0; b < size(); ++b)
        if (together(a, b) != (machine_of(a) == machine_of(b))) {
          std::iota(machines.begin(), machines.end(), 0);
          return;
        }
  }
  bool meets(int r, const address& other) {
    peer& p = state_->peers[std::size_t(r)];
    p.pid = other.pid;
    // First of all: while this descriptor is open, no other process gets the pid.
    p.life = io::file_descriptor(int(::syscall(SYS_pidfd_open, p.pid, 0)));
    if (!p.life) return false;
    try {
      p.inbox_pages = detail::shared_pages(p.pid, other.file);
    } catch (const communication_error&) {
      return false;
    }
    return p.inbox_pages.size() == inbox_size() && inbox_of(r).token == other.token && !has_ended(r);
  }

  inbox& inbox_of(int rank) {
    const auto& pages = rank == state_->rank ? state_->inbox_pages : state_->peers[std::size_t(rank)].inbox_pages;
    return *reinterpret_cast<inbox*>(pages.data());
  }

  bool is_there(const expected& e) {
    return inbox_of(rank()).from(e.from)->posted.load(std::memory_order_acquire) != state_->peers[std::size_t(e.from)].taken;
  }
  void take_what_is_there() {
    auto& under_way = state_->under_way;
    while (!under_way.empty() && is_there(under_way.front())) take(under_way.front(), "a message");
  }
  void take(const expected& e, const char* what) {
    peer& p = state_->peers[std::size_t(e.from)];
    mailbox& box = *inbox_of(rank()).from(e.from);
    const message m = box.messages[p.taken % ring];
    if (m.bytes != e.bytes) fail(what, e.from, detail::text_of({"sent ", m.bytes, " bytes instead of ", e.bytes}));
    const detail::shared_pages& from = memory_of(p, m, what, e.from);
    if (m.offset > from.size() || m.bytes > from.size() - m.offset)
      fail(what, e.from, detail::text_of({"sent bytes at offset ", m.offset, " of a memory of ", from.size(), " bytes"}));
    std::memcpy(e.to, from.data() + m.offset, e.bytes);
    box.taken.store(++p.taken, std::memory_order_seq_cst);
    ring_bell(inbox_of(e.from));
    state_->under_way.pop();
  }
  const detail::shared_pages& memory_of(peer& p, const message& m, const char* what, int from) {
    const auto known = std::find_if(p.memories.begin(), p.memories.end(), [&](const mapped& k) { return k.number == m.number; });
    if (known != p.memories.end() && known->generation == m.generation) return known->pages;
    try {
      mapped fresh{m.number, m.generation, detail::shared_pages(p.pid, m.number)};
      return (known != p.memories.end() ? *known = std::move(fresh) : p.memories.emplace_back(std::move(fresh))).pages;
    } catch (const communication_error& e) {
      fail(what, from, has_ended(from) ? "has ended" : detail::text_of({"sent a message that cannot be read: ", e.what()}));
    }
  }

  static void ring_bell(inbox& of) {
    of.bell.fetch_add(1, std::memory_order_seq_cst);
    if (of.sleeping.load(std::memory_order_seq_cst) != 0)
      ::syscall(SYS_futex, &of.bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }

  /// Spins for about as long as a message takes, then sleeps until the bell rings. Checks meanwhile that the other process lives.
  template <class Ready>
  void wait_until(Ready&& ready, const char* what, int on) {
    for (int i = 1; i <= 8000; ++i) {
      if (ready()) return;
      if (i % 64 == 0) {
        if (state_->meanwhile) state_->meanwhile();
        ::sched_yield();  // with more processes than cores, the awaited one may need this core
      }
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    inbox& mine = inbox_of(rank());
    const core::wait_state::scope told(*state_->waits, what, on);
    const auto deadline = state_->waits->time() + state_->timeout;
    for (;;) {
      const bool more = state_->meanwhile && state_->meanwhile();
      mine.sleeping.store(1, std::memory_order_seq_cst);
      const std::uint32_t rung = mine.bell.load(std::memory_order_seq_cst);
      const bool done = ready();
      if (!done) {
        const timespec some{0, more ? 100'000 : 5'000'000};
        ::syscall(SYS_futex, &mine.bell, FUTEX_WAIT, rung, &some, nullptr, 0);
      }
      mine.sleeping.store(0, std::memory_order_seq_cst);
      if (done || ready()) return;
      state_->waits->throw_if_interrupted();
      if (has_ended(on)) {
        if (ready()) return;  // it sent this before it ended
        fail(what, on, "has ended");
      }
      if (state_->waits->time() > deadline)
        fail(what, on, detail::text_of({"did not answer within ", state_->timeout.count(), " ms"}));
    }
  }
  bool has_ended(int rank) const {
    const peer& p = state_->peers[std::size_t(rank)];
    pollfd life{p.life.number(), POLLIN, 0};
    return p.life && ::poll(&life, 1, 0) > 0;
  }
  /// After an error messages are out of order, so all later ones fail.
  [[noreturn]] void fail(const char* what, int on, const std::string& why) const {
    state_->waits->interrupt(detail::text_of({what, ": process ", on, " (pid ", state_->peers[std::size_t(on)].pid,
                                              " on this machine), for which process ", rank(), " waits, ", why}),
                             on);
    throw communication_error(state_->waits->why());
  }

  std::shared_ptr<state> state_;
};
static_assert(core::knows_machines<shared_memory_communicator>);

}  // namespace strata
