// tf.train.Example: named lists of bytes, floats and int64s, as in most TFRecord files. Needs protozero (headers only).
// needs: protozero
#pragma once
#ifndef __cpp_exceptions
#error "protozero, which handles tf.train.Example, throws exceptions: compile the program without -fno-exceptions"
#endif
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <set>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/base/tensor.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/sample.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace strata::data {

/// The element type of the list of a feature. The values are the field numbers of tf.train.Feature; none: there is no list.
enum class feature_kind { none = 0, bytes = 1, floats = 2, integers = 3 };

/// Reads the features of a serialized tf.train.Example, which must outlive this object and the results. Each call searches all
/// features for the key, in a time that grows with the bytes of the record; only members that return a std::vector allocate:
///
///     train | data::map([](std::span<const std::byte> record) {
///       const data::example e(record);
///       return std::pair(e.floats<784>("image"), e.integer("label"));
///     })
///
/// As in protobuf, the last of equal keys is used, unknown fields are skipped, and lists may be packed or not. All members throw
/// strata_error, with the key, if there is no such feature or if it holds another kind or number of values, and if the
/// bytes are not an Example. https://www.tensorflow.org/api_docs/python/tf/train/Example
class example {
 public:
  explicit example(std::span<const std::byte> serialized)
      : serialized_(reinterpret_cast<const char*>(serialized.data()), serialized.size()) {}

  bool contains(std::string_view key) const {
    return parse([&] { return find(key).has_value(); });
  }
  feature_kind kind(std::string_view key) const {
    return parse([&] { return list_of(key).kind; });
  }
  /// The number of values.
  std::size_t size(std::string_view key) const {
    return parse([&] {
      const list of = list_of(key);
      if (of.kind == feature_kind::floats) return count<float>(of);
      if (of.kind == feature_kind::integers) return count<std::int64_t>(of);
      return count<bytes_view>(of);
    });
  }
  std::vector<std::string_view> keys() const {
    std::vector<std::string_view> all;
    parse([&] {
      std::set<std::string_view> seen;  // comparing each key with all others takes minutes for a record that is full of keys
      for_each_feature([&](std::string_view key, protozero::data_view) {
        if (seen.insert(key).second) all.push_back(key);
      });
    });
    return all;
  }

  // Features with one value; bytes are not copied.
  std::span<const std::byte> bytes(std::string_view key) const { return single<bytes_view>(key); }
  std::string_view text(std::string_view key) const {
    const auto all = bytes(key);
    return {reinterpret_cast<const char*>(all.data()), all.size()};
  }
  float number(std::string_view key) const { return single<float>(key); }
  std::int64_t integer(std::string_view key) const { return single<std::int64_t>(key); }

  // Lists of a known number of values: floats<784>, floats<shape{28, 28, 1}>, or as many as `out` has.
  template <std::size_t N>
  std::array<float, N> floats(std::string_view key) const {
    std::array<float, N> out;
    fill(key, std::span<float>(out));
    return out;
  }
  template <shape S>
  stored_tensor<float, S> floats(std::string_view key) const {
    stored_tensor<float, S> out;
    fill(key, std::span<float>(out.values));
    return out;
  }
  template <std::size_t N>
  std::array<std::int64_t, N> integers(std::string_view key) const {
    std::array<std::int64_t, N> out;
    fill(key, std::span<std::int64_t>(out));
    return out;
  }
  void floats(std::string_view key, std::span<float> out) const { fill(key, out); }
  void integers(std::string_view key, std::span<std::int64_t> out) const { fill(key, out); }
  /// Writes into a batch: `map_to<shape{28, 28, 1}>([](const auto& record, auto x) { example(record).floats("image", x); })`.
  template <shape S>
  void floats(std::string_view key, tensor<float, S> out) const {
    fill(key, std::span<float>(out.data, std::size_t{S.size()}));
  }

  // One value with a known number of bytes, such as the pixels of an image.
  template <std::size_t N>
  std::array<std::uint8_t, N> bytes(std::string_view key) const {
    std::array<std::uint8_t, N> out;
    copy_bytes(key, out);
    return out;
  }
  template <shape S>
  stored_tensor<std::uint8_t, S> bytes(std::string_view key) const {
    stored_tensor<std::uint8_t, S> out;
    copy_bytes(key, out.values);
    return out;
  }

  // Lists of any number of values.
  std::vector<std::span<const std::byte>> bytes_list(std::string_view key) const { return vector_of<bytes_view>(key); }
  std::vector<float> floats(std::string_view key) const { return vector_of<float>(key); }
  std::vector<std::int64_t> integers(std::string_view key) const { return vector_of<std::int64_t>(key); }

 private:
  using bytes_view = std::span<const std::byte>;
  using wire = protozero::pbf_wire_type;

  template <class T>
  static constexpr feature_kind kind_of = std::is_same_v<T, float>          ? feature_kind::floats
                                          : std::is_same_v<T, std::int64_t> ? feature_kind::integers
                                                                            : feature_kind::bytes;

  /// A tf.train.Feature. Its lists are a oneof: the last kind is used, and all lists of this kind after it are joined.
  struct list {
    std::string_view key;
    feature_kind kind = feature_kind::none;
    protozero::pbf_reader fields{};  // begins with a list of that kind
  };

  protozero::data_view serialized_;

  template <class F>
  static std::invoke_result_t<F&> parse(F&& f) {
    try {
      return f();
    } catch (const protozero::exception& failure) {
      throw_error(std::string("the bytes are not a tf.train.Example (") + failure.what() + ')');
    }
  }

  /// Calls f(key, serialized Feature). In protobuf a map is a list of messages of key and value.
  template <class F>
  void for_each_feature(F&& f) const {
    for (protozero::pbf_reader fields(serialized_); fields.next(1, wire::length_delimited);)
      for (protozero::pbf_reader features = fields.get_message(); features.next(1, wire::length_delimited);) {
        std::string_view key;
        protozero::data_view value;
        for (protozero::pbf_reader entry = features.get_message(); entry.next();) {
          if (entry.tag_and_type() == protozero::tag_and_type(1, wire::length_delimited)) {
            const protozero::data_view text = entry.get_view();
            key = {text.data(), text.size()};
          } else if (entry.tag_and_type() == protozero::tag_and_type(2, wire::length_delimited)) {
            value = entry.get_view();
          } else {
            entry.skip();
          }
        }
        f(key, value);
      }
  }

  std::optional<protozero::data_view> find(std::string_view wanted) const {
    std::optional<protozero::data_view> found;
    for_each_feature([&](std::string_view key, protozero::data_view value) {
      if (key == wanted) found = value;
    });
    return found;
  }

  list list_of(std::string_view key) const {
    const std::optional<protozero::data_view> feature = find(key);
    if (!feature) throw_error("there is no feature " + strata::detail::quoted(key) + known());
    list of{key};
    protozero::pbf_reader fields(*feature), here = fields;
    for (; fields.next(); here = fields) {
      const auto tag = fields.tag();
      if (fields.wire_type() == wire::length_delimited && tag >= 1 && tag <= 3 && feature_kind(tag) != of.kind)
        of = {key, feature_kind(tag), here};
      fields.skip();
    }
    return of;
  }

  /// Calls f(iterator, count) for each piece of the list.
  template <class T, class F>
  static void for_each_piece(const list& of, F&& f) {
    for (protozero::pbf_reader fields = of.fields; fields.next(protozero::pbf_tag_type(of.kind), wire::length_delimited);)
      for (protozero::pbf_reader values = fields.get_message(); values.next();) read_piece(values, f, std::type_identity<T>{});
  }
  static constexpr std::uint32_t one_int64 = protozero::tag_and_type(1, wire::varint);
  static constexpr std::uint32_t one_float = protozero::tag_and_type(1, wire::fixed32);
  static constexpr std::uint32_t packed = protozero::tag_and_type(1, wire::length_delimited), one_string = packed;

  template <class F>
  static void read_piece(protozero::pbf_reader& values, F&& f, std::type_identity<bytes_view>) {
    if (values.tag_and_type() != one_string) return values.skip();
    const protozero::data_view view = values.get_view();
    const bytes_view value(reinterpret_cast<const std::byte*>(view.data()), view.size());
    f(&value, 1);
  }
  template <class F>
  static void read_piece(protozero::pbf_reader& values, F&& f, std::type_identity<float>) {
    if (values.tag_and_type() == packed) {
      const auto floats = values.get_packed_float();
      f(floats.begin(), floats.size());
    } else if (values.tag_and_type() == one_float) {
      const float value = values.get_float();
      f(&value, 1);
    } else {
      values.skip();
    }
  }
  template <class F>
  static void read_piece(protozero::pbf_reader& values, F&& f, std::type_identity<std::int64_t>) {
    if (values.tag_and_type() == packed) {
      const protozero::data_view integers = values.get_view();
      for (const char *at = integers.data(), *end = at + integers.size(); at != end;) {
        const auto value = static_cast<std::int64_t>(protozero::decode_varint(&at, end));
        f(&value, 1);
      }
    } else if (values.tag_and_type() == one_int64) {
      const std::int64_t value = values.get_int64();
      f(&value, 1);
    } else {
      values.skip();
    }
  }
  template <class T>
  static std::size_t count(const list& of) {
    std::size_t n = 0;
    for_each_piece<T>(of, [&](auto, std::size_t some) { n += some; });
    return n;
  }

  template <class T>
  list list_with(std::string_view key) const {
    const list of = list_of(key);
    if (of.kind != kind_of<T>)
      throw_error("feature " + strata::detail::quoted(key) + " holds " + name(of.kind) + ", not " + name(kind_of<T>));
    return of;
  }
  template <class T>
  void fill(std::string_view key, std::span<T> out) const {
    parse([&] {
      std::size_t n = 0;
      for_each_piece<T>(list_with<T>(key), [&](auto first, std::size_t some) {
        if (some <= out.size() - std::min(n, out.size())) std::copy_n(first, some, out.data() + n);
        n += some;
      });
      if (n != out.size())
        throw_error("feature " + strata::detail::quoted(key) + " has " + std::to_string(n) + ' ' + name(kind_of<T>) + ", not " +
                    std::to_string(out.size()));
    });
  }
  template <class T>
  T single(std::string_view key) const {
    T value{};
    fill(key, std::span(&value, 1));
    return value;
  }
  void copy_bytes(std::string_view key, std::span<std::uint8_t> out) const {
    const bytes_view all = bytes(key);
    if (all.size() != out.size())
      throw_error("feature " + strata::detail::quoted(key) + " has " + std::to_string(all.size()) + " bytes, not " +
                  std::to_string(out.size()));
    std::ranges::transform(all, out.begin(), [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
  }
  template <class T>
  std::vector<T> vector_of(std::string_view key) const {
    return parse([&] {
      const list of = list_with<T>(key);
      std::vector<T> values(count<T>(of));
      std::size_t n = 0;
      for_each_piece<T>(of, [&](auto first, std::size_t some) {
        std::copy_n(first, some, values.data() + n);
        n += some;
      });
      return values;
    });
  }

  static const char* name(feature_kind kind) {
    constexpr std::array names{"no list", "byte strings", "floats", "int64s"};
    return names[std::size_t(kind)];
  }
  std::string known() const {
    std::vector<std::string> all;
    for (const std::string_view key : keys()) {
      all.emplace_back(key);
      if (all.size() > strata::detail::most_names_shown) break;
    }
    return all.empty() ? ": the Example is empty" : ", but " + strata::detail::first_names(all);
  }
};

}  // namespace strata::data
