// The order in which interleave takes elements of its ranges.
#pragma once
#include <cstddef>
#include <strata/base/error.hpp>
#include <string>

namespace strata::data {

struct interleave_options {
  int cycle_length = 4;       // ranges in turns; a constant: with the number of processors the order would depend on the machine
  int block_length = 1;       // elements of one range in a turn
  bool deterministic = true;  // false, with parallel: a range without an element ready loses its turn
};

namespace detail {
/// The cycle of tf.data's InterleaveDataset: a place whose range ends loses its turn, and gets another range in the next one.
class interleave_cycle {
 public:
  /// Throws strata_error if cycle_length or block_length is not positive.
  explicit interleave_cycle(interleave_options options)
      : places_(positive(options.cycle_length, "cycle_length")), block_length_(positive(options.block_length, "block_length")) {}

  std::size_t places() const { return places_; }
  std::size_t at() const { return at_; }
  void start() { at_ = taken_ = 0; }
  /// Counts an element that has been taken.
  void count_one() {
    if (++taken_ == block_length_) go_on();
  }
  void go_on() { jump((at_ + 1) % places_); }
  void jump(std::size_t place) {
    at_ = place;
    taken_ = 0;
  }
  std::string order() const {
    return strata::detail::text_of({"interleave(cycle_length ", places_, ", block_length ", block_length_, ")"});
  }

 private:
  static std::size_t positive(int value, const char* option) {
    if (value < 1) throw_error({"interleave: ", option, " is ", value, ", it must be at least 1"});
    return static_cast<std::size_t>(value);
  }

  std::size_t places_, block_length_, at_ = 0, taken_ = 0;
};
}  // namespace detail

}  // namespace strata::data
