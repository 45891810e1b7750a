// The range category of each view.
#include <concepts>
#include <cstdint>
#include <ranges>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/cache.hpp>
#include <strata/data/views/concatenate.hpp>
#include <strata/data/views/elements.hpp>
#include <strata/data/views/enumerate.hpp>
#include <strata/data/views/flat_map.hpp>
#include <strata/data/views/ignore_errors.hpp>
#include <strata/data/views/interleave.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/repeat.hpp>
#include <strata/data/views/scale.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/skip.hpp>
#include <strata/data/views/split_dataset.hpp>
#include <strata/data/views/take.hpp>
#include <strata/data/views/unbatch.hpp>
#include <strata/data/views/window.hpp>
#include <strata/data/views/zip.hpp>
#include <string>
#include <utility>
#include <vector>

namespace {
using namespace strata;
using namespace strata::core;
using ints = decltype(data::range(3));
using shuffled = decltype(std::declval<ints>() | data::shuffle(3));
inline constexpr auto vector_of = [](std::int64_t i) { return std::vector{i}; };
using stream = decltype(std::declval<ints>() | data::flat_map(vector_of));
using names = decltype(data::from_range(std::vector<std::string>{}));

template <class V>
concept random_access = data::element_view<V> && std::ranges::random_access_range<const V> && data::detail::sized<V>;
template <class V>
concept single_pass = data::element_view<V> && !std::ranges::forward_range<V> && !std::ranges::range<const V>;
template <class V>
concept sized_single_pass = single_pass<V> && data::detail::sized<V>;
template <class V>
concept unsized_single_pass = single_pass<V> && !data::detail::sized<V>;

template <class A, class B>
using zipped = decltype(data::zip(std::declval<A>(), std::declval<B>()));
static_assert(random_access<zipped<ints, ints>> && random_access<zipped<names, ints>>);
static_assert(random_access<zipped<zipped<ints, ints>, names>>);
static_assert(sized_single_pass<zipped<ints, shuffled>> && sized_single_pass<zipped<shuffled, ints>>);
static_assert(unsized_single_pass<zipped<stream, ints>> && unsized_single_pass<zipped<shuffled, stream>>);
static_assert(data::sample_view<zipped<ints, ints>> && data::rows_t<zipped<ints, ints>>::labels == label_kind::sparse);
static_assert(!data::sample_view<zipped<names, ints>> && !data::sample_view<zipped<zipped<ints, ints>, ints>>);
static_assert(data::sample_view<zipped<stream, shuffled>>);

template <class A, class B>
using joined = decltype(std::declval<A>() | data::concatenate(std::declval<B>()));
static_assert(random_access<joined<ints, ints>> && random_access<joined<names, names>>);
static_assert(sized_single_pass<joined<ints, shuffled>> && unsized_single_pass<joined<shuffled, stream>>);
static_assert(data::sample_view<joined<ints, stream>> && !data::sample_view<joined<names, names>>);

template <class V>
using counted = decltype(std::declval<V>() | data::enumerate());
static_assert(random_access<counted<ints>> && random_access<counted<names>>);
static_assert(sized_single_pass<counted<shuffled>> && unsized_single_pass<counted<stream>>);

using windows = decltype(std::declval<ints>() | data::window<4>());
static_assert(random_access<ints> && random_access<windows> && data::rows_t<windows>::sample_shape == shape{4, 1});

// take and skip keep the category, so that the stages above can follow them.
template <class V>
using first_two = decltype(std::declval<V>() | data::take(2));
template <class V>
using all_but_two = decltype(std::declval<V>() | data::skip(2));
static_assert(random_access<first_two<ints>> && random_access<all_but_two<ints>> && random_access<first_two<all_but_two<names>>>);
static_assert(random_access<first_two<windows>> && random_access<all_but_two<zipped<ints, names>>>);
static_assert(sized_single_pass<first_two<shuffled>> && sized_single_pass<all_but_two<shuffled>>);
static_assert(unsized_single_pass<first_two<stream>> && unsized_single_pass<all_but_two<stream>>);
static_assert(random_access<zipped<first_two<ints>, all_but_two<names>>> && random_access<counted<all_but_two<names>>>);
static_assert(random_access<joined<first_two<ints>, all_but_two<ints>>>);
static_assert(random_access<decltype(std::declval<all_but_two<ints>>() | data::window<2>())>);

// The two parts of a split data set keep it, too.
template <class V>
using left_part = decltype(data::split_dataset(std::declval<V>(), {}).left);
static_assert(random_access<left_part<ints>> && random_access<left_part<left_part<windows>>> &&
              random_access<first_two<left_part<ints>>>);
static_assert(random_access<zipped<left_part<ints>, names>> && random_access<joined<left_part<ints>, ints>>);

// Stages that change samples keep it, too.
inline constexpr auto twice = [](std::int64_t i) { return 2 * i; };
using mapped = decltype(std::declval<ints>() | data::map(twice));
static_assert(random_access<mapped> && random_access<first_two<mapped>> && random_access<zipped<mapped, mapped>>);
static_assert(random_access<decltype(std::declval<mapped>() | data::scale(0.5) | data::cache)>);
static_assert(sized_single_pass<decltype(std::declval<shuffled>() | data::map(twice))>);

// Stages of one kind are one template, and stages put together are a stage.
inline constexpr auto both_stages = data::skip(1) | data::take(2);
static_assert(std::same_as<decltype(std::declval<ints>() | both_stages), first_two<all_but_two<ints>>>);
static_assert(std::same_as<decltype(data::take(std::declval<ints>(), 2)), first_two<ints>>);

// Stages keep the properties of their source: is_random, leaves_out; a user's function may not be called from any thread.
template <class V>
inline constexpr data::row_properties properties_of = data::rows_t<V>::properties;
using in_memory = decltype(data::from_tensor_slices(std::vector{1, 2, 3}));
static_assert(properties_of<in_memory>.any_thread_may_write && properties_of<first_two<in_memory>>.any_thread_may_write);
static_assert(!properties_of<decltype(std::declval<in_memory>() | data::map([](auto x) { return x; }))>.any_thread_may_write);
using damaged = decltype(std::declval<in_memory>() | data::ignore_errors);
static_assert(properties_of<damaged>.leaves_out && properties_of<first_two<damaged>>.leaves_out);
static_assert(properties_of<zipped<damaged, ints>>.leaves_out && properties_of<joined<in_memory, damaged>>.leaves_out);
static_assert(!properties_of<in_memory>.leaves_out && !properties_of<in_memory>.is_random);

static_assert(unsized_single_pass<stream>);
static_assert(unsized_single_pass<decltype(std::declval<ints>() | data::interleave(vector_of))>);
static_assert(unsized_single_pass<decltype(std::declval<shuffled>() | data::interleave(vector_of, data::parallel(2)))>);

using values = decltype(std::declval<ints>() | data::elements);
static_assert(std::ranges::view<values> && std::ranges::input_range<values> && !std::ranges::forward_range<values>);
static_assert(std::ranges::sized_range<values> && std::ranges::viewable_range<values>);
static_assert(!std::ranges::sized_range<decltype(std::declval<stream>() | data::elements)>);
static_assert(std::same_as<std::ranges::range_value_t<values>, std::int64_t>);

template <class B>
concept batched = batch_source<B> && std::ranges::view<B> && !std::ranges::forward_range<B> && !data::element_view<B> &&
                  B::batch_size == 2 && B::sample_shape == shape{1} && B::labels == label_kind::none;
using batches = decltype(std::declval<shuffled>() | data::batch<2>);
inline constexpr auto change = [](auto&) {};
static_assert(batched<decltype(std::declval<batches>() | data::take(1))>);
static_assert(batched<decltype(std::declval<batches>() | data::skip(1))>);
static_assert(batched<decltype(std::declval<batches>() | data::repeat(2))>);
static_assert(batched<decltype(std::declval<batches>() | data::map(change))>);
using chain = decltype(std::declval<batches>() | data::prefetch() | data::skip(1) | data::repeat(2) | data::map(change));
static_assert(batched<chain> && std::ranges::sized_range<chain>);
using endless = decltype(std::declval<stream>() | data::batch<2> | data::take(1));
static_assert(batched<endless> && !std::ranges::sized_range<endless>);
static_assert(unsized_single_pass<decltype(std::declval<batches>() | data::unbatch)>);
}  // namespace
