// NPY files: load_npy of several types, mapped_npy, and save_npy of an array that was read.
#include <strata/data/formats/npy.hpp>

#include "fuzz.hpp"
using namespace strata;

namespace {
template <class T>
std::string file_of(const std::vector<T>& values, std::vector<std::uint64_t> extents) {
  const data::npy_values all(values, std::move(extents));
  return all.header() + fuzz::bytes_of(all.bytes());
}

std::vector<std::string> seeds() {
  std::string fortran = file_of<float>({1, 2, 3, 4, 5, 6}, {1, 2, 3});
  fortran.replace(fortran.find("False"), 5, "True ");
  std::string swapped = file_of<double>({1, 2, 3, 4, 5, 6}, {1, 6});
  swapped.replace(swapped.find('<'), 1, ">");
  std::string half = file_of<std::uint16_t>({0x3C00, 0x7C00, 0, 1, 2, 3}, {6});
  half.replace(half.find("u2"), 2, "f2");
  return {fuzz::with_choice(0, file_of<float>({1, 2, 3, 4, 5, 6}, {1, 2, 3})),
          fuzz::with_choice(0, fortran),
          fuzz::with_choice(1, swapped),
          fuzz::with_choice(2, file_of<std::int64_t>({1, 2, 3}, {3})),
          fuzz::with_choice(3, file_of<float>({1, 2}, {2, 1})),
          fuzz::with_choice(0, half)};
}

std::vector<std::string> larger(int count) {
  const auto n = std::size_t(count);
  return {fuzz::with_choice(2, file_of(std::vector<std::int64_t>(16 * n, 3), {16 * n}))};
}

template <class T, shape S>
void read_as(const std::string& path) {
  const data::array<T, S> array = data::load_npy<T, S>(path);
  fuzz::look_at(array.values());
  fuzz::accepted([&] {
    const data::npy_values values(array);
    const data::array<T, S> again = data::load_npy<T, S>(fuzz::file(values.header() + fuzz::bytes_of(values.bytes())).path());
    fuzz::check(fuzz::bytes_of(again.values()) == fuzz::bytes_of(array.values()));
  });
}

void read(std::string_view input) {
  const fuzz::choice chosen(input);
  const fuzz::file file(chosen.rest);
  switch (chosen.number & 3) {
    case 0:
      return read_as<float, shape{2, 3, 1}>(file.path());
    case 1:
      return read_as<float, shape{6}>(file.path());
    case 2:
      return read_as<std::int16_t, shape{1}>(file.path());
    default:
      const auto array = data::mapped_npy<float, shape{1}>(file.path());
      for (std::size_t i = 0; i < array.size(); ++i) fuzz::look_at(std::span(array.row(i), 1));
  }
}

const fuzz::target npy{"npy", seeds, read, larger};
}  // namespace
