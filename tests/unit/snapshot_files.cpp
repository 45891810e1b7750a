// A process that saves versions of a file is killed before each of its system calls that may change one; so is the one after it.
#include <doctest/doctest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <strata/io/atomic_file.hpp>
#include <strata/io/lock_file.hpp>
#include <strata/io/snapshot_files.hpp>
#include <string>

#include "error_of.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::test;
namespace fs = std::filesystem;

namespace {
using contents = std::map<std::string, std::string>;

contents contents_of(const scratch_folder& folder) {
  contents all;
  for (const auto& entry : fs::directory_iterator(folder.path)) {
    const bytes text = folder.read(entry.path().filename().string());
    all[entry.path().filename().string()] = {text.begin(), text.end()};
    if (entry.path().extension() == ".lock") all[entry.path().filename().string()] = "a process";  // each time another
  }
  return all;
}
void put(const scratch_folder& folder, const contents& all) {
  fs::remove_all(folder.path);
  fs::create_directories(folder.path);
  for (const auto& [name, text] : all) folder.write(name, text);
}

io::snapshot_files files_in(const scratch_folder& folder) { return io::snapshot_files(folder / "s.state"); }
/// A file that is not damaged has the number of its version and "whole".
std::string damage_of(const fs::path& file) {
  std::string text;
  std::getline(std::ifstream(file), text);
  return text.ends_with(" whole") ? "" : file.filename().string() + " is damaged";
}
int newest_version(const scratch_folder& folder) {
  const fs::path file = files_in(folder).recover(damage_of).file;
  int version = 0;
  if (!file.empty()) std::ifstream(file) >> version;
  return version;
}
/// Continues from the newest version and saves the next one, as both strategies do.
void go_on(const scratch_folder& folder) {
  io::snapshot_files files = files_in(folder);
  io::lock_file lock;
  files.hold(lock, folder.path);
  const int version = newest_version(folder);
  io::atomic_file file(files.unfinished());
  file.write(std::to_string(version + 1) + ' ');
  file.write("whole");
  file.commit();
  files.replace();
}
/// Whether killing a process before this system call may leave other files than killing it before the next one.
bool may_change_files(std::uint64_t call) {
  static const std::set<std::uint64_t> harmless{SYS_read,     SYS_pread64,   SYS_close,        SYS_fstat,          SYS_newfstatat,
                                                SYS_statx,    SYS_lseek,     SYS_mmap,         SYS_munmap,         SYS_mprotect,
                                                SYS_brk,      SYS_fsync,     SYS_getpid,       SYS_prlimit64,      SYS_getdents64,
                                                SYS_uname,    SYS_faccessat, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_readlinkat,
                                                SYS_madvise,  SYS_futex,     SYS_gettid,       SYS_fcntl,          SYS_getrandom,
#ifdef SYS_access
                                                SYS_access,   SYS_stat,      SYS_lstat,        SYS_readlink,
#endif
                                                SYS_fadvise64};
  return !harmless.contains(call);
}
/// Calls f in another process, which is killed before its n-th system call that may change files. False if f has returned before.
/// Throws strata_error if processes may not be traced.
bool killed_at(int n, const std::function<void()>& f) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(77);
    ::raise(SIGSTOP);
    f();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) throw strata_error("a process cannot be traced here");
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD);  // PTRACE_GET_SYSCALL_INFO needs it
  for (int calls = 0; calls < n;) {                                    // each system call stops the process twice
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) return false;
    __ptrace_syscall_info call{};
    const bool known = ::ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof call, &call) > 0;
    calls += !known || (call.op == PTRACE_SYSCALL_INFO_ENTRY && may_change_files(call.entry.nr));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return true;
}
bool can_trace() {
  return error_of([] { killed_at(1, [] {}); }) == "no error";
}
/// Makes flock fail in this process from now on, as on a file system without locks. Returns false if that is not permitted.
bool lose_locks() {
  std::array<sock_filter, 4> program{{{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                                      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_flock},
                                      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOLCK},
                                      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}}};
  const sock_fprog filter{4, program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}
}  // namespace

TEST_CASE("two kills in a row, at any two moments: a version is left that can be read, and never an older one than before") {
  if (!can_trace()) {
    MESSAGE("tracing a process is not permitted here");
    return;
  }
  const scratch_folder folder(fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path(),
                              "snapshot-files");  // kills need no disk
  const std::array<contents, 4> beginnings{{{{"s.state", "2 whole"}, {"s.previous.state", "1 whole"}},
                                            {{"s.state", "2 wh"}, {"s.previous.state", "1 whole"}},
                                            {{"s.previous.state", "1 whole"}, {"s.new.state", "2 whole"}},
                                            {{"s.state", "1 whole"}, {"s.new.state", "2 wh"}}}};
  int kills = 0;
  std::set<contents> tried;
  for (const contents& beginning : beginnings) {
    put(folder, beginning);
    const int least = newest_version(folder);
    REQUIRE(least > 0);
    std::set<contents> left{beginning};  // what the first kill may leave
    for (int n = 1;; ++n, ++kills) {
      put(folder, beginning);
      if (!killed_at(n, [&] { go_on(folder); })) break;
      left.insert(contents_of(folder));
    }
    CHECK(left.size() > 3);
    for (const contents& after_one : left) {
      if (!tried.insert(after_one).second) continue;
      for (int n = 1;; ++n, ++kills) {
        put(folder, after_one);
        const int version = newest_version(folder);
        REQUIRE(version >= least);
        put(folder, after_one);
        const bool killed = killed_at(n, [&] { go_on(folder); });
        const int now = newest_version(folder);
        REQUIRE(now >= version);
        if (killed) continue;
        CHECK(now == version + 1);
        contents rest = contents_of(folder);
        rest.erase("s.damaged.state");
        CHECK(rest ==
              contents{{"s.state", std::to_string(now) + " whole"}, {"s.previous.state", std::to_string(now - 1) + " whole"}});
        break;
      }
    }
  }
  CAPTURE(kills);
  CHECK(kills > 100);
}

