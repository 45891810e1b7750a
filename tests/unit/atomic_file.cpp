// Files that are complete or absent, whatever happens to the process that writes them: killed, out of space, beyond its limit.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <set>
#include <strata/io/atomic_file.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/temporary_files.hpp>
#include <string>

#include "error_of.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::test;
namespace fs = std::filesystem;

namespace {
std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}
std::string text(const scratch_folder& folder, const std::string& name) {
  const bytes all = folder.read(name);
  return {all.begin(), all.end()};
}
/// The status of a process that does this and nothing else.
int status_of(const std::function<void()>& f) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      f();
    } catch (...) {
      ::_exit(2);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}
bool was_killed(int status, int signal) { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }
bool file_system_has_unnamed_files(const fs::path& folder) {
  return bool(io::file_descriptor(::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600)));
}
using set = std::set<std::string>;
constexpr auto kinds = {io::unfinished_file::unnamed, io::unfinished_file::named};
}  // namespace

TEST_CASE("a file is written, replaced, and keeps its permissions") {
  for (const auto kind : kinds) {
    const scratch_folder folder("atomic");
    for (const std::string content : {"first", "second, which is longer", "3"}) {
      io::atomic_file file(folder / "a", kind);
      file.write(content);
      file.commit();
      CHECK(text(folder, "a") == content);
      fs::permissions(folder / "a", fs::perms(0640));
    }
    CHECK(fs::status(folder / "a").permissions() == fs::perms(0640));
    {
      io::atomic_file never(folder / "a", kind);
      never.write("not committed");
    }
    CHECK(text(folder, "a") == "3");
    io::atomic_file file(folder / "a", kind);
    file.write("header, body");
    file.write_at(0, std::as_bytes(std::span("HEADER", 6)));
    file.commit();
    CHECK(text(folder, "a") == "HEADER, body");
    CHECK(names_in(folder.path) == set{"a"});
  }
}

TEST_CASE("what is no regular file is not replaced") {
  const scratch_folder folder("atomic-file");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  fs::create_symlink("/dev/null", folder / "null");
  for (const auto& [name, called] : {std::pair{"pipe", (folder / "pipe").string()}, {"null", std::string("/dev/null")}})
    CHECK(error_of([&, file = folder / name] { io::write_file_atomically(file, "text"); }) ==
          "cannot write " + called + ": not a regular file");
  CHECK(fs::is_fifo(folder / "pipe"));
}

TEST_CASE("a file is written to where a symbolic link leads, also if nothing is there yet") {
  const scratch_folder folder("atomic-link");
  fs::create_directory(folder / "disk");
  fs::create_symlink("disk/a", folder / "link");
  fs::create_symlink("link", folder / "to-link");
  for (const std::string content : {"first", "second"}) {
    io::write_file_atomically(folder / "to-link", content);
    CHECK(fs::is_symlink(folder / "to-link"));
    CHECK(fs::is_symlink(folder / "link"));
    CHECK(text(folder, "disk/a") == content);
  }
  fs::create_symlink("loop", folder / "loop");
  CHECK(error_of([&] { io::write_file_atomically(folder / "loop", "text"); }).find("loop") != std::string::npos);
  CHECK(fs::is_symlink(folder / "loop"));
}

TEST_CASE("a process that is killed while it writes leaves nothing, or what the next one removes") {
  for (const auto kind : kinds) {
    const scratch_folder folder("atomic");
    io::write_file_atomically(folder / "a", "old");
    CHECK(was_killed(status_of([&] {
                       io::atomic_file file(folder / "a", kind);
                       file.write(std::string(100'000, 'x'));
                       ::raise(SIGKILL);
                     }),
                     SIGKILL));
    CHECK(text(folder, "a") == "old");
    if (kind == io::unfinished_file::named)
      CHECK(names_in(folder.path).size() == 2);
    else if (file_system_has_unnamed_files(folder.path))
      CHECK(names_in(folder.path) == set{"a"});
    CHECK(status_of([&] { io::write_file_atomically(folder / "b", "new"); }) == 0);
    CHECK(names_in(folder.path) == set{"a", "b"});
  }
}

TEST_CASE("what a living process writes stays") {
  const scratch_folder folder("atomic");
  io::atomic_file mine(folder / "a", io::unfinished_file::named);
  mine.write("mine");
  folder.write(".strata-1-0", "of a process that has ended");
  CHECK(status_of([&] {
          io::detail::remove_stale_temporaries(folder.path / ".");  // spelt in another way: not seen yet
          io::write_file_atomically(folder / "b", "new");
        }) == 0);
  CHECK(names_in(folder.path).size() == 2);
  mine.commit();
  CHECK(names_in(folder.path) == set{"a", "b"});
  CHECK(text(folder, "a") == "mine");
}

TEST_CASE("only files that no process has locked and that have such a name are removed") {
  const scratch_folder folder("atomic");
  const set others{".strata-notes",    ".strata-settings.json", ".strata-1",  ".strata-1-", ".strata--1",
                   ".strata-1-2.json", ".strata-1-2-3",         "strata-1-2", ".strata-1-x"};
  for (const std::string& name : others) folder.write(name, "of the user");
  set all = others;
  folder.write(".strata-4711-12", "of a process that has ended");
  fs::create_directory(folder / ".strata-1-2");
  fs::create_symlink("strata-1-2", folder / ".strata-1-3");
  REQUIRE(::mkfifo((folder / ".strata-1-4").c_str(), 0600) == 0);
  all.insert({".strata-1-2", ".strata-1-3", ".strata-1-4"});
  io::detail::remove_stale_temporaries(folder.path / ".");  // spelt in another way: not seen yet
  CHECK(names_in(folder.path) == all);
  CHECK(io::detail::is_temporary_name(io::detail::temporary_name(::getpid(), 0)));
}

TEST_CASE("a file beyond the limit of the process is one error, and no signal") {
  for (const auto kind : kinds) {
    const scratch_folder folder("atomic");
    io::write_file_atomically(folder / "a", "old");
    const int status = status_of([&] {
      ::signal(SIGXFSZ, SIG_DFL);
      const rlimit little{1000, 1000};
      ::setrlimit(RLIMIT_FSIZE, &little);
      const std::string words = error_of([&] {
        io::atomic_file file(folder / "a", kind);
        file.write(std::string(2000, 'x'));
        file.commit();
      });
      sigset_t pending, blocked;
      sigpending(&pending);
      ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
      const bool as_before = sigismember(&pending, SIGXFSZ) == 0 && sigismember(&blocked, SIGXFSZ) == 0;
      ::_exit(words == "cannot write " + (folder / "a").string() + ": File too large" && as_before ? 0 : 1);
    });
    CHECK(status == 0);
    CHECK(text(folder, "a") == "old");
    CHECK(names_in(folder.path) == set{"a"});
  }
}
