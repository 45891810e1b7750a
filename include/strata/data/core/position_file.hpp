// The position in a data set, in a file beside the weights of a training.
#pragma once
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/sample_view.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/io/open_file.hpp>
#include <string>
#include <string_view>
#include <system_error>

namespace strata::data {

/// Writes the position after the current batch of `source`, a pipeline that ends with batch or prefetch. The file is complete or
/// absent.
/// Throws strata_error if it cannot be written.
template <class Source>
void save_position(const Source& source, const std::filesystem::path& path) {
  const core::data_position at = source.where();
  io::write_file_atomically(path, "strata data position 1\nepoch " + std::to_string(at.epoch) + "\nsamples " +
                                      std::to_string(at.samples) + "\norder " + detail::order_of(source) + "\n");
}

/// The next pass over `source` continues after the batch that was current when the file was written: the same samples in the
/// same order, for any number of workers and threads and any size of batches. Only indices are skipped; streams are read again.
/// Throws strata_error if the file cannot be read or is not a position, if it is after the end of an epoch, or if the
/// source has other samples or another order.
template <class Source>
void restore_position(Source& source, const std::filesystem::path& path) {
  const std::string content = io::content_of(path);
  std::string_view rest = content;
  const auto refuse = [&](const std::string& why) { throw_error({path.string(), ": ", why}); };
  const auto field = [&](std::string_view name) {
    const std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (!line.starts_with(name)) refuse("not a position of a data set: '" + std::string(name) + "' is missing");
    return line.substr(name.size());
  };
  const auto number = [&]<class T>(std::string_view name, T value) {
    const std::string text = field(name);
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc{} || end != text.data() + text.size() || value < T{})
      refuse("'" + text + "' is not a valid value of " + std::string(name.substr(0, name.size() - 1)));
    return value;
  };
  field("strata data position 1");
  const int epoch = number("epoch ", int{});
  const auto samples = number("samples ", std::uint64_t{});
  const std::string order = field("order "), here = detail::order_of(source);
  if (order != here) refuse("the position belongs to '" + order + "', but the data set is '" + here + "'");
  if constexpr (detail::sized<Source>) {
    // One batch more, because the last one may be short, and workers may share an epoch unevenly.
    const std::uint64_t batches = source.size(),
                        of_batch = std::uint64_t(core::batch_size_of(source)) * detail::shards_of(source);
    if (samples / of_batch > batches + 1)
      refuse(strata::detail::text_of(
          {"the position is after ", samples, " samples of an epoch, but the data set has ", batches, " batches of ", of_batch}));
  }
  source.resume_at({epoch, samples});
}

}  // namespace strata::data
