// tf.train.Example: files of TensorFlow, every encoding that protobuf allows, and bytes that are no Example.
// needs: protozero
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <strata/base/random.hpp>
#include <strata/data/formats/example.hpp>
#include <strata/data/formats/example_builder.hpp>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/map.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "repetitions.hpp"
#include "tf_record_files.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
using bytes_view = std::span<const std::byte>;

bytes_view bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string text_of(bytes_view bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// A length-delimited field of protobuf's wire format.
std::string field(int number, const std::string& content) {
  std::string out(1, char(number << 3 | 2));
  std::size_t size = content.size();
  for (; size >= 128; size >>= 7) out += char(size | 128);
  return out + char(size) + content;
}
std::string entry(const std::string& key, const std::string& feature) { return field(1, field(1, key) + field(2, feature)); }
std::string example_of(const std::string& entries) { return field(1, entries); }

const std::string half("\0\0\0\x3f", 4), two("\0\0\0\x40", 4);          // 0.5f, 2.0f
const std::string minus_two("\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1");  // as a varint

template <class F>
std::string complaint(const std::string& serialized, F&& f) {
  return error_of([&] { f(data::example(bytes_of(serialized))); });
}
}  // namespace

TEST_CASE("an Example that TensorFlow wrote") {
  const std::string file = from_hex(written_by_tensorflow), record = file.substr(95 + 12, 79);
  const data::example e(bytes_of(record));
  CHECK(e.keys() == std::vector<std::string_view>{"label", "name", "x"});
  CHECK(e.contains("x"));
  CHECK(!e.contains("X"));
  CHECK(e.kind("x") == data::feature_kind::floats);
  CHECK(e.kind("label") == data::feature_kind::integers);
  CHECK(e.kind("name") == data::feature_kind::bytes);
  CHECK(e.size("x") == 3);
  CHECK(e.size("name") == 2);
  CHECK(e.floats<3>("x") == std::array{0.5f, -1.0f, 1.1f});
  CHECK(e.floats("x") == std::vector{0.5f, -1.0f, 1.1f});
  CHECK(e.integers<3>("label") == std::array<std::int64_t, 3>{1, -3, std::int64_t{1} << 40});
  CHECK(e.integers("label") == std::vector<std::int64_t>{1, -3, std::int64_t{1} << 40});
  const auto names = e.bytes_list("name");
  REQUIRE(names.size() == 2);
  CHECK(text_of(names[0]) == std::string("na\0me1", 6));
  CHECK(names[0].data() == bytes_of(record).data() + record.find("me1") - 3);  // no copy
  CHECK(names[1].empty());

  data::example_builder b;
  b.integers("label", e.integers("label")).bytes_list("name", names).floats("x", e.floats("x"));
  CHECK(text_of(b.serialized()) == record);
}

TEST_CASE("what is not there, or of another kind or number, is named") {
  data::example_builder b;
  CHECK(error_of([&] { data::example(b.serialized()).integer("y"); }) == "there is no feature 'y': the Example is empty");
  b.floats("x", std::vector{1.0f, 2.0f}).integer("label", -7).text("name", "seven").floats("none", {});
  const std::string serialized = text_of(b.serialized());
  const data::example e(bytes_of(serialized));
  CHECK(e.integer("label") == -7);
  CHECK(e.text("name") == "seven");
  CHECK(e.bytes<5>("name") == std::array<std::uint8_t, 5>{'s', 'e', 'v', 'e', 'n'});
  CHECK(e.bytes<shape{1, 5}>("name")(0, 4) == 'n');
  CHECK(e.floats<shape{2, 1}>("x")(1, 0) == 2);
  CHECK(e.floats("none").empty());
  CHECK(e.floats<0>("none").empty());
  CHECK(error_of([&] { e.integer("y"); }) == "there is no feature 'y', but x, label, name, none");
  CHECK(error_of([&] { e.integer("x"); }) == "feature 'x' holds floats, not int64s");
  CHECK(error_of([&] { e.floats("label"); }) == "feature 'label' holds int64s, not floats");
  CHECK(error_of([&] { e.number("name"); }) == "feature 'name' holds byte strings, not floats");
  CHECK(error_of([&] { e.bytes("x"); }) == "feature 'x' holds floats, not byte strings");
  CHECK(error_of([&] { e.number("x"); }) == "feature 'x' has 2 floats, not 1");
  CHECK(error_of([&] { e.floats<784>("x"); }) == "feature 'x' has 2 floats, not 784");
  CHECK(error_of([&] { e.floats<shape{3}>("x"); }) == "feature 'x' has 2 floats, not 3");
  CHECK(error_of([&] { e.bytes<784>("name"); }) == "feature 'name' has 5 bytes, not 784");
  std::vector<float> guarded(3, 9.0f);
  CHECK(error_of([&] { e.floats("x", std::span(guarded).first(1)); }) == "feature 'x' has 2 floats, not 1");
  CHECK(guarded[1] == 9);
  e.floats("x", std::span(guarded).first(2));
  CHECK(guarded == std::vector{1.0f, 2.0f, 9.0f});

  b.clear();
  for (int i = 0; i < 12; ++i) b.integer("key " + std::to_string(i), i);
  CHECK(error_of([&] { data::example(b.serialized()).integer("\n"); }).ends_with("key 8, key 9, ..."));
  CHECK(error_of([&] { data::example(b.serialized()).integer("\n"); }).starts_with("there is no feature '\\n', but"));
}

