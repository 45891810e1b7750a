// Searches for the files of MNIST, and downloads them once if they are missing.
#pragma once
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <ostream>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/linkage.hpp>
#include <strata/base/text.hpp>
#include <strata/data/formats/idx.hpp>
#include <strata/data/sets/mnist.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/io/cache_folder.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/file_error.hpp>
#include <strata/io/os.hpp>
#include <strata/io/sha256.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace strata::data {

/// Options of the search for MNIST.
struct mnist_search {
  std::filesystem::path directory = {};  // if not empty, the only place
  bool download = true;                  // download it if it is not found
  std::chrono::seconds time_limit{60};   // for the download of one file, of which connecting may take 5 s
  std::ostream* log = nullptr;           // receives the places and failures
};

namespace detail {
/// Name, size and SHA-256 of the IDX data of a file (those of a .gz file depend on the program that compressed it).
struct known_file {
  std::string name;
  std::size_t bytes;
  std::string sha256;
};

std::vector<known_file> mnist_files();
std::vector<std::string> mnist_mirrors();

/// Describes how the file differs from the known one; empty if it does not.
std::string difference(const std::filesystem::path& path, const known_file& known);

/// A new file with a unique name, which the destructor deletes.
class scratch_file {
 public:
  explicit scratch_file(const std::filesystem::path& directory) {
    for (int number = 0;; ++number) {
      path_ = directory / strata::detail::text_of({".download-", io::os::process_id(), '-', number});
      const io::file_descriptor file(io::os::open(path_, io::os::to_write | io::os::or_made | io::os::must_be_new));
      if (file) {
        io::os::set_permissions(file.number(), 0600);
        return;
      }
      if (errno != EEXIST) io::fail_on_file("write into", directory, errno);
    }
  }
  scratch_file(const scratch_file&) = delete;
  scratch_file& operator=(const scratch_file&) = delete;
  ~scratch_file() { io::os::remove(path_); }
  const std::filesystem::path& path() const { return path_; }
  std::string contents() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::filesystem::path path_;
};

template <class Log>
bool download(const known_file& known, std::span<const std::string> mirrors, const std::filesystem::path& directory,
              std::chrono::seconds time_limit, const Log& log) {
  for (const std::string& mirror : mirrors) {
    const std::string url = strata::detail::text_of({mirror, known.name, ".gz"});
    const scratch_file file(directory);
    const auto [status, text] =
        io::os::run_program({"curl", "--silent", "--fail", "--location", "--proto", "=https", "--connect-timeout", "5",
                             "--max-time", std::to_string(time_limit.count()), "--output", file.path().string(), "--", url});
    if (status != 0) {
      log(strata::detail::text_of({url, ": ", text}));
      continue;
    }
    if (const std::string why = difference(file.path(), known); !why.empty()) {
      log(strata::detail::text_of({url, ": not the file that was expected: ", why}));
      continue;
    }
    io::write_file_atomically(directory / strata::detail::text_of({known.name, ".gz"}), file.contents());
    return true;
  }
  return false;
}

std::optional<std::filesystem::path> find_files(const mnist_search& search, const std::vector<known_file>& files,
                                                const std::vector<std::string>& mirrors);
}  // namespace detail

/// The directory with the four files of MNIST: search.directory, or else the first of $STRATA_DATA, $STRATA_DATA/mnist,
/// $XDG_CACHE_HOME/strata/mnist (~/.cache/strata/mnist if XDG_CACHE_HOME is not an absolute path) that has them. If none has,
/// downloads them into the last one with curl, and verifies their SHA-256. std::nullopt if that fails; search.log receives the
/// reason.
std::optional<std::filesystem::path> find_mnist(const mnist_search& search = {});

}  // namespace strata::data

#if STRATA_DEFINES
#include <strata/data/sets/find_mnist.ipp>
#endif
