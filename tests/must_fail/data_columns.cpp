// Samples with names.
#include <array>
#include <strata/data/core/column.hpp>
#include <strata/data/image/random_flip.hpp>
#include <strata/data/sources/from_structs.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/cache.hpp>
#include <strata/data/views/concatenate.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/named.hpp>
#include <strata/data/views/one_hot.hpp>
#include <strata/data/views/sample_weight.hpp>
#include <strata/data/views/scale.hpp>
#include <strata/data/views/window.hpp>
#include <strata/data/views/zip.hpp>
#include <vector>

using namespace strata;

struct seen : input<2> {};
struct seen_one : input<1> {};
struct kind {};
struct other {};
struct ticket {
  std::vector<float> pixels;
  std::array<float, 2> few;
  int what;
};
inline std::vector<std::array<float, 2>> rows() { return {{1, 2}, {3, 4}}; }
inline std::vector<int> classes() { return {0, 1}; }
inline auto whole() { return data::from_tensor_slices(of<seen>(rows()), of<kind>(classes())); }

// case: data_columns_of_a_node_twice
// error: data::from_tensor_slices has a node twice
void check() {
#ifdef TWIN
  data::from_tensor_slices(of<seen>(rows()), of<kind>(classes()));
#else
  data::from_tensor_slices(of<kind>(rows()), of<kind>(classes())) | data::batch<2>;
#endif
}

// case: data_columns_of_texts
// error: a column of data::from_tensor_slices is a data::array, or a vector, span or range of numbers or std::arrays
void check() {
#ifdef TWIN
  data::from_tensor_slices(of<seen>(rows())) | data::batch<2>;
#else
  data::from_tensor_slices(of<seen>(std::vector<std::vector<float>>{{1, 2}})) | data::batch<2>;
#endif
}

// case: data_columns_returned_twice
// error: data::columns has a node twice
void check() {
  const auto f = [](const auto& s) {
#ifdef TWIN
    return data::columns(of<seen>(get<seen>(s)), of<kind>(get<kind>(s)));
#else
    return data::columns(of<seen>(get<seen>(s)), of<seen>(get<seen>(s)));
#endif
  };
  whole() | data::map(f);
}

// case: data_columns_of_a_vector
// error: a column of data::columns is a number, a std::array of numbers
void check() {
  const auto f = [](const auto& s) {
#ifdef TWIN
    return data::columns(of<seen>(get<seen>(s)));
#else
    return data::columns(of<seen>(std::vector<float>{get<seen>(s)(0)}));
#endif
  };
  whole() | data::map(f);
}

// case: data_structs_with_a_vector
// error: columns of data::from_structs are members that are numbers or std::arrays of numbers
auto set(const std::vector<ticket>& tickets) {
#ifdef TWIN
  return data::from_structs(tickets, of<seen>(&ticket::few), of<kind>(&ticket::what)) | data::batch<2>;
#else
  return data::from_structs(tickets, of<seen>(&ticket::pixels), of<kind>(&ticket::what)) | data::batch<2>;
#endif
}

// case: data_structs_with_a_node_twice
// error: data::from_structs has a node twice
auto set(const std::vector<ticket>& tickets) {
#ifdef TWIN
  return data::from_structs(tickets, of<seen>(&ticket::few), of<kind>(&ticket::what)) | data::batch<2>;
#else
  return data::from_structs(tickets, of<kind>(&ticket::few), of<kind>(&ticket::what)) | data::batch<2>;
#endif
}

// case: data_scale_of_names
// error: data::scale takes samples without names: put it before data::named
auto scaled() {
#ifdef TWIN
  return data::from_tensor_slices(rows(), classes()) | data::scale(2) | data::named<seen, kind> | data::batch<2>;
#else
  return whole() | data::scale(2) | data::batch<2>;
#endif
}

