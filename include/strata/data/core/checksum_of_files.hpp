// A checksum of the files of a data set, which does not read them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <strata/base/hash.hpp>
#include <strata/data/core/checksum.hpp>
#include <system_error>

namespace strata::data::detail {

/// The checksum of the names of files, without their folders, and, with `with_sizes`, of the sizes of some of them.
template <class Files>
std::uint64_t checksum_of_files(const Files& files, bool with_sizes) {
  strata::detail::fnv1a sum;
  for (const auto& file : files) {
    sum.add(std::filesystem::path(file).filename().string()), sum.add(std::uint64_t{0});
  }
  if (with_sizes)
    each_of_some(files.size(), 100, [&](std::size_t k) {
      std::error_code unknown;
      sum.add(std::uint64_t{std::filesystem::file_size(std::filesystem::path(files[k]), unknown)});
    });
  return sum.value();
}

}  // namespace strata::data::detail
