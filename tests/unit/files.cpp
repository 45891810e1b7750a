// What every system does with files, through io/os.hpp: names, bytes, places, locks, and files that are complete or absent.
#include <doctest/doctest.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <strata/io/atomic_file.hpp>
#include <strata/io/file_window.hpp>
#include <strata/io/lock_file.hpp>
#include <strata/io/mapped_file.hpp>
#include <strata/io/open_file.hpp>
#include <strata/io/os.hpp>
#include <strata/io/safetensors.hpp>
#include <strata/io/unzipped_file.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::test;
namespace fs = std::filesystem;

namespace {
using set = std::set<std::string>;
set names_in(const fs::path& folder) {
  set names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}
constexpr auto kinds = {io::unfinished_file::unnamed, io::unfinished_file::named};
/// Line ends of two systems, and what ends a text on one of them.
const std::string content = std::string("a\nb\r\nc\x1a") + '\0' + "d\n";
}  // namespace

TEST_CASE("names and folders may have any letters, and errors show them") {
  const scratch_folder outer("files");
  const fs::path folder = outer.path / u8"Größe-數據";
  fs::create_directory(folder);
  const fs::path file = folder / u8"Gewicht-重量.bin", other = folder / u8"другой";
  io::write_file_atomically(file, content);
  CHECK(io::content_of(file) == content);
  CHECK(names_in(folder) == set{"Gewicht-重量.bin"});
  const io::mapped_file mapped(file);
  CHECK(std::string(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()) == content);
  CHECK(error_of([&] { (void)io::content_of(other); }) == "cannot read " + other.string() + ": No such file or directory");
  CHECK(error_of([&] { io::write_file_atomically(folder / u8"нет" / "a", ""); }) ==
        "cannot write " + (folder / u8"нет" / "a").string() + ": No such file or directory");
  CHECK(error_of([&] { (void)io::content_of(folder); }) == "cannot read " + folder.string() + ": Is a directory");
  CHECK(error_of([&] { io::write_file_atomically(folder, ""); }) == "cannot write " + folder.string() + ": Is a directory");
  const std::vector<float> numbers{1, 2, 3};
  write_safetensors(other, std::vector{safetensor::of("веса", {3}, numbers)});
  CHECK(safetensors_file(other).read<float>("веса") == numbers);
}

TEST_CASE("bytes are read as they were written") {
  const scratch_folder folder("files");
  for (const auto kind : kinds) {
    io::atomic_file file(folder / "a", kind);
    file.write(content);
    file.commit();
    CHECK(io::content_of(folder / "a") == content);
    std::string read(content.size(), ' ');
    io::unzipped_file(folder / "a").read(read.data(), read.size());
    CHECK(read == content);
    io::file_window window;
    window.open(folder / "a", io::compression::none);
    CHECK(window.peek(100).size() == content.size());
  }
}

TEST_CASE("a read from a byte on does not move the place of other reads; writes at the end go there") {
  const scratch_folder folder("files");
  const io::file_descriptor file = io::open_own(folder / "a", io::os::at_end);
  CHECK(io::os::write(file.number(), "0123", 4) == 4);
  CHECK(io::os::write(file.number(), "4567", 4) == 4);
  const io::file_descriptor reader = io::open_to_read(folder / "a");
  char two[2] = {}, many[100] = {};
  CHECK(io::os::read(reader.number(), two, 2) == 2);
  CHECK(io::os::read_at(reader.number(), two, 2, 6) == 2);
  CHECK(std::string(two, 2) == "67");
  CHECK(io::os::read_at(reader.number(), many, sizeof many, 8) == 0);
  CHECK(io::os::read(reader.number(), many, sizeof many) == 6);
  CHECK(std::string(many) == "234567");
  CHECK(io::os::read(reader.number(), many, sizeof many) == 0);
  const io::file_descriptor again = io::open_own(folder / "a");
  CHECK(io::os::write_at(again.number(), "AB", 2, 3) == 2);
  CHECK(io::os::flush(again.number()));
  CHECK(io::content_of(folder / "a") == "012AB567");
  CHECK(io::os::make_empty(again.number()));
  CHECK(io::content_of(folder / "a").empty());
}

