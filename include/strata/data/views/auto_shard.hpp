// The division of a data set among the workers of a training: by files, by samples, or none.
#pragma once
#include <concepts>
#include <cstddef>
#include <ranges>
#include <strata/base/error.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/sample_view.hpp>
#include <strata/data/views/shard.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

/// tf.data.experimental.AutoShardPolicy.
/// https://www.tensorflow.org/api_docs/python/tf/data/experimental/AutoShardPolicy
struct auto_shard {
  struct file {};       // each worker reads some of the files; there must be at least as many as workers
  struct data {};       // each worker reads all files and keeps some of the samples
  struct automatic {};  // by file if there are enough of them, else by samples
  struct off {};        // each worker reads everything
};

namespace detail {
/// Calls f with the source of a view if it reads files: if it has files(), a range, and keep_files(workers, index), which keeps
/// every workers-th file. Returns false otherwise.
template <class V, class F>
constexpr bool with_files(V& view, F&& f) {
  if constexpr (requires { view.keep_files(1u, 0u); }) {
    f(view);
    return true;
  } else if constexpr (requires { view.source().keep_files(1u, 0u); }) {
    f(view.source());
    return true;
  } else if constexpr (requires { view.base(); }) {
    return with_files(view.base(), std::forward<F>(f));
  } else {
    return false;
  }
}
template <class V>
constexpr bool reads_files() {
  if constexpr (requires(V& v) { v.keep_files(1u, 0u); } || requires(V& v) { v.source().keep_files(1u, 0u); })
    return true;
  else if constexpr (requires(V& v) { v.base(); })
    return reads_files<std::remove_cvref_t<decltype(std::declval<V&>().base())>>();
  else
    return false;
}

template <class Policy>
struct shard_by_fn {
  template <std::ranges::range V>
  auto operator()(V view, std::size_t workers, std::size_t index) const {
    constexpr bool right_view = is_element_view<V>;
    static_assert(right_view, "data::shard_by takes a view of samples or elements: put it before batch");
    if constexpr (!element_view<V>) {
      return;
    } else if constexpr (std::same_as<Policy, auto_shard::off>) {
      return view;
    } else if constexpr (std::same_as<Policy, auto_shard::data>) {
      return shard(std::move(view), workers, index);
    } else if constexpr (std::same_as<Policy, auto_shard::file>) {
      constexpr bool fits = reads_files<V>();
      static_assert(fits, "auto_shard::file takes a data set that reads files; auto_shard::data shares any other one");
      const std::size_t files = number_of_files(view);
      if (files < workers)
        throw_error({"auto_shard::file: ", files, " files are too few for ", workers,
                     " workers; auto_shard::data shares the samples instead"});
      keep_files(view, workers, index);
      return view;
    } else {
      const bool by_file = number_of_files(view) >= workers;
      if (by_file) keep_files(view, workers, index);
      return by_file ? shard(std::move(view), 1, 0) : shard(std::move(view), workers, index);
    }
  }
  constexpr auto operator()(std::size_t workers, std::size_t index) const { return detail::partial(*this, workers, index); }

 private:
  template <class V>
  static std::size_t number_of_files(V& view) {
    std::size_t files = 0;
    with_files(view, [&](auto& source) { files = source.files().size(); });
    return files;
  }
  template <class V>
  static void keep_files(V& view, std::size_t workers, std::size_t index) {
    if (index >= workers) throw_error({"shard_by: worker ", index, " is not below the number of workers, ", workers});
    with_files(view, [&](auto& source) { source.keep_files(workers, index); });
  }
};
}  // namespace detail

/// `shard_by<auto_shard::file>(workers, index)`: the share of worker `index` of `workers` under that policy. Use it before batch.
/// Sharding by sample needs a shared_seed in any shuffle before it. Throws strata_error, with both numbers, if there are
/// fewer files or samples than workers.
template <class Policy>
inline constexpr detail::shard_by_fn<Policy> shard_by{};

}  // namespace strata::data
