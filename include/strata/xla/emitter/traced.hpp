// A number that records: a formula that is generic over its value becomes operations on whole tensors.
#pragma once
#include <limits>
#include <numbers>
#include <strata/losses/number_math.hpp>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/parameter_norms.hpp>
#include <strata/xla/emitter/graph.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::stablehlo {

class traced;

/// The result of comparing traced values. Converted to bool it is a branch: `select_paths` follows both paths.
class traced_condition {
  tensor at_;
  bool known_ = false;
  friend class traced;

 public:
  constexpr traced_condition(bool known) : known_(known) {}
  traced_condition(tensor at) : at_(at) {}
  constexpr operator bool() const { return at_ ? decide(at_) : known_; }

 private:
  static bool decide(tensor condition);
};

/// A constant, or the elements of a tensor. Arithmetic on constants is done at once, all other is recorded.
class traced {
  double constant_ = 0;
  tensor at_;

 public:
  constexpr traced() = default;
  /// A constant; while an optimizer makes the rule of a step, one of its step_scalars.
  template <class N>
    requires std::is_arithmetic_v<N>
  constexpr traced(N constant) : constant_(double(constant)) {
    if (!std::is_constant_evaluated()) become_step_scalar();
  }
  traced(tensor at) : at_(at) {}

  constexpr bool is_constant() const { return !at_; }
  constexpr double constant() const { return constant_; }
  /// As a tensor; a constant becomes one of the type of `like`.
  tensor in(tensor like) const { return at_ ? at_ : filled(constant_, like); }

  friend constexpr traced operator+(traced a, traced b) {
    if (both(a, b)) return known(a.constant_ + b.constant_);
    return a.is(0) ? b : b.is(0) ? a : record_binary("add", a, b);
  }
  friend constexpr traced operator-(traced a, traced b) {
    if (both(a, b)) return known(a.constant_ - b.constant_);
    return b.is(0) ? a : record_binary("subtract", a, b);
  }
  friend constexpr traced operator*(traced a, traced b) {
    if (both(a, b)) return known(a.constant_ * b.constant_);
    return a.is(1) ? b : b.is(1) ? a : record_binary("multiply", a, b);
  }
  friend constexpr traced operator/(traced a, traced b) {
    if (both(a, b)) return known(a.constant_ / b.constant_);
    return b.is(1) ? a : record_binary("divide", a, b);
  }
  friend constexpr traced operator-(traced a) { return a.at_ ? traced(-a.at_) : known(-a.constant_); }
  friend constexpr traced operator+(traced a) { return a; }
  constexpr traced& operator+=(traced b) { return *this = *this + b; }
  constexpr traced& operator-=(traced b) { return *this = *this - b; }
  constexpr traced& operator*=(traced b) { return *this = *this * b; }
  constexpr traced& operator/=(traced b) { return *this = *this / b; }

  friend constexpr traced_condition operator<(traced a, traced b) {
    if (both(a, b)) return a.constant_ < b.constant_;
    return record_comparison("LT", a, b);
  }
  friend constexpr traced_condition operator<=(traced a, traced b) {
    if (both(a, b)) return a.constant_ <= b.constant_;
    return record_comparison("LE", a, b);
  }
  friend constexpr traced_condition operator>(traced a, traced b) { return b < a; }
  friend constexpr traced_condition operator>=(traced a, traced b) { return b <= a; }
  friend constexpr traced_condition operator==(traced a, traced b) {
    if (both(a, b)) return a.constant_ == b.constant_;
    return record_comparison("EQ", a, b);
  }
  friend constexpr traced_condition operator!=(traced a, traced b) {
    if (both(a, b)) return a.constant_ != b.constant_;
    return record_comparison("NE", a, b);
  }

  // Functions of <cmath>. A generic formula calls them without a namespace, after `using std::exp`.
  friend traced exp(traced x) { return record_unary("exponential", x); }
  friend traced expm1(traced x) { return record_unary("exponential_minus_one", x); }
  friend traced log(traced x) { return record_unary("log", x); }
  friend traced log1p(traced x) { return record_unary("log_plus_one", x); }
  friend traced tanh(traced x) { return record_unary("tanh", x); }
  friend traced sin(traced x) { return record_unary("sine", x); }
  friend traced cos(traced x) { return record_unary("cosine", x); }
  friend traced sqrt(traced x) { return record_unary("sqrt", x); }
  friend traced abs(traced x) { return record_unary("abs", x); }
  friend traced fabs(traced x) { return record_unary("abs", x); }
  friend traced floor(traced x) { return record_unary("floor", x); }
  friend traced ceil(traced x) { return record_unary("ceil", x); }
  friend traced erf(traced x);
  friend traced erfc(traced x);
  /// Like std::max and std::min, but without a branch.
  friend traced max(traced a, traced b) { return chosen(a < b, b, a); }
  friend traced min(traced a, traced b) { return chosen(b < a, b, a); }
  friend traced pow(traced x, traced exponent) { return record_binary("power", x, exponent); }

