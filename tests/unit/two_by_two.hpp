// A network with two inputs and two outputs, recorded by hand, for tests of engines and executors.
#pragma once
#include <strata/strata.hpp>
#include <type_traits>

namespace strata::test {
using namespace core;

/// Numbers and words go in, a class and two numbers come out:
///   numbers (6) -> dense ────────────┐
///                                    add -> dense -> softmax            | class
///   words (3) -> embedding -> dense ─┘  └─> [batch_norm ->] dense       | two numbers
/// With Compared, each output is followed by its loss.
template <bool Normalized, bool Compared>
struct two_by_two {};

template <bool Normalized>
struct network_of_two {
  using items = two_by_two<Normalized, false>;
};

template <bool Normalized, class Optimizer, class Precision>
struct program_of_two {
  using network = network_of_two<Normalized>;
  using items = two_by_two<Normalized, true>;
  using outputs = type_list<compared_output<sparse_categorical_crossentropy<>, type_list<accuracy>>,
                            compared_output<mean_squared_error, type_list<mean_absolute_error, mean_squared_error>>>;
  using optimizer = Optimizer;
  using precision = Precision;
  using value_type = typename Precision::value_type;
};

}  // namespace strata::test

namespace strata::detail {
template <bool Normalized, bool Compared>
struct structure<test::two_by_two<Normalized, Compared>> {
  using numbers = input<6>;
  using words = input<3>;
  using of_numbers = structure<dense<5, tanh_activation>>;
  using of_words = structure<branch<embedding<7, 2>, flatten, dense<5>>>;
  using joined = add<branch<>, branch<>>;
  using first = structure<
      std::conditional_t<Compared, branch<dense<3, softmax>, sparse_categorical_crossentropy<>>, branch<dense<3, softmax>>>>;
  using normalization = std::conditional_t<Normalized, branch<batch_norm<>>, branch<>>;
  using second = structure<std::conditional_t<Compared, branch<dense<2>, mean_squared_error>, branch<dense<2>>>>;

  using types = join_t<type_list<node_type<numbers, numbers>, node_type<words, words>>, typename of_numbers::types,
                       typename of_words::types, type_list<node_type<joined::join, joined>>, typename first::types,
                       typename structure<normalization>::types, typename second::types>;

  static constexpr int record(recorder& r, int) {
    const int x = r.add(info_of<numbers>, info_of_layer<numbers>, {});
    ++r.layers;
    const int y = r.add(info_of<words>, info_of_layer<words>, {});
    ++r.layers;
    const int parts[] = {of_numbers::record(r, x), of_words::record(r, y)};
    const int trunk = r.add(info_of<joined::join>, info_of_layer<joined>, parts);
    ++r.layers;
    first::record(r, trunk);
    return second::record(r, structure<normalization>::record(r, trunk));
  }
};
}  // namespace strata::detail
