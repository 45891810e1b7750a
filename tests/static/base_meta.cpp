// Type lists: joining, elements, filtering.
#include <strata/base/meta.hpp>
using namespace strata;

template <int>
struct item;
template <class A, class B>
inline constexpr bool same = std::is_same_v<A, B>;

static_assert(length(list<>{}) == 0 && length(list<int, char, int>{}) == 3);

static_assert(same<join_t<>, list<>> && same<join_t<list<int>>, list<int>>);
static_assert(same<join_t<list<int, char>, list<>, list<int>>, list<int, char, int>>);
static_assert(same<join_t<list<item<0>>, list<item<1>>, list<item<2>>, list<item<3>>, list<item<4>>, list<item<5>>, list<item<6>>,
                          list<item<7>>, list<item<8>>, list<item<9>>>,
                   list<item<0>, item<1>, item<2>, item<3>, item<4>, item<5>, item<6>, item<7>, item<8>, item<9>>>);

static_assert(same<at_t<0, list<int>>, int> && same<at_t<2, list<int, char, item<7>>>, item<7>>);
static_assert(same<at_t<1, list<int, int>>, int> && same<at_t<0, list<void>>, void>);

template <class T>
struct is_pointer_or_int : std::bool_constant<std::is_pointer_v<T> || same<T, int>> {};
static_assert(same<filter_t<is_pointer_or_int, char*, char, int, void*>, list<char*, int, void*>>);
static_assert(same<filter_t<is_pointer_or_int, char>, list<>> && same<filter_t<is_pointer_or_int>, list<>>);

// Hundreds of lists, without nesting hundreds of instantiations.
template <int... I>
constexpr int length_of_joined(std::integer_sequence<int, I...>) {
  return length(join_t<list<item<I>, item<I>>...>{});
}
static_assert(length_of_joined(std::make_integer_sequence<int, 600>{}) == 1200);