TEST_CASE("a damaged version is set aside, whatever it is; one before it that is good is found") {
  const scratch_folder folder("snapshot-files");
  put(folder, {{"s.state", "3 wh"}, {"s.previous.state", "2 whole"}});
  const auto found = files_in(folder).recover(damage_of);
  CHECK(found.file == folder / "s.previous.state");
  CHECK(found.damages == "s.state is damaged");
  CHECK(contents_of(folder) == contents{{"s.damaged.state", "3 wh"}, {"s.previous.state", "2 whole"}});
  put(folder, {{"s.state", "3 wh"}, {"s.previous.state", "2 wh"}});
  CHECK(files_in(folder).recover(damage_of).file.empty());
  CHECK(files_in(folder).recover(damage_of).damages == "s.state is damaged, and s.previous.state is damaged");
  put(folder, {});
  CHECK(files_in(folder).recover(damage_of).damages.empty());
}

TEST_CASE("what is no file stays as it is: a folder, a link, a pipe") {
  const scratch_folder folder("snapshot-files");
  put(folder, {{"letter", "3 whole"}});
  const auto says = [&](const std::string& why) {
    io::lock_file lock;
    CHECK(error_of([&] { files_in(folder).hold(lock, folder.path); }) ==
          "cannot write " + (folder / "s.lock").string() + ": " + why);
  };
  fs::create_symlink("letter", folder / "s.lock");
  says("a symbolic link is not followed there");
  fs::remove(folder / "s.lock");
  fs::create_hard_link(folder / "letter", folder / "s.lock");
  {
    io::lock_file lock;
    files_in(folder).hold(lock, folder.path);
    CHECK(fs::hard_link_count(folder / "s.lock") == 1);
  }
  if (::geteuid() == 0) {
    std::ofstream(folder / "another's") << "a word";
    fs::create_hard_link(folder / "another's", folder / "s.lock");
    REQUIRE(::chown((folder / "s.lock").c_str(), 4711, 4711) == 0);
    says("it is a hard link to a file of another user: remove it");
    fs::remove(folder / "s.lock");
    fs::remove(folder / "another's");
  }
  REQUIRE(::mkfifo((folder / "s.lock").c_str(), 0600) == 0);
  says("not a regular file");
  fs::remove(folder / "s.lock");

  fs::create_symlink("letter", folder / "s.new.state");
  io::atomic_file file(folder / "s.new.state", io::unfinished_file::unnamed, io::existing_link::replaced);
  file.write("4 whole");
  file.commit();
  CHECK_FALSE(fs::is_symlink(folder / "s.new.state"));
  CHECK(contents_of(folder) == contents{{"letter", "3 whole"}, {"s.new.state", "4 whole"}});

  fs::remove(folder / "s.new.state");
  for (const std::string name : {"s.new.state", "s.state", "s.previous.state", "s.damaged.state"}) {
    fs::create_directory(folder / name);
    std::ofstream(folder / name / "letter") << "a word";
  }
  files_in(folder).recover(damage_of);
  files_in(folder).remove_all();
  for (const std::string name : {"s.new.state", "s.state", "s.previous.state", "s.damaged.state"})
    CHECK(fs::exists(folder / name / "letter"));
}

TEST_CASE("the lock of a process that is killed is released, and waited for") {
  using namespace std::chrono_literals;
  const scratch_folder folder("lock-file");
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    io::lock_file mine;
    mine.hold(folder / "lock", folder.path, "advice");
    (void)!::write(ends[1], "x", 1);
    ::pause();
    ::_exit(0);
  }
  char ready = 0;
  REQUIRE(::read(ends[0], &ready, 1) == 1);
  io::lock_file mine;
  const std::string words = error_of([&] { mine.hold(folder / "lock", folder.path, "advice", 30ms); });
  CHECK(words.starts_with(folder.path.string() + " is in use by process " + std::to_string(child) + " on "));
  CHECK(words.ends_with(": advice"));
  CHECK(!mine);
  ::kill(child, SIGKILL);
  CHECK(error_of([&] { mine.hold(folder / "lock", folder.path, "advice"); }) == "no error");
  CHECK(mine);
  int status = 0;
  ::waitpid(child, &status, 0);
  io::lock_file second;
  CHECK(error_of([&] {
          second.hold(folder / "lock", folder.path, "advice", 0ms);
        }).find("process " + std::to_string(::getpid())) != std::string::npos);
  mine.release();
  CHECK(!fs::exists(folder / "lock"));
  CHECK(error_of([&] { second.hold(folder / "lock", folder.path, "advice", 0ms); }) == "no error");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("where the file system knows no locks, one line says so, however often the lock is asked for") {
  const scratch_folder folder("lock-file");
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (!lose_locks()) ::_exit(77);
    ::dup2(ends[1], STDERR_FILENO);
    io::lock_file lock;
    for (int i = 0; i < 3; ++i) lock.hold(folder / "lock", folder.path, "advice");
    ::_exit(lock || fs::exists(folder / "lock") ? 1 : 0);
  }
  ::close(ends[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  std::string words(1000, '\0');
  words.resize(std::size_t(std::max(::read(ends[0], words.data(), words.size()), ssize_t{0})));  // all lines are in the pipe
  ::close(ends[0]);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    MESSAGE("system calls cannot be filtered here");
    return;
  }
  CHECK(status == 0);
  CHECK(words == folder.path.string() + " cannot be locked (No locks available): two trainings could use it at once\n");
}
