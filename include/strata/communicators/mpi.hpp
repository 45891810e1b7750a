// Processes that mpirun or srun started, over any network that their MPI library supports. Needs MPI; not elastic.
// needs: mpi
#pragma once
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <strata/base/text.hpp>
#include <strata/communicators/communication_options.hpp>
#include <strata/communicators/message_engine.hpp>
#include <strata/communicators/message_memory.hpp>
#include <strata/communicators/wait_state.hpp>
#include <strata/concepts/communicator.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace strata {

namespace detail {
/// Initializes MPI once and finalizes it when the process ends, unless the program does so itself. After an error MPI is not
/// finalized, because that would wait for the others; mpirun then ends them.
class mpi_environment {
  bool is_ours_ = false;

 public:
  bool has_failed = false;

  static mpi_environment& get() {
    static mpi_environment all;
    return all;
  }
  mpi_environment() {
    int begun = 0, level = 0;
    MPI_Initialized(&begun);
    if (!begun) {
      is_ours_ = true;
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
    } else {
      MPI_Query_thread(&level);
    }
    if (level < MPI_THREAD_SERIALIZED)
      throw communication_error(
          "MPI was initialized for one thread only: strata needs MPI_Init_thread(..., MPI_THREAD_SERIALIZED, ...)");
  }
  ~mpi_environment() {
    int ended = 0;
    MPI_Finalized(&ended);
    if (is_ours_ && !ended && !has_failed) MPI_Finalize();
  }
};
}  // namespace detail

/// All processes of MPI_COMM_WORLD construct it; several are constructed in the same order everywhere. Copies are the same
/// communicator. After an error every wait throws. If a process dies, MPI ends all others.
///   synchronous_among{mpi_communicator()}; or, with a coordinator that compares the programs and watches the workers:
///   multi_worker_mirrored{mpirun(), {.communication = {.implementation = mpi_communication}}}
class mpi_communicator {
  static constexpr std::size_t most_bytes = std::size_t{1} << 26;  // of one MPI message, whose count is an int

  struct pending {
    MPI_Request request;
    int peer;
    bool receives;
  };
  struct state {
    MPI_Comm all = MPI_COMM_NULL;
    int rank = 0, size = 1;
    std::vector<int> machines;
    std::vector<pending> under_way;
    std::uint64_t receives = 0, done = 0;  // begun, and done
    std::chrono::milliseconds timeout{};
    std::shared_ptr<core::wait_state> waits;

    ~state() {
      int ended = 0;
      MPI_Finalized(&ended);
      if (!ended && !detail::mpi_environment::get().has_failed) MPI_Comm_free(&all);
    }
  };

 public:
  using memory = core::message_memory;

  /// `timeout` is for each wait.
  explicit mpi_communicator(std::chrono::milliseconds timeout = std::chrono::seconds(30),
                            std::shared_ptr<core::wait_state> waits = std::make_shared<core::wait_state>()) {
    detail::mpi_environment::get();
    state_ = std::make_shared<state>();
    state& s = *state_;
    s.timeout = timeout;
    s.waits = std::move(waits);
    check(MPI_Comm_dup(MPI_COMM_WORLD, &s.all), "meeting the others", 0);
    MPI_Comm_set_errhandler(s.all, MPI_ERRORS_RETURN);
    MPI_Comm_rank(s.all, &s.rank);
    MPI_Comm_size(s.all, &s.size);
    // A machine is named by its lowest rank.
    MPI_Comm near = MPI_COMM_NULL;
    check(MPI_Comm_split_type(s.all, MPI_COMM_TYPE_SHARED, s.rank, MPI_INFO_NULL, &near), "finding machines", 0);
    int lowest = s.rank;
    MPI_Bcast(&lowest, 1, MPI_INT, 0, near);
    MPI_Comm_free(&near);
    s.machines.resize(std::size_t(s.size));
    check(MPI_Allgather(&lowest, 1, MPI_INT, s.machines.data(), 1, MPI_INT, s.all), "finding machines", 0);
  }

  int rank() const { return state_->rank; }
  int size() const { return state_->size; }
  int machine_of(int rank) const { return state_->machines[std::size_t(rank)]; }
  static memory allocate(std::size_t bytes) { return memory(bytes); }

