// The files of a data set.
#pragma once
#include <concepts>
#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <ranges>
#include <strata/base/error.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::data {

/// One file or several, in the order in which they are read: "a", {"a", "b"}, or a range of paths or strings.
class file_list {
 public:
  template <std::convertible_to<std::filesystem::path> Path>
  file_list(Path&& file) : paths_{std::filesystem::path(std::forward<Path>(file))} {}
  file_list(std::initializer_list<std::filesystem::path> files) : paths_(files) {}
  template <std::ranges::input_range R>
    requires(!std::convertible_to<R, std::filesystem::path> &&
             std::convertible_to<std::ranges::range_reference_t<R>, std::filesystem::path>)
  file_list(R&& files) {
    for (auto&& file : files) paths_.emplace_back(std::forward<decltype(file)>(file));
  }

  auto begin() const { return paths_.begin(); }
  auto end() const { return paths_.end(); }
  std::size_t size() const { return paths_.size(); }
  const std::filesystem::path& operator[](std::size_t i) const { return paths_[i]; }

  /// Files index, index + count, index + 2 count ...: the share of process `index` of `count`.
  /// Throws strata_error if the index is not below count, or if the part has no file.
  file_list shard(std::size_t count, std::size_t index) const {
    if (index >= count)
      throw_error("shard " + std::to_string(index) + " of " + std::to_string(count) +
                  " does not exist: shards are numbered from 0");
    if (index >= paths_.size())
      throw_error("shard " + std::to_string(index) + " of " + std::to_string(count) + " is empty: there are only " +
                  std::to_string(paths_.size()) + " files");
    file_list part{};
    for (std::size_t i = index; i < paths_.size(); i += count) part.paths_.push_back(paths_[i]);
    return part;
  }

 private:
  std::vector<std::filesystem::path> paths_;
};

}  // namespace strata::data