TEST_CASE("all values survive") {
  const std::vector<std::int64_t> integers{
      0, 1, -1, 127, 128, 300, std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  std::vector<float> floats{-0.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::denorm_min()};
  for (int i = 0; i < 5'000; ++i) floats.push_back(float(i));
  const std::string large(70'000, 'l');
  data::example_builder b;
  for (int round = 0; round < 2; ++round) {
    b.clear();
    b.integers("i", integers).floats("f", floats).text("", large).text(large, "").integer("i2", 5).integer("i2", 6);
    const data::example e(b.serialized());
    CHECK(e.integers("i") == integers);
    const std::vector<float> read = e.floats("f");
    CHECK(std::ranges::equal(std::as_bytes(std::span(read)), std::as_bytes(std::span(floats))));
    CHECK(e.text("") == large);
    CHECK(e.text(large).empty());
    CHECK(e.integer("i2") == 6);  // the later one counts
    CHECK(e.keys().size() == 5);
  }
}

TEST_CASE("everything that protobuf allows") {
  using e = data::example;
  const auto floats = [](const std::string& list) { return e(bytes_of(example_of(entry("x", field(2, list))))).floats("x"); };
  const auto integers = [](const std::string& list) { return e(bytes_of(example_of(entry("x", field(3, list))))).integers("x"); };
  // packed, one by one, both, in several parts, and among fields that are unknown
  CHECK(floats(field(1, half + two)) == std::vector{0.5f, 2.0f});
  CHECK(floats("\x0d" + half + "\x0d" + two) == std::vector{0.5f, 2.0f});
  CHECK(floats(field(1, two) + "\x0d" + half + field(7, "unknown") + field(1, "") + field(1, two)) ==
        std::vector{2.0f, 0.5f, 2.0f});
  CHECK(integers(field(1, minus_two + "\5")) == std::vector<std::int64_t>{-2, 5});
  CHECK(integers("\x08" + minus_two + "\x08\5") == std::vector<std::int64_t>{-2, 5});
  CHECK(integers("\x08\1" + field(1, minus_two + "\2") + std::string("\x15zzzz") + "\x08\3") ==
        std::vector<std::int64_t>{1, -2, 2, 3});

  const auto first = [](const std::string& serialized) { return e(bytes_of(serialized)).floats("x"); };
  const std::string one = field(1, half), other = field(1, two);
  // parts of a message are one message; of equal keys the last counts
  CHECK(first(example_of(entry("y", "")) + example_of(entry("x", field(2, one)))) == std::vector{0.5f});
  CHECK(first(example_of(entry("x", field(2, other)) + entry("x", field(2, one)))) == std::vector{0.5f});
  CHECK(first(example_of(entry("x", field(2, one))) + example_of(entry("x", field(2, other)))) == std::vector{2.0f});
  // value before key, and no key: ""
  CHECK(first(example_of(field(1, field(2, field(2, one)) + field(1, "x")))) == std::vector{0.5f});
  CHECK(e(bytes_of(example_of(field(1, field(2, field(2, one)))))).number("") == 0.5f);
  // a oneof: the last kind counts; the same kind again goes on
  CHECK(first(example_of(entry("x", field(3, field(1, "\1")) + field(2, one)))) == std::vector{0.5f});
  CHECK(first(example_of(entry("x", field(2, one) + field(2, other)))) == std::vector{0.5f, 2.0f});
  CHECK(first(example_of(entry("x", field(2, one) + field(3, field(1, "\1")) + field(2, other)))) == std::vector{2.0f});
  CHECK(complaint(example_of(entry("x", field(2, one) + field(3, field(1, "\1")))), [](const e& x) { x.floats("x"); }) ==
        "feature 'x' holds int64s, not floats");
  CHECK(complaint(example_of(entry("x", "")), [](const e& x) { x.floats("x"); }) == "feature 'x' holds no list, not floats");
  CHECK(complaint(example_of(field(1, field(1, "x"))), [](const e& x) { x.bytes("x"); }) ==
        "feature 'x' holds no list, not byte strings");
  CHECK(e(bytes_of(example_of(entry("x", "")))).kind("x") == data::feature_kind::none);
  CHECK(e(bytes_of(example_of(entry("x", "")))).size("x") == 0);
}

TEST_CASE("bytes that are no Example") {
  const auto refused = [](const std::string& serialized) {
    const std::string text = complaint(serialized, [](const data::example& e) { e.floats("x"); });
    return text.starts_with("the bytes are not a tf.train.Example (");
  };
  CHECK(refused("no Example"));
  CHECK(refused(std::string("\x0a\x05", 2)));                                    // the end within a field
  CHECK(refused(example_of(entry("x", field(2, field(1, "five!"))))));           // no whole number of floats
  CHECK(refused(example_of(entry("x", field(2, std::string("\x0d\0\0", 3))))));  // half a float
  CHECK(refused(std::string("\0", 1)));                                          // field number 0
  CHECK(refused("\x0b"));                                                        // a group
  CHECK(refused("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"));                // a number without an end
  CHECK(complaint(example_of(entry("x", field(3, field(1, "\xff")))), [](const data::example& e) {
          e.integers("x");
        }).starts_with("the bytes are not a tf.train.Example ("));
}

TEST_CASE("a record full of keys takes no longer than its bytes") {
  std::string entries;  // comparing each key with each would take longer than a test may
  const int count = repetitions(600'000, 100'000);
  for (int i = 0; i < count; ++i) entries += entry("k" + std::to_string(i), "");
  entries += entry("k7", "") + entry("k0", "");
  const std::string record = example_of(entries);
  const auto keys = data::example(bytes_of(record)).keys();
  CHECK(keys.size() == std::size_t(count));
  CHECK(keys[7] == "k7");
  CHECK(keys.back() == "k" + std::to_string(count - 1));
  CHECK(complaint(record, [](const data::example& e) { e.number("x"); }) ==
        "there is no feature 'x', but k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, ...");
}

TEST_CASE("hostile bytes end in an error or in values, never anywhere else") {
  data::example_builder b;
  b.floats("x", std::vector<float>(10, 1.0f)).integers("label", std::vector<std::int64_t>{1, -2, 300}).text("name", "a name");
  const std::string whole = text_of(b.serialized()) + example_of(entry("x", field(2, "\x0d" + half)));
  const philox random{3};
  std::size_t refused = 0;
  const auto rounds = std::uint64_t(repetitions(5'000, 1'000));
  for (std::uint64_t k = 0; k < rounds; ++k) {
    std::string bad = whole.substr(0, k % 3 == 0 ? random(k, 1)[0] % whole.size() : whole.size());
    for (std::uint32_t n = 0; n <= random(k, 0)[0] % 3 && !bad.empty(); ++n) {
      const auto change = random(k, 2 + n);
      const char edge[] = {'\0', '\x7f', '\x80', '\xff', char(change[2])};
      bad[change[0] % bad.size()] = edge[change[1] % 5];
    }
    const std::vector<char> exactly(bad.begin(), bad.end());  // so that a sanitizer sees reads past the end
    const data::example e(std::as_bytes(std::span(exactly)));
    for (const char* key : {"x", "label", "name"}) {
      const auto attempt = [&](auto&& f) {
        const std::string text = error_of(f);
        bool known = text == "no error";
        for (const char* words : {"the bytes are not a tf.train.Example (", "there is no feature '", "feature '"})
          known = known || text.starts_with(words);
        CHECK(known);
        refused += text != "no error";
      };
      attempt([&] { e.floats(key); });
      attempt([&] { e.floats<10>(key); });
      attempt([&] { e.integers(key); });
      attempt([&] { e.bytes_list(key); });
      attempt([&] { e.size(key); });
      attempt([&] { e.kind(key); });
      attempt([&] { e.keys(); });
    }
  }
  CHECK(refused > rounds);
}

TEST_CASE("samples of records") {
  std::vector<std::string> records;
  data::example_builder b;
  for (int i = 0; i < 10; ++i) {
    b.clear();
    const float x = float(i);
    b.floats("x", std::array{x, x + 0.5f}).integer("label", i % 3);
    records.push_back(text_of(b.serialized()));
  }
  auto pairs = data::from_range(records) | data::map([](const std::string& record) {
                 const data::example e(bytes_of(record));
                 return std::pair(e.floats<2>("x"), e.integer("label"));
               }) |
               data::batch<10>;
  for (const auto& batch : pairs)
    for (int i = 0; i < 10; ++i) {
      CHECK(batch.x()[2 * i + 1] == float(i) + 0.5f);
      CHECK(batch.labels()[i] == i % 3);
    }
  auto straight =
      data::from_range(records) |
      data::map_to<shape{2}>([](const std::string& record, auto out) { data::example(bytes_of(record)).floats("x", out); }) |
      data::batch<10>;
  for (const auto& batch : straight) CHECK(batch.x()[19] == 9.5f);
}
