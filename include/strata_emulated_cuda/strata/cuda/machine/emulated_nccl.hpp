// NCCL over emulated devices, for tests. Each rank writes what it brings to a sum into a file that the others read, so that ranks
// may be devices of one process or of several. A sum is work on a queue. What NCCL answers with a hang or a wrong result is an
// error here: ranks that add up other numbers, or in another order; a rank that is taken twice; a process that has ended.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <strata/concepts/communicator.hpp>
#include <strata/cuda/machine/emulated.hpp>
#include <string>

namespace strata::machine {

/// Names the communicators that are made together, in all processes.
struct nccl_id {
  char bytes[128];
};

inline void need_nccl() {}
namespace detail {

/// The files of one rank, and what it knows of the others.
class nccl_files {
  std::filesystem::path folder_;
  int rank_, ranks_;
  long sums_ = 0;  // that were enqueued
  bool has_met_all_ = false, is_aborted_ = false;
  std::string failure_;

  struct about_rank {
    int process, device, ranks;
  };
  struct header {
    long count;
    std::size_t bytes_of_number;
  };

 public:
  nccl_files(int device, const nccl_id& group, int rank, int ranks) : folder_(group.bytes), rank_(rank), ranks_(ranks) {
    if (rank < 0 || rank >= ranks) fail({"rank ", rank, " of ", ranks});
    std::filesystem::create_directory(folder_);
    const about_rank own{int(::getpid()), device, ranks};
    if (::access(of_rank(rank).c_str(), F_OK) == 0) fail({"rank ", rank, " is taken twice"});
    write(of_rank(rank), [&](std::ofstream& to) { to.write(reinterpret_cast<const char*>(&own), sizeof own); });
  }
  nccl_files(const nccl_files&) = delete;
  nccl_files& operator=(const nccl_files&) = delete;
  ~nccl_files() {
    std::error_code ignored;
    std::filesystem::remove(of_rank(rank_), ignored);
    bool is_last = true;  // others may still read what this rank has brought
    for (int r = 0; r < ranks_; ++r) is_last = is_last && !lives(of_rank(r));
    if (is_last || is_aborted_) std::filesystem::remove_all(folder_, ignored);
  }

  /// Throws communication_error.
  bool is_ready() {
    if (!failure_.empty()) throw_exception(communication_error(failure_));
    for (int r = 0; r < ranks_; ++r) {
      about_rank other{};
      std::ifstream from(of_rank(r), std::ios::binary);
      if (!from.read(reinterpret_cast<char*>(&other), sizeof other)) {
        if (!has_met_all_) return false;
        if (sums_ > 0 && ::access(of_sum(sums_ - 1, r).c_str(), F_OK) != 0) fail({"rank ", r, " has left"});
        continue;
      }
      if (other.ranks != ranks_)
        fail({"rank ", r, " takes part in a group of ", other.ranks, ", rank ", rank_, " in one of ", ranks_});
      if (!is_running(other.process)) fail({"the process of rank ", r, " has ended"});
    }
    has_met_all_ = true;
    return true;
  }
  void abort() { is_aborted_ = true; }

  static constexpr const char* prefix = "strata-emulated-nccl-";
  /// Folders whose maker has ended, and all ranks that have come.
  static void remove_left_over(const std::filesystem::path& from) {
    std::error_code ignored;
    for (const auto& each : std::filesystem::directory_iterator(from, ignored)) {
      const std::string name = each.path().filename().string();
      if (!name.starts_with(prefix)) continue;
      int maker = 0;
      std::from_chars(name.data() + std::string_view(prefix).size(), name.data() + name.size(), maker);
      bool is_used = maker <= 0 || is_running(maker);
      for (const auto& file : std::filesystem::directory_iterator(each.path(), ignored))
        is_used = is_used || (file.path().filename().string().starts_with("rank") && lives(file.path()));
      if (!is_used) std::filesystem::remove_all(each.path(), ignored);
    }
  }

