// Reads all weights of a Keras file in a process with limits, before another program loads it: check_keras_file model.keras &&
// program
// needs: hdf5 libzip
// takes: 1 s
#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <span>
#include <strata/base/error.hpp>
#include <strata/interop/hdf5.hpp>
#include <strata/interop/keras/keras_files.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace {

constexpr std::string_view usage =
    "check_keras_file FILE: reads each group, array and text of a .keras, .weights.h5 or .h5 file from an unknown source. The "
    "status\n"
    "is 0 if libhdf5 reads all of it. A damaged file is an error, or ends this process in place of the program that loads it: "
    "libhdf5\n"
    "may crash on it, loop, or allocate too much. The limits are 10 seconds of processor time and one for each megabyte of the "
    "file,\n"
    "and 16 times the size of the file and 256 MB of memory.\n";

strata::hdf5_file weights_in(const std::filesystem::path& path) {
  if (strata::io::kind_of_file(path) != strata::io::file_kind::zip) return strata::hdf5_file(path);
  const strata::io::zip_bytes weights = strata::io::zip_archive(path, "a .keras archive").read(strata::keras::weights_member);
  return {path.string(), {weights.bytes.begin(), weights.bytes.end()}};
}

/// Returns the number of arrays below a group.
int read_all(const strata::hdf5_file& file, const std::string& group, int depth) {
  if (depth > 32) file.fail(group, "its groups are nested too deeply");
  int arrays = 0;
  for (const char* attribute : {"model_config", "training_config", "layer_names", "weight_names", "keras_version"})
    if (file.has_attribute(group, attribute)) (void)file.texts(group, attribute);
  for (const std::string& name : file.names_in(group)) {
    const std::string path = group.empty() ? name : group + "/" + name;
    if (!file.is_array(path)) {
      arrays += read_all(file, path, depth + 1);
    } else if (const auto array = file.find_array(path); array && (array->is_float || array->is_whole)) {
      std::vector<double> values(std::size_t(array->count()));
      file.read(path, std::span(values));
      ++arrays;
    }
  }
  return arrays;
}

void limit(int what, rlim_t to) {
  const rlimit limits{to, to};
  setrlimit(what, &limits);
}

/// Ends the process at once: libhdf5 prints a complaint of its own when it closes after a damaged file.
[[noreturn]] void end(int status) {
  std::cout.flush();
  std::_Exit(status);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || argv[1] == std::string_view("--help")) {
    std::cout << usage;
    return argc == 2 ? 0 : 1;
  }
  const std::string path = argv[1];
  std::error_code unreadable;
  const std::uintmax_t bytes = std::filesystem::file_size(path, unreadable);
  if (!unreadable) {
    limit(RLIMIT_CPU, 10 + bytes / 1'000'000);
    limit(RLIMIT_AS, 16 * bytes + (rlim_t{256} << 20));
    limit(RLIMIT_CORE, 0);
  }
  try {
    std::cout << path << ": " << read_all(weights_in(path), "", 0) << " arrays\n";
  } catch (const std::bad_alloc&) {
    std::cerr << path << ": needs too much memory\n";
    end(1);
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    end(1);
  }
  end(0);
}
