#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <strata/base/random.hpp>
#include <strata/data/formats/npy.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/batch.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
/// A file as NumPy writes it: version, dictionary, blanks up to a multiple of `alignment`, elements.
bytes npy(const std::string& dictionary, const bytes& values, int version = 1, std::size_t alignment = 64) {
  bytes b = bytes_of("\x93NUMPY") + bytes{std::uint8_t(version), 0};
  const std::size_t before = version == 1 ? 10 : 12;
  std::string text = dictionary;
  while ((before + text.size() + 1) % alignment != 0) text += ' ';
  text += '\n';
  b = b + bytes{std::uint8_t(text.size() & 255), std::uint8_t(text.size() >> 8)};
  if (version > 1) b = b + bytes{0, 0};
  return b + bytes_of(text) + values;
}
std::string dictionary(const std::string& type, const std::string& extents, bool fortran = false) {
  return "{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + extents + ", }";
}
template <class T>
bytes raw(std::vector<T> values, bool big_endian = false) {
  bytes b;
  for (const T v : values) {
    auto one = std::bit_cast<std::array<std::uint8_t, sizeof(T)>>(v);
    if (big_endian) std::reverse(one.begin(), one.end());
    b.insert(b.end(), one.begin(), one.end());
  }
  return b;
}
template <class T, shape S>
std::vector<T> values_of(const data::array<T, S>& a) {
  return {a.values().begin(), a.values().end()};
}
template <class T = float, shape S = shape{2}>
std::string complaint(const scratch_folder& f, const bytes& content) {
  const auto path = f.write("bad.npy", content);
  return f.without_folder(error_of([&] { (void)data::load_npy<T, S>(path); }));
}
}  // namespace

TEST_CASE("every format, alignment and byte order of every dtype") {
  const scratch_folder f("npy");
  const auto check = [&]<class From>(const std::string& type, std::vector<From> values) {
    for (const int version : {1, 2, 3})
      for (const std::size_t alignment : std::array<std::size_t, 3>{64, 16, 1})
        for (const bool big : {false, true}) {
          const auto path =
              f.write("x.npy", npy(dictionary((big ? ">" : "<") + type, "(2, 2)"), raw(values, big), version, alignment));
          const auto x = data::load_npy<From, shape{2}>(path);
          REQUIRE(x.size() == 2);
          CHECK(values_of(x) == values);
          const auto as_double = data::load_npy<double, shape{2}>(path);
          for (std::size_t i = 0; i < values.size(); ++i) CHECK(as_double.values()[i] == static_cast<double>(values[i]));
        }
  };
  check("i1", std::vector<std::int8_t>{-128, -1, 0, 127});
  check("i2", std::vector<std::int16_t>{-32768, -2, 258, 32767});
  check("i4", std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min(), -2, 16909060, 7});
  check("i8", std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min(), -2, 72623859790382856, 7});
  check("u1", std::vector<std::uint8_t>{0, 1, 128, 255});
  check("u2", std::vector<std::uint16_t>{0, 1, 258, 65535});
  check("u4", std::vector<std::uint32_t>{0, 1, 16909060, 4294967295});
  check("u8", std::vector<std::uint64_t>{0, 1, 72623859790382856, std::numeric_limits<std::uint64_t>::max()});
  check("f4", std::vector<float>{-0.1f, 1e-40f, 3e38f, std::numeric_limits<float>::infinity()});
  check("f8", std::vector<double>{-0.1, 1e-310, 1e308, -std::numeric_limits<double>::infinity()});
  const auto truth = f.write("b.npy", npy(dictionary("|b1", "(3,)"), {1, 0, 1}));
  CHECK(values_of(data::load_npy<bool, shape{}>(truth)) == std::vector<bool>{true, false, true});
  CHECK(values_of(data::load_npy<float, shape{}>(truth)) == std::vector<float>{1, 0, 1});
  CHECK(values_of(data::load_npy<std::uint8_t, shape{}>(truth)) == std::vector<std::uint8_t>{1, 0, 1});
}

