// The types of columns, and the category of views of samples with names.
#include <array>
#include <concepts>
#include <cstdint>
#include <list>
#include <ranges>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_structs.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/cache.hpp>
#include <strata/data/views/concatenate.hpp>
#include <strata/data/views/elements.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/named.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/take.hpp>
#include <strata/data/views/unbatch.hpp>
#include <strata/data/views/zip.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace {
using namespace strata;
using namespace strata::core;
struct image : input<2, 3> {};
struct number : input<1> {};
struct kind {};
struct box {};

using images = data::array<std::uint8_t, shape{2, 3}>;
using boxes = std::vector<std::array<float, 4>>;
using set = decltype(data::from_tensor_slices(of<image>(std::declval<images>()), of<kind>(std::vector<short>{}),
                                              of<number>(std::vector<long>{}), of<box>(std::declval<boxes&>())));
// Integers for an output are classes; an input takes any numbers.
static_assert(std::same_as<
              data::rows_t<set>::columns,
              type_list<data::column_of<image, shape{2, 3}, label_kind::none>, data::column_of<kind, shape{}, label_kind::sparse>,
                        data::column_of<number, shape{1}, label_kind::none>, data::column_of<box, shape{4}, label_kind::dense>>>);
template <class V, class... C>
concept has_columns = std::same_as<typename data::rows_t<V>::columns, type_list<C...>>;

struct ticket {
  std::array<std::array<float, 3>, 2> pixels;
  unsigned what;
  double size;
};
using structs = decltype(data::from_structs(std::vector<ticket>{}, of<image>(&ticket::pixels), of<kind>(&ticket::what),
                                            of<box>(&ticket::size), of<number>(&ticket::what)));
static_assert(has_columns<structs, data::column_of<image, shape{2, 3}, label_kind::none>,
                          data::column_of<kind, shape{}, label_kind::sparse>, data::column_of<box, shape{1}, label_kind::dense>,
                          data::column_of<number, shape{1}, label_kind::none>>);
static_assert(data::named_view<set> && data::named_view<structs> && !data::sample_view<set> && !data::sample_view<structs>);
static_assert(std::ranges::random_access_range<const set> && std::ranges::borrowed_range<set> && data::detail::sized<set>);
static_assert(data::rows_t<set>::properties.any_thread_may_write && data::rows_t<structs>::properties.any_thread_may_write);

using named = decltype(data::from_tensor_slices(std::declval<images>(), std::vector<int>{}) | data::named<image, kind>);
using sizes = decltype(data::from_tensor_slices(boxes{}) | data::named<box>);
using column_of_image = data::column_of<image, shape{2, 3}, label_kind::none>;
using column_of_kind = data::column_of<kind, shape{}, label_kind::sparse>;
using column_of_box = data::column_of<box, shape{4}, label_kind::dense>;
static_assert(has_columns<named, column_of_image, column_of_kind> && has_columns<sizes, column_of_box>);
static_assert(data::rows_t<named>::properties.any_thread_may_write);
using zipped = decltype(data::zip(std::declval<named>(), std::declval<sizes>()));
static_assert(has_columns<zipped, column_of_image, column_of_kind, column_of_box>);
static_assert(std::ranges::random_access_range<const zipped>);
static_assert(has_columns<decltype(data::zip(std::declval<sizes>() | data::shuffle(2), std::declval<named>())), column_of_box,
                          column_of_image, column_of_kind>);

// A function receives tensors, class numbers, and returns any numbers.
template <class V>
using element = data::detail::element_t<data::rows_t<V>>;
static_assert(
    std::same_as<element<zipped>, data::named_sample<column<image, tensor<const std::uint8_t, shape{2, 3}>>,
                                                     column<kind, std::int32_t>, column<box, tensor<const float, shape{4}>>>>);
static_assert(std::is_trivially_copyable_v<element<zipped>>);
inline constexpr auto two = [](const auto& e) { return data::columns(of<kind>(char(get<kind>(e))), of<image>(get<image>(e))); };
using mapped = decltype(std::declval<zipped>() | data::map(two));
static_assert(has_columns<mapped, column_of_kind, column_of_image>);
static_assert(
    std::same_as<std::ranges::range_value_t<decltype(std::declval<mapped>() | data::elements)>,
                 data::named_sample<column<kind, char>, column<image, data::stored_tensor<std::uint8_t, shape{2, 3}>>>>);

// Stages keep the columns.
static_assert(has_columns<decltype(std::declval<mapped>() | data::cache), column_of_kind, column_of_image>);
static_assert(has_columns<decltype(std::declval<mapped>() | data::cache("file")), column_of_kind, column_of_image>);
static_assert(
    has_columns<decltype(std::declval<named>() | data::concatenate(std::declval<named>())), column_of_image, column_of_kind>);
using stream = decltype(data::from_range(std::list<int>{}) | data::map([](int i) { return data::columns(of<kind>(i)); }));
static_assert(has_columns<stream, column_of_kind>);
static_assert(has_columns<decltype(std::declval<stream>() | data::cache), column_of_kind>);

// Batches.
using batched = decltype(std::declval<set>() | data::batch<4> | data::take(2) | data::prefetch());
static_assert(batch_source<batched> && std::same_as<batched::value_type, samples<float>> && batched::batch_size == 4);
static_assert(std::same_as<batched::columns, data::rows_t<set>::columns>);
static_assert(has_columns<decltype(std::declval<batched>() | data::unbatch), column_of_image, column_of_kind,
                          data::column_of<number, shape{1}, label_kind::none>, column_of_box>);
template <class B>
concept has_a_shape = requires { B::sample_shape; };
static_assert(!has_a_shape<batched> && strata::detail::has_columns<batched>);
}  // namespace