TEST_CASE("a file is replaced as a whole, or stays as it was") {
  for (const auto kind : kinds) {
    const scratch_folder folder("files");
    io::write_file_atomically(folder / "a", "old");
    {
      io::atomic_file never(folder / "a", kind);
      never.write("not committed");
    }
    CHECK(io::content_of(folder / "a") == "old");
    io::atomic_file file(folder / "a", kind);
    file.write("header, body");
    file.write_at(0, std::as_bytes(std::span("HEADER", 6)));
    CHECK(io::content_of(folder / "a") == "old");
    file.commit();
    CHECK(io::content_of(folder / "a") == "HEADER, body");
    CHECK(names_in(folder.path) == set{"a"});
  }
}

TEST_CASE("what a process that has ended left is removed, and nothing else") {
  const scratch_folder folder("files-left");
  folder.write(".strata-4711-12", "of a process that has ended");
  folder.write(".strata-notes", "of the user");
  io::atomic_file mine(folder / "a", io::unfinished_file::named);
  mine.write("mine");
  io::detail::remove_stale_temporaries(folder.path / ".");  // spelt in another way: not seen yet
  CHECK(names_in(folder.path).size() == 2);
  mine.commit();
  CHECK(names_in(folder.path) == set{"a", ".strata-notes"});
  CHECK(io::content_of(folder / "a") == "mine");
}

TEST_CASE("one at a time holds a lock, and others can read who does") {
  const scratch_folder folder("files");
  const fs::path file = folder / "lock";
  const auto patience = std::chrono::milliseconds(50);
  {
    io::lock_file first, second;
    first.hold(file, folder.path, "wait", patience);
    CHECK(error_of([&] { second.hold(file, folder.path, "wait", patience); }) == folder.path.string() + " is in use by process " +
                                                                                     std::to_string(io::os::process_id()) +
                                                                                     " on " + io::os::host_name() + ": wait");
    CHECK_FALSE(second);
    first.release();
    CHECK_FALSE(fs::exists(file));
    second.hold(file, folder.path, "wait", patience);
    CHECK(second);
  }
  CHECK_FALSE(fs::exists(file));
}

TEST_CASE("the state of a file says which file it is") {
  const scratch_folder folder("files");
  folder.write("a", "12345");
  folder.write("b", "");
  io::os::file_status a, b, opened, at_folder;
  const io::file_descriptor file = io::open_to_read(folder / "a");
  REQUIRE(io::os::get_status(folder / "a", a));
  REQUIRE(io::os::get_status_of_target(folder / "b", b));
  REQUIRE(io::os::get_status(file.number(), opened));
  REQUIRE(io::os::get_status(folder.path, at_folder));
  CHECK(a.type == io::os::file_type::regular);
  CHECK(at_folder.type == io::os::file_type::folder);
  CHECK(a.size == 5);
  CHECK(a.names == 1);
  CHECK(a.number == opened.number);
  CHECK(a.device == opened.device);
  CHECK(a.modified == opened.modified);
  CHECK(a.number != b.number);
  CHECK_FALSE(io::os::get_status(folder / "no", a));
  CHECK(errno == ENOENT);
}

namespace {
volatile std::sig_atomic_t notes = 0;
}
TEST_CASE("a signal is watched until the former state is restored") {
  notes = 0;
  const auto before = std::signal(SIGTERM, SIG_DFL);
  if (const auto restore = io::os::watch_signal(SIGTERM, [](int) { notes = notes + 1; }, false)) {
    std::raise(SIGTERM);
    std::raise(SIGTERM);
    restore();
  }
  CHECK(notes == 2);
  CHECK((std::signal(SIGTERM, SIG_IGN) == SIG_DFL));
  CHECK_FALSE(io::os::watch_signal(SIGTERM, [](int) {}, false));
  std::signal(SIGTERM, before);
}

TEST_CASE("a program is run without a shell, with words that have blanks") {
  const bool has_cmd = std::getenv("COMSPEC") != nullptr;  // Windows
  const auto run = [&](const std::string& command) {
    return io::os::run_program(has_cmd ? std::vector<std::string>{"cmd.exe", "/c", command}
                                       : std::vector<std::string>{"sh", "-c", command});
  };
  CHECK(run("exit 3").first == 3);
  CHECK(run("exit 0").second == std::string(has_cmd ? "cmd.exe" : "sh") + " ended with status 0");
  CHECK(io::os::run_program({"strata-no-such-program"}).second ==
        "strata-no-such-program cannot be run: No such file or directory");
}
