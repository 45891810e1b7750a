// A graph of ONNX operators as the bytes of a .onnx file.
// needs: protozero
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <strata/base/text.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::onnx {

/// A dimension whose extent is only known when the graph runs, such as the number of samples.
inline constexpr std::int64_t any_count = -1;

/// An attribute of an operator: an integer, several integers, a real number or a text.
struct attribute {
  enum kind : std::int32_t { real = 1, whole = 2, text = 3, wholes = 7 };  // AttributeProto.AttributeType

  const char* name;
  kind is;
  double number = 0;
  std::vector<std::int64_t> numbers = {};
  std::string_view words = {};

  attribute(const char* its_name, float value) : name(its_name), is(real), number(double(value)) {}
  attribute(const char* its_name, int value) : name(its_name), is(whole), number(value) {}
  attribute(const char* its_name, std::vector<std::int64_t> values) : name(its_name), is(wholes), numbers(std::move(values)) {}
  attribute(const char* its_name, const char* value) : name(its_name), is(text), words(value) {}
};

/// Values are named; an operator is added after those that compute its inputs. Fields are those of onnx.proto3.
/// https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3
class graph {
  std::string nodes_, initializers_, inputs_, outputs_;
  std::map<std::string, int, std::less<>> used_;  // names of values, and the number of requests for each

  enum element_type : std::int32_t { float32 = 1, int64 = 7 };

 public:
  /// A name that is not in use: dense, dense_1, dense_2.
  std::string unique(const std::string& name) {
    const int before = used_[name]++;
    return before == 0 ? name : unique(detail::text_of({name, '_', before}));
  }

  void input(const std::string& name, std::span<const std::int64_t> extents) { add_value(inputs_, 11, name, extents); }
  void output(const std::string& name, std::span<const std::int64_t> extents) { add_value(outputs_, 12, name, extents); }

  /// A constant; returns its name.
  std::string constant(const std::string& name, const std::vector<std::int64_t>& extents, std::span<const float> values) {
    return add_constant(name, extents, float32, std::as_bytes(values));
  }
  std::string constant(const std::string& name, const std::vector<std::int64_t>& values) {
    return add_constant(name, {std::int64_t(values.size())}, int64, std::as_bytes(std::span(values)));
  }
  std::string constant(const std::string& name, float value) { return constant(name, {}, std::span<const float>(&value, 1)); }

  /// An operator with one output, whose name it returns.
  std::string add(const char* operation, const std::string& name, const std::vector<std::string>& inputs,
                  const std::vector<attribute>& attributes = {}) {
    const std::string made = unique(name);
    protozero::pbf_writer nodes(nodes_), node(nodes, 1);
    for (const std::string& input : inputs) node.add_string(1, input);
    node.add_string(2, made);
    node.add_string(3, made);
    node.add_string(4, operation);
    for (const attribute& a : attributes) {
      protozero::pbf_writer to(node, 5);
      to.add_string(1, a.name);
      switch (a.is) {
        case attribute::real:
          to.add_float(2, float(a.number));
          break;
        case attribute::whole:
          to.add_int64(3, std::int64_t(a.number));
          break;
        case attribute::text:
          to.add_bytes(4, a.words.data(), a.words.size());
          break;
        case attribute::wholes:
          for (const std::int64_t each : a.numbers) to.add_int64(8, each);
      }
      to.add_enum(20, a.is);
    }
    return made;
  }

  /// The bytes of the file. `operator_set`: the version of ONNX' operators that the graph uses.
  std::string file(std::string_view name, int operator_set) const {
    std::string whole = nodes_;
    protozero::pbf_writer(whole).add_string(2, name.data(), name.size());
    whole += initializers_;
    whole += inputs_;
    whole += outputs_;
    std::string bytes;
    protozero::pbf_writer model(bytes);
    model.add_int64(1, 9);  // the version of the format released with this operator set
    model.add_string(2, "strata");
    model.add_message(7, whole);
    protozero::pbf_writer set(model, 8);
    set.add_string(1, "");
    set.add_int64(2, operator_set);
    set.commit();
    return bytes;
  }

 private:
  static void add_value(std::string& to, protozero::pbf_tag_type tag, const std::string& name,
                        std::span<const std::int64_t> extents) {
    protozero::pbf_writer all(to), value(all, tag);
    value.add_string(1, name);
    protozero::pbf_writer type(value, 2), array(type, 1);
    array.add_enum(1, float32);
    protozero::pbf_writer shape(array, 2);
    for (const std::int64_t extent : extents) {
      protozero::pbf_writer dimension(shape, 1);
      if (extent == any_count)
        dimension.add_string(2, "N");
      else
        dimension.add_int64(1, extent);
    }
  }
  std::string add_constant(const std::string& name, const std::vector<std::int64_t>& extents, element_type type,
                           std::span<const std::byte> bytes) {
    const std::string made = unique(name);
    protozero::pbf_writer all(initializers_), array(all, 5);
    for (const std::int64_t extent : extents) array.add_int64(1, extent);
    array.add_enum(2, type);
    array.add_string(8, made);
    array.add_bytes(9, reinterpret_cast<const char*>(bytes.data()), bytes.size());  // little-endian
    return made;
  }
};

}  // namespace strata::onnx
