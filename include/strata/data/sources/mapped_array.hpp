// Samples in a file that may be larger than the memory: pages are read when needed, and released afterwards.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <strata/base/error.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/base/tensor.hpp>
#include <strata/data/core/array.hpp>
#include <strata/io/mapped_file.hpp>
#include <strata/io/os.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

struct mapped_array_options {
  std::uint64_t offset = 0;                   // offset of the first sample, in bytes
  std::size_t samples = 0;                    // 0: up to the end of the file
  std::size_t resident_bytes = 256ull << 20;  // limit above which pages are released, approximately
};

namespace detail {
/// Limits the resident part of a mapped file. Pages that have been read stay resident until the system needs the memory, so after
/// a pass over the file the process would appear to use as much memory as the file has bytes. Released pages remain in the page
/// cache: reading one again costs microseconds, not an access to the disk.
class resident_pages {
 public:
  resident_pages(io::mapped_file file, std::size_t limit) : file_(std::move(file)), limit_(limit / window) {
    file_.expect(use::of_few_pages);  // otherwise one access may make 2 MiB resident
  }

  /// Called before these bytes are read.
  void touch(const void* first, std::size_t bytes) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(first);
    const std::size_t begin = at / window, end = (at + bytes - 1) / window;
    const std::size_t last = last_.load(relaxed);
    if (begin == last && end == last) return;
    last_.store(end, relaxed);
    jump(begin < last ? last - begin : begin - last);
    const std::size_t more = end - begin + (begin == last ? 0 : 1);
    // Of several threads that exceed the limit, one releases the pages; the others fault them in again if they need them.
    if (touched_.fetch_add(more, relaxed) + more > limit_ && touched_.exchange(0, relaxed) > limit_) file_.expect(use::over);
  }
  const io::mapped_file& file() const { return file_; }

 private:
  using use = io::os::mapped_use;
  static constexpr auto relaxed = std::memory_order_relaxed;
  /// The most that one page fault makes resident: Linux also maps the pages around it that are cached (fault_around_bytes).
  static constexpr std::size_t window = 64 << 10;
  /// Samples read in order, or shuffled with a window, are closer than this; samples of a fully shuffled file are not.
  static constexpr std::size_t near = (64 << 20) / window;
  static constexpr int many = 32;

  /// Allows read-ahead while samples are near each other. For scattered samples it would read megabytes for each.
  void jump(std::size_t distance) noexcept {
    const int jumps = std::clamp(jumps_.load(relaxed) + (distance > near ? 1 : -1), 0, many);
    jumps_.store(jumps, relaxed);
    if (jumps == many && !spread_.load(relaxed) && !spread_.exchange(true, relaxed)) file_.expect(use::scattered);
    if (jumps == 0 && spread_.load(relaxed) && spread_.exchange(false, relaxed)) file_.expect(use::usual);
  }

  io::mapped_file file_;
  std::size_t limit_;
  std::atomic<std::size_t> touched_ = 0, last_ = 0;
  std::atomic<int> jumps_ = 0;
  std::atomic<bool> spread_ = false;
};
}  // namespace detail

/// Rows of T in a file: (size, S...) in row-major order, in the byte order of this machine. For from_tensor_slices, like array,
/// but only a bounded part of it is in the memory of the process at any time. Copies share the mapping; several threads may read.
/// The file must not become shorter meanwhile; see io::mapped_file.
/// Throws strata_error naming the file if it cannot be read, if the offset is beyond its end or not aligned for T, or if
/// the file is too short for the samples or ends within a sample.
template <class T, shape S>
class mapped_array {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, "a mapped array holds numbers");

 public:
  using value_type = T;
  static constexpr shape extents = S;
  static constexpr row_properties properties{};  // not any thread: resident_pages observes the order of the rows

  explicit mapped_array(const std::filesystem::path& path, mapped_array_options options = {})
      : pages_(std::make_shared<detail::resident_pages>(io::mapped_file(path), options.resident_bytes)) {
    const std::size_t in_file = pages_->file().bytes().size();
    const auto refuse = [&](const std::string& why) { throw_error({path.string(), ": ", why}); };
    if (options.offset > in_file)
      refuse("the samples begin at byte " + std::to_string(options.offset) + ", but the file has " + std::to_string(in_file) +
             " bytes");
    if (options.offset % alignof(T) != 0)
      refuse("the samples begin at byte " + std::to_string(options.offset) + ", which is not a multiple of " +
             std::to_string(alignof(T)));
    const std::size_t left = in_file - static_cast<std::size_t>(options.offset);
    if (options.samples == 0 && left % row_bytes != 0)
      refuse("the " + std::to_string(left) + " bytes from byte " + std::to_string(options.offset) +
             " on are not a whole number of samples of shape " + strata::detail::shape_text(S) + ", " +
             std::to_string(row_bytes) + " bytes each");
    if (options.samples > left / row_bytes)
      refuse(std::to_string(options.samples) + " samples of " + std::to_string(row_bytes) + " bytes from byte " +
             std::to_string(options.offset) + " on are more than the file's " + std::to_string(in_file) + " bytes");
    size_ = options.samples != 0 ? options.samples : left / row_bytes;
    first_ = reinterpret_cast<const T*>(pages_->file().bytes().data() + options.offset);
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// The row is to be read immediately: its pages may be released later, and would then be faulted in again.
  const T* row(std::size_t i) const {
    const T* at = first_ + i * std::size_t{S.size()};
    pages_->touch(at, row_bytes);
    return at;
  }
  tensor<const T, S> operator[](std::size_t i) const { return {row(i)}; }

 private:
  static constexpr std::size_t row_bytes = std::size_t{S.size()} * sizeof(T);

  std::shared_ptr<detail::resident_pages> pages_;
  const T* first_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace strata::data