  /// The memory must stay in place until the message is done.
  void send(std::byte* from, std::size_t bytes, int to) {
    in_pieces(
        from, bytes, to,
        [&](std::byte* at, int count, MPI_Request* request) {
          return MPI_Isend(at, count, MPI_BYTE, to, 0, state_->all, request);
        },
        false);
  }
  void receive(std::byte* to, std::size_t bytes, int from) {
    in_pieces(
        to, bytes, from,
        [&](std::byte* at, int count, MPI_Request* request) {
          return MPI_Irecv(at, count, MPI_BYTE, from, 0, state_->all, request);
        },
        true);
  }
  void send(memory& from, std::size_t offset, std::size_t bytes, int to) { send(from.data() + offset, bytes, to); }
  void receive(memory& to, std::size_t offset, std::size_t bytes, int from) { receive(to.data() + offset, bytes, from); }
  std::uint64_t begun() const { return state_->receives; }
  void wait_received(const char* what, std::uint64_t mark) {
    stop_if_interrupted();
    for (std::size_t i = 0; state_->done < mark; ++i)
      if (state_->under_way[i].receives) finish(state_->under_way[i], what);
  }
  void wait(const char* what) {
    stop_if_interrupted();
    for (pending& p : state_->under_way) finish(p, what);
    state_->under_way.clear();
  }
  /// Called by another thread: ends this wait and all later ones with an error that has this reason.
  void interrupt(const std::string& why) { state_->waits->interrupt(why); }
  /// Cancels receives, because their memory may go away, and does not wait for the others at the end.
  void stop() const {
    detail::mpi_environment::get().has_failed = true;
    for (pending& p : state_->under_way)
      if (p.receives && p.request != MPI_REQUEST_NULL) {
        MPI_Cancel(&p.request);
        MPI_Request_free(&p.request);
      }
    state_->under_way.clear();
  }

 private:
  template <class Begin>
  void in_pieces(std::byte* at, std::size_t bytes, int peer, Begin&& begin, bool receives) {
    stop_if_interrupted();
    do {
      const std::size_t some = std::min(bytes, most_bytes);
      pending p{MPI_REQUEST_NULL, peer, receives};
      check(begin(at, int(some), &p.request), "a message", peer);
      state_->under_way.push_back(p);
      state_->receives += receives;
      at += some, bytes -= some;
    } while (bytes > 0);
  }

  /// MPI moves messages while it is tested, so this tests repeatedly and lets other threads run in between.
  void finish(pending& p, const char* what) {
    if (p.request == MPI_REQUEST_NULL) return;
    bool done = false;
    for (int i = 0; i < 1000 && !done; ++i) done = ask(p, what);
    if (!done) {
      const core::wait_state::scope told(*state_->waits, what, p.peer);
      const auto deadline = state_->waits->time() + state_->timeout;
      while (!ask(p, what)) {
        stop_if_interrupted();
        if (state_->waits->time() > deadline)
          fail(what, p.peer, detail::text_of({"did not answer within ", state_->timeout.count(), " ms"}));
        std::this_thread::yield();
      }
    }
    state_->done += p.receives;
  }
  bool ask(pending& p, const char* what) {
    int done = 0;
    check(MPI_Test(&p.request, &done, MPI_STATUS_IGNORE), what, p.peer);
    return done != 0;
  }

  void check(int code, const char* what, int peer) const {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(code, text, &length);
    fail(what, peer, detail::text_of({"cannot be reached: ", text}));
  }
  void stop_if_interrupted() const {
    if (!state_->waits->is_interrupted()) return;
    stop();
    throw communication_error(state_->waits->why());
  }
  [[noreturn]] void fail(const char* what, int peer, const std::string& why) const {
    stop();
    state_->waits->interrupt(detail::text_of({what, ": process ", peer, ", for which process ", rank(), " waits in MPI, ", why}),
                             peer);
    throw communication_error(state_->waits->why());
  }

  std::shared_ptr<state> state_;
};
static_assert(core::knows_machines<mpi_communicator>);

namespace detail {
struct mpi_engine final : engine_over<mpi_communicator> {
  using engine_over::engine_over;
  int machine_of(int rank) const override { return to_others_.machine_of(rank); }

  /// Throws communication_error if MPI gives the processes other ranks.
  static std::unique_ptr<message_engine> make(const engine_arguments& a) {
    mpi_communicator c(a.timeout, a.waits);
    if (c.rank() != a.rank || c.size() != a.size)
      throw communication_error(detail::text_of({"process ", a.rank, " of ", a.size, " is process ", c.rank(), " of ", c.size(),
                                                 " in MPI: use the cluster of mpirun() or slurm(), without other roles"}));
    return std::make_unique<mpi_engine>(std::move(c));
  }
};
}  // namespace detail

namespace core {
template <>
struct please_include_strata_communicators_mpi_hpp<communication_implementation> {
  static constexpr communication_implementation value{
      .description = "through MPI", .elastic = false, .make_engine = &detail::mpi_engine::make};
};
}  // namespace core

}  // namespace strata
