// A data set in memory, described by plain values: a device copies it once, and then makes batches from it.
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <strata/base/random.hpp>
#include <strata/concepts/batch_source.hpp>
#include <type_traits>

namespace strata::core {

/// The type of elements in memory.
enum class number_type : std::uint8_t { u8, i8, u16, i16, u32, i32, u64, i64, f32, f64 };

template <class U>
concept storable_number =
    (std::integral<U> && !std::same_as<U, bool> && sizeof(U) <= 8) || std::same_as<U, float> || std::same_as<U, double>;

template <storable_number U>
inline constexpr number_type number_type_of = [] {
  if constexpr (std::floating_point<U>) return sizeof(U) == 4 ? number_type::f32 : number_type::f64;
  constexpr int log = sizeof(U) == 1 ? 0 : sizeof(U) == 2 ? 1 : sizeof(U) == 4 ? 2 : 3;
  return number_type(2 * log + std::is_signed_v<U>);
}();

/// Element k of a row, converted to T.
template <class T>
constexpr T stored_number(number_type type, const void* row, long k) {
  switch (type) {
    case number_type::u8:
      return static_cast<T>(static_cast<const std::uint8_t*>(row)[k]);
    case number_type::i8:
      return static_cast<T>(static_cast<const std::int8_t*>(row)[k]);
    case number_type::u16:
      return static_cast<T>(static_cast<const std::uint16_t*>(row)[k]);
    case number_type::i16:
      return static_cast<T>(static_cast<const std::int16_t*>(row)[k]);
    case number_type::u32:
      return static_cast<T>(static_cast<const std::uint32_t*>(row)[k]);
    case number_type::i32:
      return static_cast<T>(static_cast<const std::int32_t*>(row)[k]);
    case number_type::u64:
      return static_cast<T>(static_cast<const std::uint64_t*>(row)[k]);
    case number_type::i64:
      return static_cast<T>(static_cast<const std::int64_t*>(row)[k]);
    case number_type::f32:
      return static_cast<T>(static_cast<const float*>(row)[k]);
    case number_type::f64:
      break;
  }
  return static_cast<T>(static_cast<const double*>(row)[k]);
}

/// A random choice, for each sample and epoch, of which images are mirrored.
struct random_mirror {
  std::uint64_t seed = 0;
  bool horizontal = false, vertical = false;  // the directions in which images may be mirrored

  struct directions {
    bool across = false, down = false;
  };
  /// ordinal: the index of the sample in its data set.
  constexpr directions of(std::uint64_t ordinal, std::uint32_t epoch) const {
    const philox::block words = philox{seed}.fork(0x666C6970)(ordinal, epoch);  // "flip"
    constexpr std::uint32_t half = 0x80000000u;                                 // half of the range of a word
    return {horizontal && words[1] < half, vertical && words[3] < half};
  }
};

/// Samples in host memory, and how they are converted for a batch: x is converted to the type of the batch, then multiplied by
/// each scale; images may be mirrored.
struct stored_samples {
  struct block {
    const std::byte* first = nullptr;
    std::size_t bytes = 0;
  };
  /// Rows in a block; successive samples are `stride` bytes apart.
  struct column {
    int block = 0;
    std::size_t offset = 0, stride = 0;
    number_type type = number_type::f32;
  };
  static constexpr int most_blocks = 2, most_scales = 4, most_mirrors = 2;

  std::size_t count = 0;
  block blocks[most_blocks] = {};
  int block_count = 0;
  column x = {}, truth = {};
  label_kind truths = label_kind::none;  // content of that column: labels (i32), targets, or nothing
  int classes = 0;                       // not 0: labels are expanded to one-hot rows of so many targets
  double scales[most_scales] = {};
  int scale_count = 0;
  random_mirror mirrors[most_mirrors] = {};
  int mirror_count = 0;
  int width = 0, channels = 0;    // of images, if there are mirrors
  bool rows_are_ordinals = true;  // sample_index::row is the place of a sample in its data set

  constexpr std::size_t bytes() const {
    std::size_t sum = 0;
    for (const block& each : blocks) sum += each.bytes;
    return sum;
  }
  constexpr const std::byte* row(const column& of, std::size_t sample) const {
    return blocks[of.block].first + of.offset + sample * of.stride;
  }
};

}  // namespace strata::core
