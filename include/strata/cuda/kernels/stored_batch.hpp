// A batch that a GPU makes of samples in its memory, by their indices.
#pragma once
#include <cstdint>
#include <strata/concepts/stored_samples.hpp>
#include <strata/cuda/machine/loops.hpp>

namespace strata::machine {

/// The samples of a batch as the host would write them, and where they go.
template <class T>
struct stored_batch {
  stored_samples from;  // at addresses of the device
  const sample_index* indices;
  T* x;
  std::int32_t* labels;  // null: there are none
  T* targets;            // null: there are none
  long x_size, target_size;

  constexpr random_mirror::directions mirrored(long n) const {
    random_mirror::directions all;
    for (int k = 0; k < from.mirror_count; ++k) {
      const random_mirror::directions drawn = from.mirrors[k].of(indices[n].row, indices[n].epoch);
      all.across = all.across != drawn.across, all.down = all.down != drawn.down;
    }
    return all;
  }
  /// Number k of sample n, whose image is mirrored so.
  constexpr T number(long n, long k, random_mirror::directions mirrored = {}) const {
    const void* const row = from.row(from.x, indices[n].row);
    const bool moves = mirrored.across || mirrored.down;
    T value = stored_number<T>(from.x.type, row, moves ? source_of(k, mirrored) : k);
    for (int s = 0; s < from.scale_count; ++s) value = value * static_cast<T>(from.scales[s]);
    return value;
  }
  /// Stores element `first` of the truth of sample n, and each `step`-th one after it. A label is element 0.
  constexpr void store_truth(long n, long first, long step) const {
    const void* const truth = from.row(from.truth, indices[n].row);
    if (labels && first == 0) labels[n] = static_cast<const std::int32_t*>(truth)[0];
    if (!targets) return;
    for (long k = first; k < target_size; k += step)
      targets[n * target_size + k] =
          from.classes > 0 ? T(static_cast<const std::int32_t*>(truth)[0] == k) : stored_number<T>(from.truth.type, truth, k);
  }

 private:
  /// The index, in the image as stored, of element k of the mirrored image.
  constexpr long source_of(long k, random_mirror::directions mirrored) const {
    const long channel = k % from.channels, pixel = k / from.channels, column = pixel % from.width, line = pixel / from.width;
    const long last = x_size / (long{from.width} * from.channels) - 1;
    return ((mirrored.down ? last - line : line) * from.width + (mirrored.across ? from.width - 1 - column : column)) *
               from.channels +
           channel;
  }
};

/// One block for each sample.
template <class T, int Threads>
struct gather_samples {
  static constexpr int threads = Threads;
  stored_batch<T> batch;

  STRATA_DEVICE void operator()(const lane& l) const {
    const long n = l.block();
    const random_mirror::directions mirrored = batch.mirrored(n);
    for (long k = l.thread(); k < batch.x_size; k += threads) batch.x[n * batch.x_size + k] = batch.number(n, k, mirrored);
    batch.store_truth(n, l.thread(), threads);
  }
};

}  // namespace strata::machine
