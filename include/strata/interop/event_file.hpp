// event_file: the file format of TensorBoard. Needs protozero.
// needs: protozero
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <mutex>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/io/crc32c.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/file_error.hpp>
#include <strata/io/open_file.hpp>
#include <strata/io/os.hpp>
#include <strata/io/png_image.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace strata {

namespace detail {

/// [left, right, count] of 30 buckets of equal width between the smallest and the largest value; nan and infinity are left out.
/// https://www.tensorflow.org/api_docs/python/tf/summary/histogram
inline std::vector<std::array<double, 3>> histogram_of(std::span<const double> values) {
  constexpr std::size_t buckets = 30;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double v : values)
    if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  if (low > high) return {};
  std::vector<std::array<double, 3>> rows(buckets);
  const double width = (high - low) / double(buckets);
  for (std::size_t i = 0; i < buckets; ++i) {
    rows[i][0] = low + double(i) * width;
    rows[i][1] = i + 1 == buckets ? high : low + double(i + 1) * width;
  }
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    const std::size_t bucket = width > 0 ? std::size_t((v - low) / width) : buckets - 1;
    ++rows[std::min(bucket, buckets - 1)][2];
  }
  return rows;
}

}  // namespace detail

/// A new file in a folder of TensorBoard, such as logs/train. A separate thread writes, so that no call waits for the disk. The
/// file can be read while it grows, and after the process has been killed. Throws strata_error if the file cannot be
/// created; `flush` throws later errors.
/// https://github.com/tensorflow/tensorboard/blob/master/tensorboard/compat/proto/event.proto
class event_file {
 public:
  explicit event_file(const std::filesystem::path& folder) {
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure) throw_error({"cannot create the folder ", folder.string(), ": ", failure.message()});
    static std::atomic<int> made = 0;
    path_ = folder / detail::formatted("events.out.tfevents.%010ld.%s.%ld.%d.v2", long(time_of_day()),
                                       io::os::host_name().c_str(), io::os::process_id(), made++);
    file_ = io::open_own(path_, io::os::at_end);
    std::string first;
    protozero::pbf_writer event(first);
    event.add_double(field::wall_time, time_of_day());
    event.add_string(field::file_version, "brain.Event:2");
    add_record(first);
    thread_ = std::thread([this] { run(); });
  }
  ~event_file() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  event_file(const event_file&) = delete;
  event_file& operator=(const event_file&) = delete;

  void scalar(std::string_view tag, double value, long step) {
    const auto number = static_cast<float>(value);
    add(tag, step, "scalars", data_type::float32, {}, [&](protozero::pbf_writer& tensor) {
      tensor.add_bytes(field::content, reinterpret_cast<const char*>(&number), sizeof number);
    });
  }
  void histogram(std::string_view tag, std::span<const double> values, long step) {
    const auto rows = detail::histogram_of(values);
    add(tag, step, "histograms", data_type::float64, {rows.size(), 3}, [&](protozero::pbf_writer& tensor) {
      tensor.add_bytes(field::content, reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof rows[0]);
    });
  }
  /// pixels: (images, height, width, channels), with 1, 3 or 4 channels. Throws strata_error for any other number of
  /// channels or of pixels. https://www.tensorflow.org/api_docs/python/tf/summary/image
  void image(std::string_view tag, std::span<const std::uint8_t> pixels, std::uint32_t height, std::uint32_t width, int channels,
             long step) {
    const std::size_t size = std::size_t{height} * width * static_cast<std::size_t>(std::max(0, channels));
    const std::size_t count = size > 0 ? std::max<std::size_t>(1, pixels.size() / size) : 1;
    std::vector<std::string> parts{std::to_string(width), std::to_string(height)};
    for (std::size_t k = 0; k < count; ++k)
      parts.push_back(
          io::png_image(pixels.subspan(k * size, k + 1 < count ? size : std::dynamic_extent), height, width, channels));
    add(tag, step, "images", data_type::string, {parts.size()}, [&](protozero::pbf_writer& tensor) {
      for (const std::string& part : parts) tensor.add_bytes(field::strings, part);
    });
  }
  /// Adds a network, as the bytes of a GraphDef.
  void graph(std::string_view definition) {
    std::string record;
    protozero::pbf_writer event(record);
    event.add_double(field::wall_time, time_of_day());
    event.add_bytes(field::graph_def, definition.data(), definition.size());
    add_record(record);
  }
  /// Waits until everything is in the file. Throws strata_error, with the path, if it could not be written.
  void flush() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.empty() && !writes_; });
    if (failure_ != 0) io::fail_on_file("write", path_, failure_);
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  // Field numbers and type numbers of TensorFlow's messages.
  struct field {
    static constexpr protozero::pbf_tag_type wall_time = 1, step = 2, file_version = 3, graph_def = 4, summary = 5;  // Event
    static constexpr protozero::pbf_tag_type value = 1;                                                              // Summary
    static constexpr protozero::pbf_tag_type tag = 1, tensor = 8, metadata = 9;               // Summary.Value
    static constexpr protozero::pbf_tag_type plugin_data = 1;                                 // SummaryMetadata
    static constexpr protozero::pbf_tag_type plugin_name = 1;                                 // ... .PluginData
    static constexpr protozero::pbf_tag_type dtype = 1, shape = 2, content = 4, strings = 8;  // TensorProto
    static constexpr protozero::pbf_tag_type dim = 2, size = 1;                               // TensorShapeProto
  };
  enum class data_type : std::int32_t { float32 = 1, float64 = 2, string = 7 };

  /// Seconds since 1970; TensorBoard shows this time beside each value.
  static double time_of_day() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }

  /// put_content: writes the elements or strings of the tensor.
  template <class PutContent>
  void add(std::string_view tag, long step, const char* plugin, data_type type, const std::vector<std::size_t>& extents,
           PutContent&& put_content) {
    std::string record;
    protozero::pbf_writer event(record);
    event.add_double(field::wall_time, time_of_day());
    event.add_int64(field::step, step);
    {
      protozero::pbf_writer summary(event, field::summary), value(summary, field::value);
      value.add_string(field::tag, tag.data(), tag.size());
      {
        protozero::pbf_writer tensor(value, field::tensor);
        tensor.add_enum(field::dtype, std::int32_t(type));
        {
          protozero::pbf_writer shape(tensor, field::shape);
          for (const std::size_t extent : extents) {
            protozero::pbf_writer dim(shape, field::dim);
            dim.add_int64(field::size, std::int64_t(extent));
          }
        }
        put_content(tensor);
      }
      protozero::pbf_writer metadata(value, field::metadata), plugin_data(metadata, field::plugin_data);
      plugin_data.add_string(field::plugin_name, plugin);
    }
    add_record(record);
  }
  /// Adds a record, framed as in TFRecord files.
  void add_record(const std::string& record) {
    const std::uint64_t length = record.size();
    const std::uint32_t checksum_of_length = io::masked_crc32c(std::as_bytes(std::span(&length, 1))),
                        checksum = io::masked_crc32c(std::as_bytes(std::span(record)));
    const auto put = [&](const void* from, std::size_t bytes) { waiting_.append(static_cast<const char*>(from), bytes); };
    const std::lock_guard lock(mutex_);
    put(&length, sizeof length), put(&checksum_of_length, sizeof checksum_of_length);
    put(record.data(), record.size()), put(&checksum, sizeof checksum);
    changed_.notify_all();
  }
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const std::string taken = std::exchange(waiting_, {});
      writes_ = true;
      lock.unlock();
      const int failure = write_all(taken);
      lock.lock();
      writes_ = false;
      if (failure_ == 0) failure_ = failure;
      changed_.notify_all();
    }
  }
  int write_all(std::string_view bytes) const {
    while (!bytes.empty()) {
      const std::ptrdiff_t written = io::os::write(file_.number(), bytes.data(), bytes.size());
      if (written < 0) return errno;
      bytes.remove_prefix(std::size_t(written));
    }
    return 0;
  }

  std::filesystem::path path_;
  io::file_descriptor file_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string waiting_;  // complete records
  bool ends_ = false, writes_ = false;
  int failure_ = 0;
  std::thread thread_;
};

}  // namespace strata