  long next_sum() { return sums_++; }
  void bring(long sum, const void* numbers, long count, std::size_t bytes_of_number) {
    if (is_aborted_) return;
    std::error_code ignored;
    if (sum >= 2) std::filesystem::remove(of_sum(sum - 2, rank_), ignored);  // all have brought sum - 1, so they have read it
    const header about{count, bytes_of_number};
    write(of_sum(sum, rank_), [&](std::ofstream& to) {
      to.write(reinterpret_cast<const char*>(&about), sizeof about);
      to.write(static_cast<const char*>(numbers), std::streamsize(std::size_t(count) * bytes_of_number));
    });
  }
  bool all_have_brought(long sum) const {
    if (is_aborted_ || !failure_.empty()) return true;
    for (int r = 0; r < ranks_; ++r)
      if (::access(of_sum(sum, r).c_str(), F_OK) != 0) return false;
    return true;
  }
  template <class T>
  void add_up(long sum, T* to, long count) {
    if (is_aborted_ || !failure_.empty()) return;
    std::vector<T> all(std::size_t(count), T{}), one(all);
    for (int r = 0; r < ranks_; ++r) {
      header theirs{};
      std::ifstream from(of_sum(sum, r), std::ios::binary);
      from.read(reinterpret_cast<char*>(&theirs), sizeof theirs);
      if (theirs.count != count || theirs.bytes_of_number != sizeof(T)) {
        failure_ = strata::detail::text_of({"emulated NCCL: in sum ", sum, " rank ", r, " brings ", theirs.count, " numbers of ",
                                            theirs.bytes_of_number, " bytes, rank ", rank_, " ", count, " of ", sizeof(T)});
        return;
      }
      from.read(reinterpret_cast<char*>(one.data()), std::streamsize(one.size() * sizeof(T)));
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += one[i];
    }
    std::ranges::copy(all, to);
  }

 private:
  /// Whether the process that wrote this file about itself has not ended.
  static bool lives(const std::filesystem::path& rank) {
    about_rank other{};
    std::ifstream from(rank, std::ios::binary);
    return from.read(reinterpret_cast<char*>(&other), sizeof other) && is_running(other.process);
  }
  static bool is_running(int process) { return ::kill(process, 0) == 0 || errno == EPERM; }
  std::string of_rank(int rank) const { return (folder_ / ("rank" + std::to_string(rank))).string(); }
  std::string of_sum(long sum, int rank) const {
    return (folder_ / (std::to_string(sum) + "of" + std::to_string(rank))).string();
  }
  template <class F>
  static void write(const std::string& path, F&& content) {
    {
      std::ofstream to(path + ".new", std::ios::binary);
      content(to);
    }
    std::error_code ignored;  // after an abort the folder is gone
    std::filesystem::rename(path + ".new", path, ignored);
  }
  [[noreturn]] void fail(std::initializer_list<strata::detail::text_piece> pieces) {
    failure_ = "emulated NCCL: " + strata::detail::text_of(pieces);
    throw_exception(communication_error(failure_));
  }
};

}  // namespace detail

/// The id names a folder of files. Folders that killed processes have left are removed.
inline nccl_id make_nccl_id() {
  static std::atomic<int> made = 0;
  const bool has_shared_memory = ::access("/dev/shm", W_OK) == 0;
  const std::string folder = has_shared_memory ? "/dev/shm" : std::filesystem::temp_directory_path().string();
  detail::nccl_files::remove_left_over(folder);
  const long now = std::chrono::steady_clock::now().time_since_epoch().count();
  nccl_id id{};
  const std::string name =
      strata::detail::formatted("%s/%s%d-%d-%lx", folder.c_str(), detail::nccl_files::prefix, int(::getpid()), made++, now);
  name.copy(id.bytes, sizeof id.bytes - 1);
  return id;
}

/// The place of one device among `ranks` others. Nothing here waits for them: is_ready() says whether the calls so far have been
/// enqueued.
class nccl_communicator {
  std::shared_ptr<detail::nccl_files> files_;

 public:
  /// Throws strata_error if there is no such device, communication_error if the rank is taken or not one of `ranks`.
  nccl_communicator(int device, const nccl_id& group, int rank, int ranks) {
    detail::machine_state::the().need_device(device);
    files_ = std::make_shared<detail::nccl_files>(device, group, rank, ranks);
  }
  nccl_communicator(nccl_communicator&&) = default;
  nccl_communicator& operator=(nccl_communicator&&) = default;

  /// Throws communication_error if a call has failed.
  bool is_ready() const { return files_->is_ready(); }
  /// All ranks call it before one of them is destroyed.
  static void begin_to_leave() noexcept {}
  /// Ends all that is enqueued.
  void abort() noexcept {
    const auto locked = detail::machine_state::the().lock();
    files_->abort();
  }
  /// Enqueues the sum over all ranks, which replaces the values of each.
  template <class T>
  void add_up(const queue& q, T* values, std::size_t count) {
    if (!is_ready()) throw_error("emulated NCCL: a sum before all ranks have joined");
    const long sum = files_->next_sum();
    detail::count(q, &work_counts::sums, "a sum of gradients");
    auto& all = detail::machine_state::the();
    all.enqueue(q.state(), {{}, [=, files = files_] { files->bring(sum, values, long(count), sizeof(T)); }});
    all.enqueue(q.state(), {[=, files = files_] { return files->all_have_brought(sum); },
                            [=, files = files_] { files->add_up(sum, values, long(count)); }, false, true});
  }
};

/// Calls of one thread for several devices.
template <class F>
void nccl_together(F&& calls) {
  calls();
}

}  // namespace strata::machine
