// Type lists: joining, elements, filtering.
#include <strata/base/meta.hpp>
using namespace strata;
using namespace strata::core;

template <int>
struct item;
template <class A, class B>
inline constexpr bool is_same = std::is_same_v<A, B>;

static_assert(detail::length(type_list<>{}) == 0 && detail::length(type_list<int, char, int>{}) == 3);

static_assert(is_same<detail::join_t<>, type_list<>> && is_same<detail::join_t<type_list<int>>, type_list<int>>);
static_assert(is_same<detail::join_t<type_list<int, char>, type_list<>, type_list<int>>, type_list<int, char, int>>);
static_assert(
    is_same<detail::join_t<type_list<item<0>>, type_list<item<1>>, type_list<item<2>>, type_list<item<3>>, type_list<item<4>>,
                           type_list<item<5>>, type_list<item<6>>, type_list<item<7>>, type_list<item<8>>, type_list<item<9>>>,
            type_list<item<0>, item<1>, item<2>, item<3>, item<4>, item<5>, item<6>, item<7>, item<8>, item<9>>>);

static_assert(is_same<detail::at_t<0, type_list<int>>, int> && is_same<detail::at_t<2, type_list<int, char, item<7>>>, item<7>>);
static_assert(is_same<detail::at_t<1, type_list<int, int>>, int> && is_same<detail::at_t<0, type_list<void>>, void>);

template <class T>
struct is_pointer_or_int : std::bool_constant<std::is_pointer_v<T> || is_same<T, int>> {};
static_assert(is_same<detail::filter_t<is_pointer_or_int, char*, char, int, void*>, type_list<char*, int, void*>>);
static_assert(is_same<detail::filter_t<is_pointer_or_int, char>, type_list<>> &&
              is_same<detail::filter_t<is_pointer_or_int>, type_list<>>);

// Hundreds of lists, without nesting hundreds of instantiations.
template <int... I>
constexpr int length_of_joined(std::integer_sequence<int, I...>) {
  return detail::length(detail::join_t<type_list<item<I>, item<I>>...>{});
}
static_assert(length_of_joined(std::make_integer_sequence<int, 600>{}) == 1200);
