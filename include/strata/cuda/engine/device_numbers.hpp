// Searches arrays in memory of a GPU for check_numerics.
#pragma once
#include <algorithm>
#include <span>
#include <strata/cuda/machine/device.hpp>
#include <strata/cuda/machine/loops.hpp>
#include <strata/cuda/machine/rounded_operand.hpp>
#include <strata/kernel/kernel_observer.hpp>
#include <vector>

namespace strata {

namespace machine {

/// The first of some places in an array, counted from its end; 0: there is none.
struct first_place {
  long from_end;
  STRATA_DEVICE constexpr first_place& operator+=(const first_place& other) {
    if (from_end < other.from_end) from_end = other.from_end;
    return *this;
  }
};

/// Finds the first element that is not finite in each piece of an array.
template <class T>
struct search_pieces {
  using value = first_place;
  static constexpr int threads = 128;
  const T* numbers;
  long size, of_piece;
  long* to;

  constexpr long terms(long piece) const { return std::min(of_piece, size - piece * of_piece); }
  constexpr first_place term(long piece, long i) const {
    const long at = piece * of_piece + i;
    return {numbers[at] - numbers[at] == 0 ? 0 : size - at};
  }
  constexpr void store(long piece, first_place found) const { to[piece] = found.from_end; }
};

}  // namespace machine

namespace core {
/// Searches arrays of one device by a kernel; the host waits for each answer.
template <class T>
class device_numbers final : public number_reader {
  static constexpr std::size_t most_pieces = 256;
  cuda_device on_;
  machine::queue queue_;
  cuda_device::buffer<long> found_;
  mutable std::vector<long> on_host_;

 public:
  device_numbers(const cuda_device& on, const machine::queue& q)
      : on_(on), queue_(q), found_(on.allocate<long>(most_pieces)), on_host_(most_pieces) {}

  std::size_t first_not_finite(const void* numbers, std::size_t size, bool is_narrow) const override {
    return is_narrow ? first_not_finite(static_cast<const machine::bfloat16*>(numbers), size)
                     : first_not_finite(static_cast<const T*>(numbers), size);
  }
  double number(const void* numbers, std::size_t i, bool is_narrow) const override {
    return is_narrow ? number(static_cast<const machine::bfloat16*>(numbers) + i) : number(static_cast<const T*>(numbers) + i);
  }

 private:
  template <class Number>
  std::size_t first_not_finite(const Number* numbers, std::size_t size) const {
    if (size == 0) return 0;
    const std::size_t of_piece = std::max<std::size_t>(4096, (size + most_pieces - 1) / most_pieces),
                      pieces = (size + of_piece - 1) / of_piece;
    machine::for_each_sum(queue_, long(pieces),
                          machine::search_pieces<Number>{numbers, long(size), long(of_piece), found_.data()});
    const std::span<long> answers = std::span(on_host_).first(pieces);
    on_.copy_to_host(queue_, static_cast<const long*>(found_.data()), answers);
    on_.wait(queue_);
    return size - std::size_t(std::ranges::max(answers));
  }
  template <class Number>
  double number(const Number* at) const {
    Number value{};
    on_.copy_to_host(queue_, at, std::span(&value, 1));
    on_.wait(queue_);
    return double(value);
  }
};
}  // namespace core

}  // namespace strata
