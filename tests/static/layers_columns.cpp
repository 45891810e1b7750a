// columns: shapes, what it refuses, and what may read it.
#include "layer_shapes.hpp"
#include <strata/strata.hpp>
using namespace strata;
using namespace strata::core;
using namespace strata::test;

static_assert(called<columns<0, 3>>("columns", "Columns"));
static_assert(gives<columns<0, 3>>({8}, {3}) && gives<columns<3, 5>>({8}, {5}) && gives<columns<0, 8>>({8}, {8}));
static_assert(gives<columns<1, 2>>({4, 5, 3}, {4, 5, 2}) && gives<columns<7, 1>>({2, 8}, {2, 1}));
static_assert(parameter_count<columns<0, 3>>({8}) == 0);

static_assert(refuses<columns<-1, 3>>({8}, reasons::columns_begins_at_0_or_later_and_takes_at_least_one));
static_assert(refuses<columns<0, 0>>({8}, reasons::columns_begins_at_0_or_later_and_takes_at_least_one));
static_assert(refuses<columns<0, -1>>({8}, reasons::columns_begins_at_0_or_later_and_takes_at_least_one));
static_assert(refuses<columns<0, 9>>({8}, reasons::columns_ends_beyond_the_last_column));
static_assert(refuses<columns<8, 1>>({8}, reasons::columns_ends_beyond_the_last_column));
static_assert(refuses<columns<2147483647, 2147483647>>({8}, reasons::columns_ends_beyond_the_last_column));

// An embedding may read columns of the batch, with views around them.
using tabular = concat<branch<columns<0, 3>, embedding<100, 8>, flatten>, branch<columns<3, 5>>>;
static_assert(sequential<input<8>, tabular, dense<2>>::output_shape == shape{2});
static_assert(well_shaped<input<4, 5>, flatten, columns<2, 6>, reshape<2, 3>, embedding<10, 4>>);
static_assert(!well_shaped<input<8>, dense<8>, columns<0, 3>, embedding<10, 4>>);
static_assert(!well_shaped<input<8>, columns<0, 3>, dense<3>, embedding<10, 4>>);
static_assert(!well_shaped<input<8>, columns<0, 6>, columns<0, 3>, embedding<10, 4>>);
static_assert(well_shaped<input<8>, columns<0, 6>, columns<0, 3>, dense<2>>);

// The tables of a program, with the elements of a sample that are row indices of each.
template <class... Items>
inline constexpr auto tables_of =
    row_tables_of_program<program<sequential<Items...>, sparse_categorical_crossentropy<>, adam, type_list<>>>;
inline constexpr auto two = tables_of<input<2, 6>,
                                      concat<branch<columns<1, 2>, embedding<10, 5>, flatten>, branch<columns<3, 3>, flatten>,
                                             branch<columns<0, 1>, embedding<20, 3>, flatten>>,
                                      dense<3, softmax>>;
static_assert(two.size() == 2 && two[0].rows == 10 && two[1].rows == 20);
static_assert(two[0].names.input == 0 && two[0].names.first == 1 && two[0].names.count == 2 && two[0].names.all == 6);
static_assert(two[1].names.first == 0 && two[1].names.count == 1 && two[1].names.all == 6);
static_assert(two[0].name_count == 4 && two[1].name_count == 2);
inline constexpr auto whole = tables_of<input<2, 6>, flatten, embedding<10, 5>, flatten, dense<3, softmax>>;
static_assert(whole[0].names.first == 0 && whole[0].names.count == whole[0].names.all && whole[0].name_count == 12);

constexpr auto visited(const row_table& table) {
  std::array<int, 8> seen{};
  const int x[24] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
  std::size_t n = 0;
  for_each_row_name(table, x, 12, {1, 2}, [&](int number, long sample, long element) {
    seen[n++] = number == 12 * int(sample) + int(element) ? number : -1;
  });
  return seen;
}
static_assert(visited(two[0]) == std::array{13, 14, 19, 20, 0, 0, 0, 0} &&
              visited(two[1]) == std::array{12, 18, 0, 0, 0, 0, 0, 0});
