// A module under construction: operations of StableHLO as functions of tensors.
#pragma once
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/linkage.hpp>
#include <strata/xla/module.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace strata::stablehlo {

namespace detail {
using namespace strata::detail;
}

using extents = std::vector<std::int64_t>;

class graph;

/// A value of a graph: the result of one of its operations, or an argument.
class tensor {
  graph* in_ = nullptr;
  int id_ = -1;
  friend class graph;

 public:
  constexpr tensor() = default;
  constexpr tensor(graph& in, int id) : in_(&in), id_(id) {}

  constexpr explicit operator bool() const { return in_ != nullptr; }
  constexpr int id() const { return id_; }
  graph& in() const { return *in_; }
  const tensor_type& type() const;
  const stablehlo::extents& extents() const { return type().extents; }
  std::int64_t extent(int axis) const { return extents()[std::size_t(axis)]; }
  int rank() const { return int(extents().size()); }
  friend constexpr bool operator==(tensor a, tensor b) { return a.id_ == b.id_; }
};

/// How a convolution or a window moves along the two axes of an image.
struct window_2d {
  std::int64_t size[2] = {1, 1}, stride[2] = {1, 1};
  std::int64_t low[2] = {0, 0}, high[2] = {0, 0};  // padding; negative: it is cut off
  std::int64_t input_dilation[2] = {1, 1}, window_dilation[2] = {1, 1};
};

/// Operations, each with its operands. Writing an operation twice with the same operands adds it once. `text` omits operations
/// that no result needs.
class graph {
 public:
  tensor argument(tensor_type type);
  /// Adds the operation `name` with results of this type. `attributes`: as in the text, without braces. `region`: with
  /// parentheses.
  tensor operation(const char* name, std::initializer_list<tensor> operands, tensor_type result, std::string attributes = {},
                   std::string region = {});
  std::vector<tensor> operation(const char* name, std::span<const tensor> operands, std::span<const tensor_type> results,
                                std::string attributes = {}, std::string region = {});
  tensor constant(double number, tensor_type type);
  /// A constant as it is written in the text, such as `[1.0, 2.0]`.
  tensor constant(const std::string& written, tensor_type type);
  const tensor_type& type(tensor t) const { return values_[std::size_t(t.id_)].type; }

  /// The function @main from the arguments to these results. arguments: in the order in which they were made; donated: for each
  /// argument the result that takes over its memory, or -1. Attributes of the module: `head`.
  std::string text(std::span<const tensor> results, std::span<const int> donated, const std::string& head) const;
  /// A function alone. name_of_function: such as `private @one_step`.
  std::string function(const std::string& name_of_function, std::span<const tensor> results, std::span<const int> donated) const;

 private:
  struct statement {
    const char* name;
    std::vector<int> operands;
    std::string attributes, region;
    int first_result, results;
  };
  struct value {
    tensor_type type;
    int statement;  // -1: an argument
  };
  std::vector<statement> statements_;
  std::deque<value> values_;  // types that are referred to stay where they are
  std::vector<int> arguments_;
  std::unordered_map<std::string, int> known_;  // statements
};

inline const tensor_type& tensor::type() const { return in_->type(*this); }

/// A number as it is written in the text: `1.0e-07`, or its bits where it is not finite.
std::string number_text(double value, element of);

// Element-wise operations. A scalar beside a tensor is used for each element.
tensor operator+(tensor a, tensor b);
tensor operator-(tensor a, tensor b);
tensor operator*(tensor a, tensor b);
tensor operator/(tensor a, tensor b);
tensor operator+(tensor a, double b);
tensor operator-(tensor a, double b);
tensor operator*(tensor a, double b);
tensor operator/(tensor a, double b);
tensor operator-(tensor a);
tensor binary(const char* name, tensor a, tensor b);
tensor unary(const char* name, tensor a);
/// `direction`: LT, LE, EQ, NE, GT or GE.
tensor compare(const char* direction, tensor a, tensor b);
tensor select(tensor condition, tensor yes, tensor no);
tensor convert(tensor a, element to);
/// A tensor filled with a value, of the type of `like`.
tensor filled(double value, tensor like);

// Operations that change the shape.
tensor reshape(tensor a, const extents& to);
/// Axis i of `a` becomes axis axes[i] of the result.
tensor broadcast(tensor a, const extents& to, std::initializer_list<std::int64_t> axes);
/// Repeats `a` along its axes of one element.
tensor broadcast(tensor a, const extents& to);
/// (C) for the last axis of `like`.
tensor along_last_axis(tensor a, tensor like);
/// (rows) for the first axis of `like`, and any `a` for its first axes.
tensor along_first_axes(tensor a, tensor like);
tensor transpose(tensor a, std::initializer_list<std::int64_t> axes);
tensor reverse(tensor a, std::initializer_list<std::int64_t> axes);
/// Every steps[i]-th element along axis i; without steps each one.
tensor slice(tensor a, const extents& begin, const extents& end, extents steps = {});
/// `inner` zeros between two neighbours.
tensor pad(tensor a, const extents& low, const extents& high, const extents& inner);
tensor concatenate(std::span<const tensor> parts, int axis);
/// A tensor whose elements are their indices along an axis.
tensor iota(graph& in, tensor_type type, int axis);

// Sums and products.
enum class reduction { add, maximum, minimum };
tensor reduce(reduction how, tensor a, const extents& axes);
/// Sums over all axes but the first, or but the last.
tensor sum_of_rows(tensor a);
tensor sum_per_channel(tensor a);
tensor sum(tensor a);
/// Images are (rows, height, width, channels).
tensor reduce_window(reduction how, tensor a, const window_2d& window);
/// The elements of `source` at the largest element of each window of `a`, of equal ones the first; added up.
tensor select_and_scatter(tensor a, tensor source, const window_2d& window);

enum class product_precision {
  as_operands,  // every product and sum as float or double says
  of_platform
};
/// Sums over axis of_a of `a` and axis of_b of `b`. `of`: the element type of the result.
tensor dot_general(tensor a, tensor b, int of_a, int of_b, element of, product_precision precision);
/// layout: `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.
tensor convolve(tensor a, tensor b, const char* layout, const window_2d& window, std::int64_t feature_groups,
                std::int64_t batch_groups, const extents& to, element of, product_precision precision);

/// Rows of a table (rows, width): indices (n) of i32 -> (n, width); and the sum of rows (n, width) at those indices, in zeros of
/// the type of the table.
tensor gather_rows(tensor table, tensor indices);
tensor scatter_add_rows(tensor_type table, tensor indices, tensor rows);

/// The sums over all replicas, in one operation for all neighbours of the same element.
std::vector<tensor> all_reduce(std::span<const tensor> parts, int replicas);

}  // namespace strata::stablehlo

#if STRATA_DEFINES
#include <strata/xla/emitter/graph.ipp>
#endif
