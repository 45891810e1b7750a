// A data set in the memory of a GPU, which makes batches of it by the indices of their samples.
// needs: boost_context
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/concepts/stored_samples.hpp>
#include <strata/cuda/machine/device.hpp>
#include <strata/cuda/machine/loops.hpp>

namespace strata {

namespace machine {
/// One block for each sample writes it as the host would.
template <class T, int Threads>
struct gather_samples {
  static constexpr int threads = Threads;
  stored_samples from;  // at addresses of the device
  const sample_index* indices;
  T* x;
  std::int32_t* labels;  // null: there are none
  T* targets;            // null: there are none
  long x_size, target_size;

  STRATA_DEVICE void operator()(const lane& l) const {
    const long n = l.block();
    const sample_index i = indices[n];
    bool across = false, down = false;
    for (int k = 0; k < from.mirror_count; ++k) {
      const random_mirror::directions drawn = from.mirrors[k].of(i.row, i.epoch);
      across = across != drawn.across, down = down != drawn.down;
    }
    const void* const row = from.row(from.x, i.row);
    for (long k = l.thread(); k < x_size; k += threads) {
      T value = stored_number<T>(from.x.type, row, across || down ? mirrored(k, across, down) : k);
      for (int s = 0; s < from.scale_count; ++s) value = value * static_cast<T>(from.scales[s]);
      x[n * x_size + k] = value;
    }
    const void* const truth = from.row(from.truth, i.row);
    if (labels && l.thread() == 0) labels[n] = static_cast<const std::int32_t*>(truth)[0];
    if (!targets) return;
    for (long k = l.thread(); k < target_size; k += threads)
      targets[n * target_size + k] =
          from.classes > 0 ? T(static_cast<const std::int32_t*>(truth)[0] == k) : stored_number<T>(from.truth.type, truth, k);
  }

 private:
  /// Where the number comes from that is number k of the mirrored image.
  constexpr long mirrored(long k, bool across, bool down) const {
    const long channel = k % from.channels, pixel = k / from.channels, column = pixel % from.width, line = pixel / from.width;
    const long last = x_size / (long{from.width} * from.channels) - 1;
    return ((down ? last - line : line) * from.width + (across ? from.width - 1 - column : column)) * from.channels + channel;
  }
};
}  // namespace machine

/// Of one device.
class kept_samples {
  cuda_device::buffer<std::byte> blocks_[stored_samples::most_blocks];
  stored_samples set_;  // at addresses of the device

 public:
  bool empty() const { return set_.count == 0; }
  std::size_t bytes() const { return empty() ? 0 : set_.bytes(); }
  /// Waits until all is copied. Throws out_of_device_memory.
  void keep(const cuda_device& on, const machine::queue& q, const stored_samples& set) {
    set_ = set;
    for (int k = 0; k < set.block_count; ++k) {
      blocks_[k] = on.allocate<std::byte>(set.blocks[k].bytes);
      on.copy_to_device(q, std::span(set.blocks[k].first, set.blocks[k].bytes), blocks_[k].data());
      set_.blocks[k].first = blocks_[k].data();
    }
    on.wait(q);
  }
  /// Writes the samples that to.stored names into the arrays of `to`.
  template <long Size, class T>
  void gather(const machine::queue& q, const samples<T>& to, long target_size) const {
    const truth_rows<T>& truth = to.truths[0];
    machine::launch(q, to.count,
                    machine::gather_samples<T, machine::threads_for_row(Size)>{set_, to.stored, const_cast<T*>(to.inputs[0]),
                                                                               const_cast<std::int32_t*>(truth.labels),
                                                                               const_cast<T*>(truth.targets), Size, target_size});
  }
};

}  // namespace strata
