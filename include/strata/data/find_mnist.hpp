// Looks for the files of MNIST, and downloads them once if they are nowhere.
#pragma once
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <ostream>
#include <span>
#include <strata/base/atomic_file.hpp>
#include <strata/base/error.hpp>
#include <strata/data/idx.hpp>
#include <strata/data/mnist.hpp>
#include <strata/data/sha256.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

extern char** environ;  // POSIX, but in no header

namespace strata::data {

/// Where to look for MNIST.
struct mnist_search {
  std::filesystem::path directory = {};  // if not empty, look nowhere else
  bool download = true;                  // if it is not on this machine
  std::chrono::seconds time_limit{60};   // of the download of one file; connecting may take 5 s of it
  std::ostream* log = nullptr;           // where it looked, and what failed
};

namespace detail {
/// What has to be there: name, size and SHA-256 of the IDX data (a .gz differs with the program that made it).
struct known_file {
  std::string name;
  std::size_t bytes;
  std::string sha256;
};

inline std::vector<known_file> mnist_files() {
  return {{"train-images-idx3-ubyte", 47'040'016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
          {"train-labels-idx1-ubyte", 60'008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
          {"t10k-images-idx3-ubyte", 7'840'016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
          {"t10k-labels-idx1-ubyte", 10'008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"}};
}
inline std::vector<std::string> mnist_mirrors() {
  return {"https://storage.googleapis.com/cvdf-datasets/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"};
}

/// Runs a program of the PATH without a shell and waits for it. Its exit status, or an error of the system.
inline std::pair<int, std::string> run_program(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (const int code = posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ); code != 0)
    return {-1, words[0] + " cannot be run: " + std::strerror(code)};
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return {-1, words[0] + ": " + std::strerror(errno)};
  if (WIFEXITED(status)) return {WEXITSTATUS(status), words[0] + " ended with status " + std::to_string(WEXITSTATUS(status))};
  return {-1, words[0] + " was ended by signal " + std::to_string(WTERMSIG(status))};
}

/// Why the file is not the known one; empty if it is.
inline std::string difference(const std::filesystem::path& path, const known_file& known) {
  try {
    unzipped_file file(path);
    std::vector<std::uint8_t> bytes(known.bytes + 1);
    const std::size_t n = file.read_some(bytes.data(), bytes.size());
    if (n != known.bytes)
      return "expected " + std::to_string(known.bytes) + " bytes, got " + (n < known.bytes ? std::to_string(n) : "more");
    sha256 sum;
    sum.update(std::span(bytes).first(n));
    if (const std::string hex = sum.hex(); hex != known.sha256) return "expected SHA-256 " + known.sha256 + ", got " + hex;
    return "";
  } catch (const error& e) {
    return e.what();
  }
}

/// A new file of its own name, deleted at the end.
class scratch_file {
 public:
  explicit scratch_file(const std::filesystem::path& directory) : path_((directory / ".download-XXXXXX").string()) {
    const int file = mkstemp(path_.data());
    if (file < 0) throw error("cannot write into " + directory.string() + ": " + std::strerror(errno));
    close(file);
  }
  scratch_file(const scratch_file&) = delete;
  scratch_file& operator=(const scratch_file&) = delete;
  ~scratch_file() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }
  std::string contents() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

template <class Log>
bool download(const known_file& known, std::span<const std::string> mirrors, const std::filesystem::path& directory,
              std::chrono::seconds time_limit, const Log& log) {
  for (const std::string& mirror : mirrors) {
    const std::string url = mirror + known.name + ".gz";
    const scratch_file file(directory);
    const auto [status, text] =
        run_program({"curl", "--silent", "--fail", "--location", "--proto", "=https", "--connect-timeout", "5", "--max-time",
                     std::to_string(time_limit.count()), "--output", file.path(), "--", url});
    if (status != 0) {
      log(url + ": " + text);
      continue;
    }
    if (const std::string why = difference(file.path(), known); !why.empty()) {
      log(url + ": not the file that was expected: " + why);
      continue;
    }
    write_file_atomically(directory / (known.name + ".gz"), file.contents());
    return true;
  }
  return false;
}

inline std::optional<std::filesystem::path> find_files(const mnist_search& search, const std::vector<known_file>& files,
                                                       const std::vector<std::string>& mirrors) {
  namespace fs = std::filesystem;
  const auto log = [&](const std::string& line) {
    if (search.log != nullptr) *search.log << "find_mnist: " << line << '\n';
  };
  const auto complete = [&](const fs::path& directory) {
    for (const known_file& f : files) {
      if (raw_or_zipped(directory, f.name)) continue;
      log(directory.string() + " has no " + f.name + " and no " + f.name + ".gz");
      return false;
    }
    return true;
  };
  const auto variable = [](const char* name) -> fs::path {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };

  if (!search.directory.empty()) return complete(search.directory) ? std::optional(search.directory) : std::nullopt;
  if (const fs::path directory = variable("STRATA_DATA"); !directory.empty())
    for (const fs::path& d : {directory, directory / "mnist"})
      if (complete(d)) return d;
  fs::path cache = variable("XDG_CACHE_HOME");
  if (!cache.is_absolute()) {  // the XDG specification says to ignore a relative one
    if (variable("HOME").empty()) {
      log("no place for a cache: neither XDG_CACHE_HOME nor HOME is set");
      return std::nullopt;
    }
    cache = variable("HOME") / ".cache";
  }
  cache = cache / "strata" / "mnist";
  if (complete(cache)) return cache;
  if (!search.download) return std::nullopt;
  try {
    fs::create_directories(cache);
    for (const known_file& f : files)
      if (!raw_or_zipped(cache, f.name) && !download(f, mirrors, cache, search.time_limit, log)) return std::nullopt;
  } catch (const std::exception& e) {
    log(e.what());
    return std::nullopt;
  }
  return cache;
}
}  // namespace detail

/// The directory with the four files of MNIST: search.directory, or else the first of $STRATA_DATA, $STRATA_DATA/mnist,
/// ${XDG_CACHE_HOME:-~/.cache}/strata/mnist that has them, or else the last one after they were downloaded into it with curl and
/// their SHA-256 was verified. std::nullopt if all that fails; search.log hears why.
inline std::optional<std::filesystem::path> find_mnist(const mnist_search& search = {}) {
  return detail::find_files(search, detail::mnist_files(), detail::mnist_mirrors());
}

}  // namespace strata::data