 private:
  static constexpr bool both(traced a, traced b) { return !a.at_ && !b.at_; }
  constexpr bool is(double c) const { return !at_ && constant_ == c; }
  static constexpr traced known(double constant) {
    traced t;
    t.constant_ = constant;
    return t;
  }
  void become_step_scalar();
  static traced record_unary(const char* name, traced x);
  static traced record_binary(const char* name, traced a, traced b);
  static traced_condition record_comparison(const char* direction, traced a, traced b);
  static traced chosen(traced_condition which, traced yes, traced no);
};

traced exp(traced);
traced log(traced);
traced log1p(traced);
traced tanh(traced);
traced pow(traced, traced);

namespace detail {

/// One way through the conditions of a formula.
struct traced_path {
  struct decision {
    tensor condition;
    bool taken;
  };
  std::vector<decision> decisions;
  std::size_t begun = 0;  // decisions that are given; the others are found on the way
  int runs = 0;           // of the formula, over all paths
};
inline thread_local traced_path* current_path = nullptr;
inline thread_local const char* formula_name = "a formula";            // for messages
inline thread_local element traced_numbers = element::f32;             // numeric_limits of traced are those of this type
inline thread_local std::vector<double>* step_scalars_made = nullptr;  // not null: a constant that is made is one of them
inline thread_local const tensor* step_scalars_given = nullptr;        // a scalar for each of them, in the same order

/// Sets a variable for the lifetime of this object.
template <class T>
class set_for_now {
  T& variable_;
  T before_;

 public:
  set_for_now(T& variable, T value) : variable_(variable), before_(std::exchange(variable, value)) {}
  set_for_now(const set_for_now&) = delete;
  ~set_for_now() { variable_ = before_; }
};

std::vector<traced> select_paths(traced_path& path, void* context, std::vector<traced> (*formula)(void*), tensor like);
}  // namespace detail

/// The largest number of paths through one formula.
inline constexpr int max_paths = 4096;

/// The results of a formula, a std::vector<traced>. It is run once for each way through its conditions, and the results are
/// joined by `select`. Throws strata_error for more than max_paths.
template <class Formula>
std::vector<traced> select_paths(tensor like, Formula&& formula) {
  detail::traced_path path;
  return detail::select_paths(
      path, &formula, [](void* f) -> std::vector<traced> { return (*static_cast<std::remove_reference_t<Formula>*>(f))(); },
      like);
}
/// select_paths with one result, as a tensor of the type of `like`.
template <class Formula>
tensor trace(tensor like, Formula&& formula) {
  return select_paths(like, [&] { return std::vector<traced>{formula()}; })[0].in(like);
}

/// number_math for element-wise losses: constants are double.
struct traced_math {
  using number = double;
  using value = traced;

  static constexpr traced rounded(traced x) { return x; }
  static traced log(traced x);
  static traced power(traced x, double exponent);
  static traced tanh(traced x);
  static traced exp_of_negative(traced x);
  static traced log1p_of_fraction(traced x);
};

}  // namespace strata::stablehlo

namespace strata::detail {
template <>
struct number_of_norms<stablehlo::traced> {
  using type = stablehlo::traced;
};
template <>
struct elementwise<stablehlo::traced> {
  static constexpr stablehlo::traced all_zeros() { return {}; }
  static stablehlo::traced square_root(stablehlo::traced x) { return sqrt(x); }
  static stablehlo::traced power(stablehlo::traced x, stablehlo::traced exponent) { return pow(x, exponent); }
  static constexpr stablehlo::traced rounded(stablehlo::traced x) { return x; }
};
}  // namespace strata::detail

// Generic formulas also read constants of their number type.
template <>
inline constexpr strata::stablehlo::traced std::numbers::sqrt2_v<strata::stablehlo::traced> = std::numbers::sqrt2;
template <>
inline constexpr strata::stablehlo::traced std::numbers::inv_sqrtpi_v<strata::stablehlo::traced> = std::numbers::inv_sqrtpi;
template <>
inline constexpr strata::stablehlo::traced std::numbers::pi_v<strata::stablehlo::traced> = std::numbers::pi;
template <>
inline constexpr strata::stablehlo::traced std::numbers::e_v<strata::stablehlo::traced> = std::numbers::e;
template <>
inline constexpr strata::stablehlo::traced std::numbers::ln2_v<strata::stablehlo::traced> = std::numbers::ln2;
template <>
struct std::numeric_limits<strata::stablehlo::traced> {
  using traced = strata::stablehlo::traced;
  static constexpr bool is_specialized = true;
  static traced min() { return of_number(std::numeric_limits<float>::min(), std::numeric_limits<double>::min()); }
  static traced max() { return of_number(std::numeric_limits<float>::max(), std::numeric_limits<double>::max()); }
  static traced lowest() { return of_number(std::numeric_limits<float>::lowest(), std::numeric_limits<double>::lowest()); }
  static traced epsilon() { return of_number(std::numeric_limits<float>::epsilon(), std::numeric_limits<double>::epsilon()); }
  static constexpr traced infinity() { return std::numeric_limits<double>::infinity(); }
  static constexpr traced quiet_NaN() { return std::numeric_limits<double>::quiet_NaN(); }

 private:
  static traced of_number(float in_float, double in_double) {
    using namespace strata::stablehlo;
    return strata::stablehlo::detail::traced_numbers == element::f64 ? in_double : double(in_float);
  }
};

#if STRATA_DEFINES
#include <strata/xla/emitter/traced.ipp>
#endif
