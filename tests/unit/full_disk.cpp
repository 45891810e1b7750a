// A disk that is really full: a failed write leaves the last good file unchanged, and the error names the file.
#include <doctest/doctest.h>

#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <strata/data.hpp>
#include <strata/data/core/position_file.hpp>
#include <strata/data/formats/npy.hpp>
#include <strata/data/formats/tf_record_writer.hpp>
#include <strata/data/views/cache.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <strata/train/weights_file.hpp>
#include <string>
#include <utility>
#include <vector>

#include "error_of.hpp"
#include "scratch_folder.hpp"

using namespace strata;
using namespace strata::test;
namespace fs = std::filesystem;

namespace {

void write_text(const char* file, const std::string& text) { std::ofstream(file) << text; }

/// Mounts a file system of 2 MB that only this process sees and that ends with it. Returns false if that is not permitted.
bool mount_small_disk(const fs::path& folder) {
  const unsigned user = ::geteuid(), group = ::getegid();
  if (::unshare(CLONE_NEWNS | (user == 0 ? 0 : CLONE_NEWUSER)) != 0) return false;
  if (user != 0) {
    write_text("/proc/self/setgroups", "deny");
    write_text("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
    write_text("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
  }
  return ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", folder.c_str(), "tmpfs", 0, "size=2m") == 0;
}

using contents = std::map<fs::path, std::string>;
contents files_of(const fs::path& folder) {
  contents all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    all[entry.path()] = {std::istreambuf_iterator<char>(in), {}};
  }
  return all;
}

/// Occupies all but `left` bytes of the disk during its lifetime.
class ballast {
  fs::path file_;

 public:
  ballast(const fs::path& folder, std::size_t left) : file_(folder / "ballast") {
    struct statvfs facts{};
    ::statvfs(folder.c_str(), &facts);
    const std::string block(facts.f_bsize, 'b');
    std::ofstream out(file_, std::ios::binary);
    for (std::size_t free = facts.f_bavail; free > left / facts.f_bsize; --free) out << block;
  }
  ballast(const ballast&) = delete;
  ballast& operator=(const ballast&) = delete;
  ~ballast() { fs::remove(file_); }
};

/// Describes what is wrong after `write` has failed; empty if nothing is. `write` writes the same files each time.
std::string problems_of(const fs::path& folder, const std::function<void()>& write) {
  write();
  const contents before = files_of(folder);
  std::size_t largest = 0;
  for (const auto& [path, text] : before) largest = std::max(largest, text.size());
  for (const std::size_t left : {std::size_t(0), largest / 3, 2 * largest / 3}) {
    const std::string when = " (" + std::to_string(left) + " bytes left for " + std::to_string(largest) + ")";
    std::string words;
    {
      const ballast most(folder, left);
      words = error_of(write);
    }
    if (!contains(words, "cannot write " + folder.string() + '/') || !contains(words, "No space left on device"))
      return words + when;
    if (files_of(folder) != before) return "the files have changed" + when;
  }
  write();
  return "";
}

/// Calls problems_of in a process of its own, on a small disk.
std::string problems_on_full_disk(const std::function<std::function<void()>(const fs::path&)>& writer) {
  const scratch_folder folder("full-disk");
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::string words = "skipped";
    try {
      if (mount_small_disk(folder.path)) words = problems_of(folder.path, writer(folder.path));
    } catch (const std::exception& e) {
      words = std::string("threw ") + e.what();
    }
    ::_exit(::write(ends[1], words.data(), words.size()) < 0);
  }
  ::close(ends[1]);
  std::string words;
  std::array<char, 1000> some{};
  for (ssize_t n = 0; (n = ::read(ends[0], some.data(), some.size())) > 0;) words.append(some.data(), std::size_t(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (words == "skipped") {
    MESSAGE("mounting a file system is not permitted here");
    return "";
  }
  return status == 0 ? words : words + ", ended with status " + std::to_string(status);
}

using wide = sequential<input<20>, dense<1000, relu>, dense<3, softmax>>;
auto numbers(std::size_t count) {
  return data::from_tensor_slices(data::array<float, shape{20}>(std::vector<float>(20 * count, 0.5f)),
                                  std::vector<std::int32_t>(count, 1));
}
auto make_trainer() { return trainer{wide{}, adam{}, sparse_categorical_crossentropy{}, one_device{{.threads = 1}}}; }

}  // namespace

TEST_CASE("a full disk: weights") {
  CHECK(problems_on_full_disk([](const fs::path& folder) {
          return [folder, model = std::make_shared<decltype(make_trainer())>(make_trainer())] {
            model->save_weights(folder / "weights.safetensors");
          };
        }) == "");
}

TEST_CASE("a full disk: snapshots") {
  CHECK(problems_on_full_disk([](const fs::path& folder) {
          return [folder, count = std::make_shared<int>(0)] {
            auto model = make_trainer();  // trains for two more epochs each time
            model.fit(numbers(40) | data::batch<8>, epochs(*count += 2), verbose::off,
                      backup_and_restore{folder / "backup", {.delete_checkpoint = false}});
          };
        }) == "");
}

TEST_CASE("a full disk: a cache") {
  CHECK(problems_on_full_disk([](const fs::path& folder) {
          // An existing cache would be read, so each cache is a new one, beside a file that must not change.
          return [folder, count = std::make_shared<int>(0)] {
            if ((*count)++ == 0) io::write_file_atomically(folder / "neighbour", std::string(100'000, 'n'));
            const fs::path file = folder / "cache";
            (void)(numbers(1'200) | data::cache(file));
            fs::remove(file);
          };
        }) == "");
}

TEST_CASE("a full disk: records, arrays, positions") {
  CHECK(problems_on_full_disk([](const fs::path& folder) {
          return [folder] {
            data::tf_record_writer writer(folder / "records");
            for (int i = 0; i < 100; ++i) writer.write(std::string(1'000, char('a' + i % 26)));
            writer.close();
          };
        }) == "");
  CHECK(problems_on_full_disk([](const fs::path& folder) {
          return [folder, values = std::vector<float>(30'000, 1.f)] { data::save_npy(folder / "array.npy", values); };
        }) == "");
  CHECK(problems_on_full_disk([](const fs::path& folder) {
          return [folder] { data::save_position(numbers(40) | data::batch<8>, folder / "position"); };
        }) == "");
}
