// One GPU of an engine whose GPUs have some layers each: it computes them for all leaves.
#pragma once
#include <strata/base/text.hpp>
#include <strata/cuda/engine/engine_device.hpp>
#include <strata/cuda/engine/memory_need.hpp>
#include <strata/cuda/engine/parameter_numbers.hpp>
#include <strata/cuda/engine/place_contents.hpp>
#include <string>
#include <vector>

namespace strata::core {

template <class Program, class Backend>
struct cuda_place : engine_device<Program, Backend> {
  using base = engine_device<Program, Backend>;
  using base::number, base::on, base::queue;
  using typename base::T;
  using contents = place_contents<Program, Backend>;
  static constexpr auto trained = trained_ranges(contents::layout);

  cuda_device::buffer<T> scratch;
  parameter_numbers<Program, Backend> numbers_of_all;
  std::vector<T*> leaf_gradients;

  cuda_place(int which, int index, int slot_count)
      : base(which, index, contents::arenas.size[which], contents::arenas.trainable[which] * slot_count,
             contents::ranges(which, trained), contents::begins(which)),
        numbers_of_all(on, queue) {}
  /// The elements of the gradient of a leaf.
  long stride() const { return contents::arenas.trainable[number]; }
  /// The memory that the arenas of a place need.
  static std::vector<detail::memory_need> own_arenas(int number, int slot_count) {
    return {{long(sizeof(T)) * contents::arenas.size[number], "weights"},
            {long(sizeof(T)) * contents::arenas.trainable[number] * slot_count, "slots of the optimizer"}};
  }
  /// The memory that a place on gpu(index) needs, as text.
  static std::string needs_on(int index, const std::vector<detail::memory_need>& all) {
    return detail::text_of({"gpu(", index, ") needs ", detail::text_of_needs(all)});
  }
  /// of_all: trained_ranges of the whole network.
  void set_ranges(const auto& of_all) { this->update.set_ranges(contents::ranges(number, of_all)); }
};

}  // namespace strata::core
