// Definitions of find_mnist.hpp.
#pragma once
#include <strata/base/exceptions.hpp>

namespace strata::data::detail {

STRATA_FUNCTION std::vector<known_file> mnist_files() {
  return {{"train-images-idx3-ubyte", 47'040'016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
          {"train-labels-idx1-ubyte", 60'008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
          {"t10k-images-idx3-ubyte", 7'840'016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
          {"t10k-labels-idx1-ubyte", 10'008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"}};
}

STRATA_FUNCTION std::vector<std::string> mnist_mirrors() {
  return {"https://storage.googleapis.com/cvdf-datasets/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"};
}

STRATA_FUNCTION std::string difference(const std::filesystem::path& path, const known_file& known) {
  STRATA_TRY {
    io::unzipped_file file(path);
    std::vector<std::uint8_t> bytes(known.bytes + 1);
    const std::size_t n = file.read_some(bytes.data(), bytes.size());
    if (n != known.bytes)
      return strata::detail::text_of({"expected ", known.bytes, " bytes, got ", n < known.bytes ? std::to_string(n) : "more"});
    io::sha256 sum;
    sum.update(std::span(bytes).first(n));
    if (const std::string hex = sum.hex(); hex != known.sha256)
      return strata::detail::text_of({"expected SHA-256 ", known.sha256, ", got ", hex});
    return "";
  }
  STRATA_CATCH(const strata_error& e) { return e.what(); }
}

STRATA_FUNCTION std::optional<std::filesystem::path> find_files(const mnist_search& search, const std::vector<known_file>& files,
                                                                const std::vector<std::string>& mirrors) {
  namespace fs = std::filesystem;
  const auto log = [&](const std::string& line) {
    if (search.log != nullptr) *search.log << "find_mnist: " << strata::detail::visible(line) << '\n';
  };
  const auto complete = [&](const fs::path& directory) {
    for (const known_file& f : files) {
      if (raw_or_zipped(directory, f.name)) continue;
      log(strata::detail::text_of({directory.string(), " has no ", f.name, " and no ", f.name, ".gz"}));
      return false;
    }
    return true;
  };

  if (!search.directory.empty()) return complete(search.directory) ? std::optional(search.directory) : std::nullopt;
  if (const fs::path directory = io::os::path_in_environment("STRATA_DATA"); !directory.empty())
    for (const fs::path& d : {directory, directory / "mnist"})
      if (complete(d)) return d;
  fs::path cache = strata::detail::cache_folder();
  if (cache.empty()) {
    log("no place for a cache: neither XDG_CACHE_HOME nor HOME is set");
    return std::nullopt;
  }
  cache = cache / "strata" / "mnist";
  if (complete(cache)) return cache;
  if (!search.download) return std::nullopt;
  STRATA_TRY {
    std::error_code failure;
    if (fs::create_directories(cache, failure); failure) {
      log(cache.string() + ": " + failure.message());
      return std::nullopt;
    }
    for (const known_file& f : files)
      if (!raw_or_zipped(cache, f.name) && !download(f, mirrors, cache, search.time_limit, log)) return std::nullopt;
  }
  STRATA_CATCH(const std::exception& e) {
    log(e.what());
    return std::nullopt;
  }
  return cache;
}

}  // namespace strata::data::detail

namespace strata::data {

STRATA_FUNCTION std::optional<std::filesystem::path> find_mnist(const mnist_search& search) {
  return detail::find_files(search, detail::mnist_files(), detail::mnist_mirrors());
}

}  // namespace strata::data