TEST_CASE("float16: all 65536 of them") {
  const scratch_folder f("npy");
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::uint16_t(i);
  for (const bool big : {false, true}) {
    const auto x =
        data::load_npy<float, shape{}>(f.write("h.npy", npy(dictionary(big ? ">f2" : "<f2", "(65536,)"), raw(all, big))));
    for (std::size_t i = 0; i < all.size(); ++i) {
      const int exponent = int(i >> 10) & 31, fraction = int(i) & 1023;
      const float sign = i >> 15 ? -1.f : 1.f;
      const float got = x.values()[i];
      if (exponent == 31 && fraction != 0)
        CHECK(std::isnan(got));
      else if (exponent == 31)
        CHECK(got == sign * std::numeric_limits<float>::infinity());
      else
        CHECK(got ==
              sign * (exponent == 0 ? std::ldexp(float(fraction), -24) : std::ldexp(float(1024 + fraction), exponent - 25)));
      CHECK(std::signbit(got) == bool(i >> 15));
    }
  }
}

TEST_CASE("numbers that fit lie in the file, all others are copied") {
  const scratch_folder f("npy");
  std::vector<float> many(1 << 20);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = float(i);
  const auto path = f.write("x.npy", npy(dictionary("<f4", "(1024, 32, 32)"), raw(many)));
  const auto mapped = data::load_npy<float, shape{32, 32, 1}>(path);
  const auto copied = data::load_npy<double, shape{32, 32}>(path);
  // Later changes of the file are visible in the mapping only.
  const float changed = -1;
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(128);
    file.write(reinterpret_cast<const char*>(&changed), sizeof changed);
  }
  CHECK(mapped[0](0, 0, 0) == -1);
  CHECK(copied[0](0, 0) == 0);
  CHECK(mapped[1023](31, 31, 0) == float(many.size() - 1));
  CHECK(copied[1023](31, 31) == double(many.size() - 1));
  // The file may be deleted while the array is in use.
  std::filesystem::remove(path);
  CHECK(mapped[5](0, 1, 0) == 5 * 1024 + 1);
}

TEST_CASE("shapes: trailing ones may be missing, nothing else") {
  const scratch_folder f("npy");
  const auto of = [&](const std::string& extents) { return npy(dictionary("<f4", extents), raw(std::vector<float>(12, 1))); };
  const auto size = [&]<shape S>(const std::string& extents) {
    return data::load_npy<float, S>(f.write("s.npy", of(extents))).size();
  };
  CHECK(size.operator()<shape{2, 3, 1}>("(2, 2, 3)") == 2);
  CHECK(size.operator()<shape{2, 3, 1}>("(2, 2, 3, 1)") == 2);
  CHECK(size.operator()<shape{2, 3}>("(2, 2, 3, 1)") == 2);
  CHECK(size.operator()<shape{}>("(12,)") == 12);
  CHECK(size.operator()<shape{1}>("(12,)") == 12);
  CHECK(size.operator()<shape{}>("(12, 1)") == 12);
  CHECK(size.operator()<shape{2, 1, 3}>("(2, 2, 1, 3)") == 2);
  CHECK(data::load_npy<float, shape{3}>(f.write("0.npy", npy(dictionary("<f4", "(0, 3)"), {}))).empty());

  const std::string at = "bad.npy: byte 60: shape: expected any number of samples of shape ";
  CHECK(complaint<float, shape{2, 3, 1}>(f, of("(2, 3, 2)")) == at + "(2, 3, 1), got (2, 3, 2)");
  CHECK(complaint<float, shape{2, 3, 1}>(f, of("(12,)")) == at + "(2, 3, 1), got (12,)");
  CHECK(complaint<float, shape{2, 3, 1}>(f, of("(2, 6)")) == at + "(2, 3, 1), got (2, 6)");
  CHECK(complaint<float, shape{3}>(f, of("(2, 2, 3)")) == at + "(3,), got (2, 2, 3)");
  CHECK(complaint<float, shape{2, 3}>(f, of("(1, 2, 1, 2, 3)")) == at + "(2, 3), got (1, 2, 1, 2, 3)");
  CHECK(complaint<float, shape{}>(f, of("()")) == at + "(), got ()");
}

