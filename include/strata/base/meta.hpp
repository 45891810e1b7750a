// The whole type-list machinery: join, element access and search. Everything else works on values.
#pragma once
#include <strata/base/namespaces.hpp>
#include <type_traits>
#include <utility>

namespace strata {

namespace core {
template <class... T>
struct type_list {};
}  // namespace core

namespace detail {
template <class... T>
constexpr int length(type_list<T...>) {
  return sizeof...(T);
}

template <class... Lists>
struct join {
  using type = type_list<>;
};
template <class... A>
struct join<type_list<A...>> {
  using type = type_list<A...>;
};
template <class... A, class... B>
struct join<type_list<A...>, type_list<B...>> {
  using type = type_list<A..., B...>;
};
// Eight at a time: joining 300 lists one by one would nest 300 instantiations.
template <class... A, class... B, class... C, class... D, class... E, class... F, class... G, class... H, class... Rest>
struct join<type_list<A...>, type_list<B...>, type_list<C...>, type_list<D...>, type_list<E...>, type_list<F...>, type_list<G...>,
            type_list<H...>, Rest...> : join<type_list<A..., B..., C..., D..., E..., F..., G..., H...>, Rest...> {};
template <class... A, class... B, class... C, class... Rest>
struct join<type_list<A...>, type_list<B...>, type_list<C...>, Rest...> : join<type_list<A..., B..., C...>, Rest...> {};

template <int I, class T>
struct slot {
  using type = T;
};
template <class Indices, class... T>
struct slots;
template <int... I, class... T>
struct slots<std::integer_sequence<int, I...>, T...> : slot<I, T>... {};
template <int I, class T>
slot<I, T> find_slot(const slot<I, T>*);

template <class List>
struct indexed;
template <class... T>
struct indexed<type_list<T...>> {
  using type = slots<std::make_integer_sequence<int, sizeof...(T)>, T...>;
};

template <class... Lists>
using join_t = typename join<Lists...>::type;

/// Element I, by overload resolution over numbered bases: one instantiation per look-up.
template <int I, class List>
using at_t = typename decltype(find_slot<I>(static_cast<typename indexed<List>::type*>(nullptr)))::type;

/// The types of T... for which Predicate<T>::value holds, in order.
template <template <class> class Predicate, class... T>
using filter_t = join_t<std::conditional_t<Predicate<T>::value, type_list<T>, type_list<>>...>;

/// The index of the first false value; -1: there is none.
template <int N>
constexpr int first_false(const bool (&values)[N]) {
  for (int k = 0; k < N; ++k)
    if (!values[k]) return k;
  return -1;
}
/// The index of a type in a list; -1: it is not there.
template <class T, class... Among>
constexpr int index_in(type_list<Among...>) {
  return first_false({!std::is_same_v<T, Among>..., true});
}
template <class T, class... Among>
inline constexpr int times_among = (int(std::is_same_v<T, Among>) + ... + 0);
/// Whether no type comes twice.
template <class... T>
inline constexpr bool are_distinct = ((times_among<T, T...> == 1) && ...);
}  // namespace detail

}  // namespace strata
