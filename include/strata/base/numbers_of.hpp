// The settings of a type as doubles, in the order of their declaration. They are the same with every compiler.
#pragma once
#include <array>
#include <cstddef>
#include <strata/base/decimal.hpp>
#include <type_traits>

namespace strata::detail {

struct any_field {
  template <class T>
  operator T() const;
};

/// The number of members of an aggregate.
template <class S, class... Field>
constexpr int count_fields() {
  if constexpr (sizeof...(Field) <= 12 && requires { S{Field{}..., any_field{}}; })
    return count_fields<S, Field..., any_field>();
  else
    return sizeof...(Field);
}

/// A placeholder for the settings of an aggregate with more than 12 members.
struct unread_numbers {
  constexpr operator double() const { return 0; }
};

/// Calls f(double) for a number, or for each number in a settings value: an aggregate of at most 12 members without arrays. Calls
/// f(unread_numbers) for a larger aggregate.
template <class S, class F>
constexpr void for_numbers(const S& s, F&& f) {
  const auto each = [&](const auto&... field) { (for_numbers(field, f), ...); };
  if constexpr (std::is_arithmetic_v<S> || std::is_enum_v<S>) {
    f(static_cast<double>(s));
  } else if constexpr (std::is_same_v<S, decimal>) {
    f(s.value());
  } else if constexpr (std::is_aggregate_v<S>) {
    constexpr int count = count_fields<S>();
    if constexpr (count == 1) {
      const auto& [a] = s;
      each(a);
    } else if constexpr (count == 2) {
      const auto& [a, b] = s;
      each(a, b);
    } else if constexpr (count == 3) {
      const auto& [a, b, c] = s;
      each(a, b, c);
    } else if constexpr (count == 4) {
      const auto& [a, b, c, d] = s;
      each(a, b, c, d);
    } else if constexpr (count == 5) {
      const auto& [a, b, c, d, e] = s;
      each(a, b, c, d, e);
    } else if constexpr (count == 6) {
      const auto& [a, b, c, d, e, g] = s;
      each(a, b, c, d, e, g);
    } else if constexpr (count == 7) {
      const auto& [a, b, c, d, e, g, h] = s;
      each(a, b, c, d, e, g, h);
    } else if constexpr (count == 8) {
      const auto& [a, b, c, d, e, g, h, i] = s;
      each(a, b, c, d, e, g, h, i);
    } else if constexpr (count == 9) {
      const auto& [a, b, c, d, e, g, h, i, j] = s;
      each(a, b, c, d, e, g, h, i, j);
    } else if constexpr (count == 10) {
      const auto& [a, b, c, d, e, g, h, i, j, k] = s;
      each(a, b, c, d, e, g, h, i, j, k);
    } else if constexpr (count == 11) {
      const auto& [a, b, c, d, e, g, h, i, j, k, l] = s;
      each(a, b, c, d, e, g, h, i, j, k, l);
    } else if constexpr (count == 12) {
      const auto& [a, b, c, d, e, g, h, i, j, k, l, m] = s;
      each(a, b, c, d, e, g, h, i, j, k, l, m);
    } else if constexpr (count > 12) {
      f(unread_numbers{});
    }
  }
}

template <class T>
struct template_arguments {
  static constexpr void visit(auto&&) {}
};
template <template <auto...> class Template, auto... Value>
struct template_arguments<Template<Value...>> {
  static constexpr void visit(auto&& f) { (for_numbers(Value, f), ...); }
};

/// Calls f for the numbers of a static member `settings` or else of the template arguments, if all of these are values: 32, 3, 3,
/// ... for a convolution, 0.2 for leaky_relu<>.
template <class T>
constexpr void for_settings_of(auto&& f) {
  if constexpr (requires { T::settings; })
    for_numbers(T::settings, f);
  else
    template_arguments<T>::visit(f);
}

template <class T>
struct array_of_settings {
  struct size {
    std::size_t count = 0;
    bool all_read = true;
  };
  static constexpr size found = [] {
    size s;
    for_settings_of<T>([&](auto number) {
      ++s.count;
      if (std::is_same_v<decltype(number), unread_numbers>) s.all_read = false;
    });
    return s;
  }();
  static_assert(found.all_read, "a settings value has more than 12 members: group some of them in a struct");
  static constexpr auto numbers = [] {
    std::array<double, found.count> values{};
    [[maybe_unused]] std::size_t n = 0;
    for_settings_of<T>([&](double number) { values[n++] = number; });
    return values;
  }();
};

/// These numbers as an array.
template <class T>
inline constexpr auto numbers_of = array_of_settings<T>::numbers;

}  // namespace strata::detail