TEST_CASE("Fortran order is transposed") {
  const scratch_folder f("npy");
  constexpr int n = 150;  // more than two blocks
  const auto value = [](int s, int i, int j, int k) { return std::int16_t(s * 24 + i * 12 + j * 3 + k); };
  for (const bool big : {false, true}) {
    std::vector<std::int16_t> values;
    for (int k = 0; k < 3; ++k)
      for (int j = 0; j < 4; ++j)
        for (int i = 0; i < 2; ++i)
          for (int s = 0; s < n; ++s) values.push_back(value(s, i, j, k));
    const auto path = f.write("f.npy", npy(dictionary(big ? ">i2" : "<i2", "(150, 2, 4, 3)", true), raw(values, big)));
    const auto same = data::load_npy<std::int16_t, shape{2, 4, 3}>(path);
    const auto other = data::load_npy<float, shape{2, 4, 3}>(path);
    for (int s = 0; s < n; ++s)
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
          for (int k = 0; k < 3; ++k) {
            CHECK(same[std::size_t(s)](i, j, k) == value(s, i, j, k));
            CHECK(other[std::size_t(s)](i, j, k) == value(s, i, j, k));
          }
  }
  const auto truth = f.write("fb.npy", npy(dictionary("|b1", "(3, 2)", true), {1, 0, 1, 0, 0, 1}));
  CHECK(values_of(data::load_npy<bool, shape{2}>(truth)) == std::vector<bool>{true, false, false, false, true, true});
}

TEST_CASE("whole numbers are converted if they fit") {
  const scratch_folder f("npy");
  const auto labels = f.write("y.npy", npy(dictionary("<i8", "(3,)"), raw(std::vector<std::int64_t>{0, 255, 7})));
  CHECK(values_of(data::load_npy<std::uint8_t, shape{}>(labels)) == std::vector<std::uint8_t>{0, 255, 7});
  CHECK(values_of(data::load_npy<std::int32_t, shape{}>(labels)) == std::vector<std::int32_t>{0, 255, 7});
  CHECK(complaint<std::int8_t, shape{}>(f, f.read("y.npy")) == "bad.npy: byte 136: value 255 of sample 1 does not fit into int8");
  CHECK(complaint<std::uint64_t>(f, npy(dictionary(">i2", "(1, 2)"), raw(std::vector<std::int16_t>{1, -5}, true))) ==
        "bad.npy: byte 130: value -5 of sample 0 does not fit into uint64");
  CHECK(complaint<std::int64_t, shape{}>(f, npy(dictionary("<u8", "(1,)"), raw(std::vector<std::uint64_t>{1ull << 63}))) ==
        "bad.npy: byte 128: value 9223372036854775808 of sample 0 does not fit into int64");
  constexpr double infinite = std::numeric_limits<double>::infinity();
  CHECK(complaint<float>(f, npy(dictionary("<f8", "(2, 2)"), raw(std::vector<double>{infinite, 3e38, 0, -1e300}))) ==
        "bad.npy: byte 152: value -1e+300 of sample 1 does not fit into float32");
  CHECK(complaint<float>(f, npy(dictionary("<f8", "(1, 2)"), raw(std::vector<double>{-infinite, 1e-300}))) == "no error");
  const bytes floats = npy(dictionary("<f4", "(1, 2)"), raw(std::vector<float>{1, 2}));
  CHECK(complaint<std::int32_t>(f, floats) == "bad.npy: byte 20: dtype: float32 cannot be converted to int32");
  CHECK(complaint<bool>(f, npy(dictionary("|u1", "(1, 2)"), {0, 1})) ==
        "bad.npy: byte 20: dtype: uint8 cannot be converted to bool");
  for (const bool fits : {true, false})
    CHECK((fits ? complaint<bool> : complaint<float>)(f, npy(dictionary("|b1", "(1, 2)"), {0, 2})) ==
          "bad.npy: byte 129: a bool is 0 or 1, got 2");
}