// case: data_one_hot_of_names
// error: data::one_hot takes samples without names: put it before data::named
auto one_hot() {
#ifdef TWIN
  return data::from_tensor_slices(rows(), classes()) | data::one_hot<2> | data::named<seen, kind> | data::batch<2>;
#else
  return whole() | data::one_hot<2> | data::batch<2>;
#endif
}

// case: data_window_of_images_with_names
// error: data::window makes samples of shape \(Size, S...\), which has at most four extents
struct film : input<2, 2, 2, 1> {};
auto windows(const data::array<float, shape{2, 2, 2, 1}>& films) {
#ifdef TWIN
  return whole() | data::window<2>() | data::batch<1>;
#else
  return data::from_tensor_slices(of<film>(films)) | data::window<2>() | data::batch<1>;
#endif
}

// case: data_flip_of_names
// error: data::random_flip takes samples without names: put it before data::named
struct image : input<2, 2, 1> {};
auto flipped(const data::array<float, shape{2, 2, 1}>& images) {
#ifdef TWIN
  return data::from_tensor_slices(images) | data::random_flip() | data::named<image> | data::batch<1>;
#else
  return data::from_tensor_slices(of<image>(images)) | data::random_flip() | data::batch<1>;
#endif
}

// case: data_names_given_twice
// error: data::named takes samples without names
auto named() {
#ifdef TWIN
  return data::from_tensor_slices(rows(), classes()) | data::named<seen, kind>;
#else
  return whole() | data::named<seen, kind>;
#endif
}

// case: data_named_without_the_truth
// error: data::named takes a node for x of samples, and one for the label or target if they have one
auto named() {
#ifdef TWIN
  return data::from_tensor_slices(rows(), classes()) | data::named<seen, kind>;
#else
  return data::from_tensor_slices(rows(), classes()) | data::named<seen>;
#endif
}

// case: data_named_classes_of_an_input
// error: data::named: class numbers belong to an output of a graph, and this node is an input
auto named() {
#ifdef TWIN
  return data::from_tensor_slices(rows(), classes()) | data::named<seen, kind>;
#else
  return data::from_tensor_slices(rows(), classes()) | data::named<kind, seen>;
#endif
}

// case: data_named_twice_the_same
// error: data::named has a node twice
auto named() {
#ifdef TWIN
  return data::from_tensor_slices(rows(), classes()) | data::named<seen, kind>;
#else
  return data::from_tensor_slices(rows(), classes()) | data::named<kind, kind>;
#endif
}

// case: data_zip_of_one_name
// error: data::zip: both views have a column of the same node
auto zipped() {
  const auto inputs = data::from_tensor_slices(of<seen>(rows())), outputs = data::from_tensor_slices(of<seen>(rows()));
#ifdef TWIN
  return data::zip(inputs, data::from_tensor_slices(of<kind>(classes()))) | data::batch<2>;
#else
  return data::zip(inputs, outputs) | data::batch<2>;
#endif
}

// case: data_zip_of_three_without_names
// error: data::zip takes two views, or more of samples with names
auto zipped() {
  const auto a = data::range(4) | data::named<seen_one>;
  const auto b = data::range(4) | data::named<kind>;
#ifdef TWIN
  return data::zip(a, b, data::range(4) | data::named<other>) | data::batch<2>;
#else
  return data::zip(a, b, data::range(4)) | data::batch<2>;
#endif
}

// case: data_concatenate_other_names
// error: data::concatenate takes two views whose samples have one shape
auto joined() {
#ifdef TWIN
  return whole() | data::concatenate(whole()) | data::batch<2>;
#else
  return whole() | data::concatenate(data::from_tensor_slices(of<seen>(rows()))) | data::batch<2>;
#endif
}

// case: data_map_of_batches_with_names
// error: data::map changes samples with names one by one: put it before batch
auto mapped() {
  const auto f = [](const auto& s) { return s; };
#ifdef TWIN
  return whole() | data::map(f) | data::batch<2>;
#else
  return whole() | data::batch<2> | data::map(f);
#endif
}
