// TFRecord files as a source. Needs zlib (-lz).
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <ranges>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/checksum.hpp>
#include <strata/data/core/checksum_of_files.hpp>
#include <strata/data/core/damage_report.hpp>
#include <strata/data/core/stream.hpp>
#include <strata/data/formats/file_list.hpp>
#include <strata/data/formats/tf_record_element.hpp>
#include <strata/data/formats/tf_record_reader.hpp>
#include <string>
#include <utility>

namespace strata::data {

namespace detail {
/// The records of TFRecord files, for stream_view. A copy reads independently, but shares the damage report.
class tf_record_source {
 public:
  using element = tf_record_element;

  tf_record_source(file_list files, tf_record_options options)
      : files_(std::move(files)), all_files_(files_), options_(std::move(options)) {
    if (files_.size() == 0) throw_error("tf_record: there are no files to read");
    if (!options_.damage) options_.damage = std::make_shared<damage_report>();
  }
  tf_record_source(tf_record_source&&) = default;
  tf_record_source& operator=(tf_record_source&&) = default;
  tf_record_source(const tf_record_source& other)
      : files_(other.files_), all_files_(other.all_files_), options_(other.options_) {}
  tf_record_source& operator=(const tf_record_source& other) { return *this = tf_record_source(other); }

  const file_list& files() const { return files_; }
  /// Describes the files of all workers. A worker may lack the files of others, so their sizes are included only if all workers
  /// read all files.
  std::string order() const {
    return strata::detail::text_of({"tf_record(", all_files_.size(), " files, ",
                                    text_of_checksum(checksum_of_files(all_files_, files_.size() == all_files_.size())), ")"});
  }
  const damage_report& damage() const { return *options_.damage; }
  /// Keeps files index, index + workers, index + 2 workers ...: for shard_by<auto_shard::file>.
  void keep_files(std::size_t workers, std::size_t index) {
    files_ = files_.shard(workers, index);
    reader_.reset();
  }

  void start(int) {
    if (!reader_) reader_ = std::make_unique<tf_record_reader>(files_, options_);
    at_ = reader_->begin();
    fresh_ = true;
  }
  bool next(element& e) {
    if (!std::exchange(fresh_, false)) ++*at_;
    if (*at_ == reader_->end()) return false;
    e = **at_;
    return true;
  }

 private:
  file_list files_, all_files_;
  tf_record_options options_;
  std::unique_ptr<tf_record_reader> reader_;  // iterators keep its address
  std::optional<std::ranges::iterator_t<tf_record_reader>> at_;
  bool fresh_ = true;
};
}  // namespace detail

/// `tf_record("train.tfrecord")`, `tf_record({"a", "b"}, {.compression = data::compression::gzip})`: the records of some files,
/// one file after the other, as elements that convert to std::span<const std::byte>; `map` makes samples of them, see
/// data::example. Input range without a size; a copy reads independently. Throws strata_error as tf_record_reader does. A
/// report counts skipped damage:
///
///     auto damage = std::make_shared<data::damage_report>();
///     auto train = data::tf_record("train.tfrecord", {.skip_damaged = true, .damage = damage}) | ...
///
/// https://www.tensorflow.org/api_docs/python/tf/data/TFRecordDataset
inline auto tf_record(file_list files, tf_record_options options = {}) {
  return stream_view(detail::tf_record_source(std::move(files), std::move(options)));
}

}  // namespace strata::data