TEST_CASE("what is written is read again, and is what NumPy writes") {
  const scratch_folder f("npy");
  std::vector<float> values(24);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * float(i);
  const data::array<float, shape{2, 3}> x(values);
  data::save_npy(f / "x.npy", x);
  CHECK(f.read("x.npy") == npy(dictionary("<f4", "(4, 2, 3)"), raw(values)));
  CHECK(values_of(data::load_npy<float, shape{2, 3, 1}>(f / "x.npy")) == values);

  const std::vector<std::int64_t> labels{1, 2, 3};
  data::save_npy(f / "y.npy", labels);
  CHECK(f.read("y.npy") == npy(dictionary("<i8", "(3,)"), raw(labels)));
  data::save_npy(f / "w.npy", {values, {4, 6}});
  CHECK(f.read("w.npy") == npy(dictionary("<f4", "(4, 6)"), raw(values)));
  data::save_npy(f / "u.npy", {std::span(values).first(1), {}});
  CHECK(f.read("u.npy") == npy(dictionary("<f4", "()"), bytes(4)));
  CHECK(error_of([&] { data::save_npy(f / "w.npy", {values, {5, 5}}); }) ==
        "npy: 24 values do not fill an array of shape (5, 5)");
  CHECK(error_of([&] { data::save_npy(f / "no" / "w.npy", values); }).find("cannot write " + (f / "no" / "w.npy").string()) == 0);
}

