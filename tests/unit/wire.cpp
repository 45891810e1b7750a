// needs: protozero
// Messages between processes: what is encoded is decoded, newer fields are skipped, and any other bytes cause one error.
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <strata/net/message.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "error_of.hpp"
using namespace strata;
using namespace std::chrono_literals;
using strata::test::error_of;

namespace {
enum class colour : std::uint8_t { red, green, blue };

struct inner {
  int number = 7;
  std::string text{};
  static constexpr auto message_name = "inner";
  using fields = wire::fields<wire::field<1, &inner::number>, wire::field<2, &inner::text, 10>>;
  friend bool operator==(const inner&, const inner&) = default;
};
struct outer {
  bool flag = false;
  int small = 0;
  std::int64_t large = 0;
  std::uint32_t id = 0;
  std::uint64_t hash = 0;
  float single = 0;
  double full = 0;
  colour paint = colour::red;
  std::chrono::milliseconds time{};
  std::string_view view{};
  inner one{};
  std::vector<std::uint32_t> rows{};
  std::vector<int> ranks{};
  std::vector<double> sums{};
  std::vector<std::string> texts{};
  std::vector<inner> parts{};
  static constexpr auto message_name = "outer";
  using fields = wire::fields<wire::field<1, &outer::flag>, wire::field<2, &outer::small>, wire::field<3, &outer::large>,
                              wire::field<4, &outer::id>, wire::field<5, &outer::hash>, wire::field<6, &outer::single>,
                              wire::field<7, &outer::full>, wire::field<8, &outer::paint, std::size_t(colour::blue)>,
                              wire::field<9, &outer::time>, wire::field<10, &outer::view>, wire::field<11, &outer::one>,
                              wire::field<12, &outer::rows, 4>, wire::field<13, &outer::ranks, 4>, wire::field<14, &outer::sums>,
                              wire::field<15, &outer::texts, 4>, wire::field<16, &outer::parts, 3>>;
  friend bool operator==(const outer&, const outer&) = default;
};
/// The fields of an `outer` that an older program has.
struct older {
  std::uint32_t id = 0;
  static constexpr auto message_name = "older";
  using fields = wire::fields<wire::field<4, &older::id>>;
};

outer example() {
  return {.flag = true,
          .small = -3,
          .large = std::numeric_limits<std::int64_t>::min(),
          .id = 0xFFFFFFFF,
          .hash = 0x0123456789ABCDEF,
          .single = 0.1f,
          .full = -1e300,
          .paint = colour::blue,
          .time = -5ms,
          .view = std::string_view("\0text", 5),
          .one = inner{-1, "in"},
          .rows = {0, 4, 0xFFFFFFFF},
          .ranks = {-1, 0, 1 << 30},
          .sums = {0.5, -0.25},
          .texts = {"", "b"},
          .parts = {inner{}, inner{2, "two"}}};
}
template <class M>
std::string refusal(const std::string& bytes) {
  return error_of<wire::malformed_message>([&] { wire::decode<M>(bytes); });
}
}  // namespace

static_assert(wire::message<outer> && !wire::message<int> && !wire::message<std::string>);

TEST_CASE("what is written is read") {
  const std::string bytes = wire::encode(example());
  CHECK(wire::decode<outer>(bytes) == example());
  CHECK(wire::decode<outer>("") == outer{});
  CHECK(wire::decode<inner>("") == inner{});
  const std::string empty = wire::encode(outer{});
  CHECK(wire::decode<outer>(empty) == outer{});
}

TEST_CASE("the bytes are protobuf's: as protoc encodes them") {
  // sint64 -3 is 5; fixed32; string; packed fixed32 and packed sint64: https://protobuf.dev/programming-guides/encoding/
  CHECK(wire::encode(inner{-3, "ab"}) == std::string("\x08\x05\x12\x02"
                                                     "ab"));
  CHECK(wire::encode(older{0x04030201}) == std::string("\x25\x01\x02\x03\x04"));
  outer lists;
  lists.rows = {1, 2}, lists.ranks = {-1, 64};
  const std::string bytes = wire::encode(lists);
  CHECK(bytes.find(std::string("\x62\x08\1\0\0\0\2\0\0\0", 10)) != bytes.npos);
  CHECK(bytes.find(std::string("\x6a\x03\x01\x80\x01")) != bytes.npos);
  // Elements of a list may also come one by one.
  CHECK(wire::decode<outer>(std::string("\x65\1\0\0\0\x65\2\0\0\0\x68\1\x68\x80\1", 15)).rows == lists.rows);
}

TEST_CASE("fields of a newer program are skipped, and a field that comes twice counts once") {
  CHECK(wire::decode<older>(wire::encode(example())).id == 0xFFFFFFFF);
  CHECK(wire::decode<inner>(wire::encode(inner{1, "a"}) + wire::encode(inner{2, "b"})) == inner{2, "b"});
}

TEST_CASE("malformed bytes are one error, which names the message and the field") {
  CHECK(refusal<inner>("\x08") == "malformed inner: end of buffer exception in 1 bytes");
  CHECK(refusal<inner>("\x0d____") == "malformed inner: field 1 has wire type 5 instead of 0");
  CHECK(refusal<inner>(wire::encode(inner{1, "eleven bytes"})) == "malformed inner: field 2 holds 12 bytes; the limit is 10");
  outer large;
  large.large = std::int64_t(1) << 31;
  const std::string bytes = wire::encode(large);
  CHECK(refusal<inner>("\x08" + bytes.substr(bytes.find("\x18\x80\x80") + 1, 5)) ==
        "malformed inner: field 1 holds 2147483648, which does not fit into 32 bits");
  CHECK(refusal<outer>("\x40\x03") == "malformed outer: field 8 holds 3; the limit is 2");
  CHECK(refusal<outer>("\x62\x03...") == "malformed outer: field 12 holds 3 bytes, which is not a multiple of 4");
  CHECK(refusal<outer>("\x62\x14....................") == "malformed outer: field 12 holds 5 elements; the limit is 4");
  CHECK(refusal<outer>("\x6a\x05\1\1\1\1\1") == "malformed outer: field 13 holds 5 elements; the limit is 4");
  CHECK(refusal<outer>("\x82\1\0\x82\1\0\x82\1\0\x82\1\0") == "malformed outer: end of buffer exception in 2 bytes");
  CHECK(refusal<outer>(std::string("\x82\1\0\x82\1\0\x82\1\0\x82\1\0", 12)) ==
        "malformed outer: field 16 holds 4 elements; the limit is 3");
  outer late;
  late.time = std::chrono::milliseconds(std::numeric_limits<std::int64_t>::max());
  CHECK(refusal<outer>(wire::encode(late)) ==
        "malformed outer: field 9 holds 9223372036854775807 ms; the limit is 35184372088832");
}

TEST_CASE("every damage to every byte either reads or is that error") {
  const std::string good = wire::encode(example());
  int refused = 0, count = 0;
  const auto attempt = [&](const std::string& bytes) {
    ++count;
    try {
      (void)wire::decode<outer>(bytes);
    } catch (const wire::malformed_message&) {
      ++refused;
    }
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    attempt(good.substr(0, i));
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = good;
      bytes[i] ^= char(1 << bit);
      attempt(bytes);
    }
  }
  std::mt19937 random(7);
  for (int k = 0; k < 20'000; ++k) {
    std::string bytes(random() % 60, '\0');
    for (char& b : bytes) b = char(random());
    attempt(bytes);
  }
  CHECK(refused > count / 2);
}