TEST_CASE("dictionaries as others write them") {
  const scratch_folder f("npy");
  for (const std::string& text : {std::string("{'shape':(2,2),'fortran_order':False,'descr':'<f4'}"),
                                  std::string("{\"descr\": \"<f4\",\n \"fortran_order\": False, \"shape\": (2L, 2L)}"),
                                  std::string("{ 'descr' : '=f4' , 'fortran_order' : False , 'shape' : ( 2 , 2 , ) , } ")})
    CHECK(values_of(data::load_npy<float, shape{2}>(f.write("d.npy", npy(text, raw(std::vector<float>{1, 2, 3, 4}))))) ==
          std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("what is wrong with a file, and where") {
  const scratch_folder f("npy");
  const bytes four = raw(std::vector<float>{1, 2, 3, 4}), good = npy(dictionary("<f4", "(2, 2)"), four);
  CHECK(complaint(f, good) == "no error");
  CHECK(complaint(f, {}) == "bad.npy: byte 0: the file ends, expected 10 bytes, got 0");
  CHECK(complaint(f, bytes_of("not a numpy file")) == "bad.npy: byte 0: not a .npy file, which starts with \\x93NUMPY");
  CHECK(complaint(f, npy(dictionary("<f4", "(2, 2)"), four, 4)) == "bad.npy: byte 6: format version: expected 1, 2 or 3, got 4");
  CHECK(complaint(f, bytes(good.begin(), good.begin() + 50)) == "bad.npy: byte 50: the file ends, expected 128 bytes, got 50");
  CHECK(complaint(f, bytes(good.begin(), good.end() - 1)) ==
        "bad.npy: byte 60: shape (2, 2) of float32, 8 bytes a sample: the file, 143 bytes, is too short");
  CHECK(complaint(f, good + bytes{0}) == "bad.npy: byte 144: bytes follow the last value");
  CHECK(complaint(f, npy(dictionary("<f4", "(18446744073709551615, 2)"), four)) ==
        "bad.npy: byte 60: shape (18446744073709551615, 2) of float32, 8 bytes a sample: the file, 144 bytes, is too short");
  CHECK(complaint(f, npy(dictionary("<f4", "(18446744073709551616, 2)"), four)) ==
        "bad.npy: byte 61: an extent of the shape does not fit into 64 bits");
  CHECK(complaint(f, npy(dictionary("<f4", "(-2, 2)"), four)) == "bad.npy: byte 61: shape: expected a whole number from 0");
  CHECK(complaint(f, npy(dictionary("<c8", "(1, 2)"), four)) ==
        "bad.npy: byte 20: dtype '<c8' is not one of bool, int8 to int64, uint8 to uint64, float16 to float64");
  for (const std::string type : {"<U4", "|S4", "<M8[ns]", "<f16", "<i3", "f4", "<f", "", "?f4", "<b4", "|V2"})
    CHECK(complaint(f, npy(dictionary(type, "(2, 2)"), four)).find("bad.npy: byte 20: dtype '" + type + "' is not one of") == 0);
  CHECK(complaint(f, npy(dictionary("|O", "(2, 2)"), four)) ==
        "bad.npy: byte 20: dtype '|O': pickled Python objects, not numbers");
  CHECK(complaint(f, npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }", four)) ==
        "bad.npy: byte 20: the array has fields of several types: save each as an array of its own");
  CHECK(complaint(f, npy("{'descr': '<f4', 'shape': (2, 2), }", four)).find("the header lacks descr, fortran_order or shape") !=
        std::string::npos);
  CHECK(complaint(f, npy("{'descr': '<f4', 'descr': '<f4', }", four)) ==
        "bad.npy: byte 27: the header has the key 'descr', which is unknown or occurs twice");
  CHECK(complaint(f, npy("{'descr': '<f4', 'fortran_order': 1, }", four)) ==
        "bad.npy: byte 44: fortran_order: expected True or False");
  CHECK(complaint(f, npy(dictionary("<f4", "(2, 2)") + "x", four)) ==
        "bad.npy: byte 69: there is text after the dictionary of the header");
  CHECK(complaint(f, npy("{'descr: }", four)).find("the header is damaged: expected '''") != std::string::npos);
  CHECK(f.without_folder(error_of([&] { (void)data::load_npy<float, shape{}>(f / "none"); })) ==
        "cannot read none: No such file or directory");
  CHECK(f.without_folder(error_of([&] { (void)data::load_npy<float, shape{}>(f.path); })) ==
        "cannot read " + f.path.string() + ": Is a directory");
}

TEST_CASE("a damaged file is read or refused, never more") {
  const scratch_folder f("npy");
  const bytes whole = npy(dictionary("<f4", "(2, 2)"), raw(std::vector<float>{1, 2, 3, 4}));
  int read = 0, refused = 0;
  const auto attempt = [&](const bytes& content) {
    const auto path = f.write("m.npy", content);
    try {
      const auto x = data::load_npy<double, shape{2}>(path);
      double sum = 0;
      for (const double v : x.values()) sum += v;
      read += sum == sum || sum != sum;
    } catch (const strata_error& e) {
      CHECK(std::string(e.what()).find(path.string()) != std::string::npos);
      ++refused;
    }
  };
  for (std::size_t n = 0; n <= whole.size(); ++n) attempt(bytes(whole.begin(), whole.begin() + std::ptrdiff_t(n)));
  CHECK(read == 1);
  for (std::uint32_t i = 0; i < 5'000; ++i) {
    const auto r = philox{1}(i, 0);
    bytes content = whole;
    content[r[0] % content.size()] = std::uint8_t(r[1]);
    if (r[2] % 2) content[r[0] % 70] = std::uint8_t("0123456789()[]{}',: <>|"[r[1] % 23]);
    if (r[2] % 3 == 0) content[r[3] % content.size()] ^= std::uint8_t(1u << r[1] % 8);
    attempt(content);
  }
  CHECK(read > 125);
  CHECK(refused > 250);
}

TEST_CASE("a file as the start of a pipeline") {
  const scratch_folder f("npy");
  data::save_npy(f / "x.npy", data::array<float, shape{2}>(std::vector<float>{1, 2, 3, 4, 5, 6}));
  const std::array labels{2, 0, 1};
  data::save_npy(f / "y.npy", labels);
  auto batches =
      data::from_tensor_slices(data::load_npy<float, shape{2}>(f / "x.npy"), data::load_npy<std::int32_t, shape{}>(f / "y.npy")) |
      data::batch<3>;
  int seen = 0;
  for (const auto& b : batches) {
    ++seen;
    CHECK(b.x()[3] == 4);
    CHECK(b.labels()[0] == 2);
  }
  CHECK(seen == 1);
}
