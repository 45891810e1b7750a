// Gradients with respect to inputs.
#include <strata/strata.hpp>
#include <strata/train/input_gradients.hpp>
#include <strata/train/predictor.hpp>
#include <vector>

using namespace strata;

struct image : input<12, 12, 1> {};
struct words : input<6> {};
struct meaning : node<words, embedding<9, 4>, flatten> {};
struct both : node<concat<branch<image, flatten>, meaning>, dense<32, relu>> {};
struct kind : node<both, dense<3, softmax>> {};
struct box : node<both, dense<2>> {};
struct elsewhere : node<image, flatten, dense<2>> {};
using net = graph<kind, box>;
using row = sequential<input<6>, dense<3, softmax>>;
inline const std::vector<float> pixels(20 * 144), numbers(20 * 6), boxes(20 * 2), given(20 * 3);
inline const std::vector<int> kinds(20);

inline auto trained() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
  model.fit(of<image>(pixels), of<words>(numbers), of<kind>(kinds), of<box>(boxes), epochs(2));
  return model;
}

// case: gradients_of_an_inner_node
// error: no_input<.*both.*because<.*gradients_name_inputs_of_the_graph_such_as_gradients_of_image>
// whole program
void train() {
  auto model = trained();
#ifdef TWIN
  const auto gradients = model.gradients<image>(of<image>(pixels), of<words>(numbers), of<kind>(kinds), of<box>(boxes));
#else
  const auto gradients = model.gradients<both>(of<image>(pixels), of<words>(numbers), of<kind>(kinds), of<box>(boxes));
#endif
}

// case: gradients_of_a_graph_without_a_name
// error: no_input<.*because<.*gradients_name_inputs_of_the_graph_such_as_gradients_of_image>
// whole program
void train() {
  auto model = trained();
#ifdef TWIN
  const auto gradients = model.gradients<image>(of<image>(pixels), of<words>(numbers), of<kind>(kinds), of<box>(boxes));
#else
  const auto gradients = model.gradients(of<image>(pixels), of<words>(numbers), of<kind>(kinds), of<box>(boxes));
#endif
}

// case: gradients_of_an_input_twice
// error: wrong_argument<.*because<.*gradients_name_each_input_once>
// whole program
void train() {
  auto model = trained();
#ifdef TWIN
  const auto gradients = model.gradients<image>(of<image>(pixels), of<words>(numbers), of<kind>(kinds), of<box>(boxes));
#else
  const auto gradients = model.gradients<image, image>(of<image>(pixels), of<words>(numbers), of<kind>(kinds), of<box>(boxes));
#endif
}

// case: gradients_of_indices
// error: wrong_argument<.*words.*because<.*an_embedding_looks_up_rows_so_that_its_input_has_no_gradient>
// whole program
void train() {
  auto model = trained();
#ifdef TWIN
  const auto gradients = model.gradients<image>(of<image>(pixels), of<words>(numbers), of<kind>(kinds), of<box>(boxes));
#else
  const auto gradients = model.gradients<words>(of<image>(pixels), of<words>(numbers), of<kind>(kinds), of<box>(boxes));
#endif
}

// case: gradients_without_a_column
// error: column_is_missing<.*words.*because<.*each_input_has_a_column_and_for_training_each_output>
// whole program
void train() {
  auto model = trained();
#ifdef TWIN
  const auto gradients = model.gradients<image>(of<image>(pixels), of<words>(numbers), of<kind>(kinds), of<box>(boxes));
#else
  const auto gradients = model.gradients<image>(of<image>(pixels), of<kind>(kinds), of<box>(boxes));
#endif
}

// case: gradients_of_a_graph_with_an_option
// error: wrong_argument<.*epochs.*because<.*gradients_of_a_graph_take_columns_comparisons_and_spans>
// whole program
void train() {
  auto model = trained();
#ifdef TWIN
  const auto gradients = model.gradients<image>(of<image>(pixels), of<words>(numbers), of<kind>(kinds), of<box>(boxes));
#else
  const auto gradients =
      model.gradients<image>(of<image>(pixels), of<words>(numbers), of<kind>(kinds), of<box>(boxes), epochs(2));
#endif
}

// case: gradients_of_a_graph_without_columns
// error: wrong_argument<.*because<.*gradients_of_a_graph_take_columns_comparisons_and_spans>
// whole program
void train() {
  auto model = trained();
#ifdef TWIN
  const auto gradients =
      model.gradients<image>(of<image>(pixels), of<words>(numbers), of<kind>(given), compare<kind>(given_gradient{}));
#else
  auto x = pixels, v = given;
  const auto gradients = model.gradients<image>(x, v, compare<kind>(given_gradient{}));
#endif
}

// case: gradients_compare_with_a_metric_first
// error: wrong_argument<.*accuracy.*because<.*compare_takes_a_loss_first_such_as_mean_squared_error>
// whole program
void train() {
  auto model = trained();
#ifdef TWIN
  const auto gradients =
      model.gradients<image>(of<image>(pixels), of<words>(numbers), of<kind>(given), compare<kind>(given_gradient{}));
#else
  const auto gradients =
      model.gradients<image>(of<image>(pixels), of<words>(numbers), of<kind>(given), compare<kind>(accuracy{}));
#endif
}

// case: gradients_compare_a_node_of_another_graph
// error: no_node<.*elsewhere.*because<.*gradients_compare_nodes_of_the_graph_each_once>
// whole program
void train() {
  auto model = trained();
#ifdef TWIN
  const auto gradients =
      model.gradients<image>(of<image>(pixels), of<words>(numbers), of<kind>(given), compare<kind>(given_gradient{}));
#else
  const auto gradients = model.gradients<image>(of<image>(pixels), of<elsewhere>(boxes), compare<elsewhere>(given_gradient{}));
#endif
}

// case: gradients_compare_a_node_twice
// error: wrong_argument<.*kind.*because<.*gradients_compare_nodes_of_the_graph_each_once>
// whole program
void train() {
  auto model = trained();
#ifdef TWIN
  const auto gradients =
      model.gradients<image>(of<image>(pixels), of<words>(numbers), of<kind>(given), compare<kind>(given_gradient{}));
#else
  const auto gradients = model.gradients<image>(of<image>(pixels), of<words>(numbers), of<kind>(given),
                                                compare<kind>(given_gradient{}), compare<kind>(given_gradient{}));
#endif
}

// case: gradients_with_a_span_for_one_of_two_inputs
// error: wrong_argument<.*image.*because<.*gradients_have_a_span_for_each_input_or_none>
// whole program
struct second : input<12, 12, 1> {};
struct joined : node<add<image, second>, flatten, dense<3, softmax>> {};
void train() {
  trainer model{graph<joined>{}, adam{}, compare<joined>(sparse_categorical_crossentropy{})};
  model.fit(of<image>(pixels), of<second>(pixels), of<joined>(kinds), epochs(2));
  std::vector<float> one(pixels.size()), two(pixels.size());
#ifdef TWIN
  model.gradients<image, second>(of<image>(pixels), of<second>(pixels), of<joined>(kinds), std::span(one), std::span(two));
#else
  model.gradients<image, second>(of<image>(pixels), of<second>(pixels), of<joined>(kinds), std::span(one));
#endif
}

// case: gradients_of_a_predictor_of_a_graph_without_a_loss
// error: wrong_argument<.*because<.*gradients_of_a_predictor_of_a_graph_take_a_comparison>
// whole program
void train() {
  auto model = trained();
  const predictor alone{net{}, model};
#ifdef TWIN
  const auto gradients = alone.gradients<image>(of<image>(pixels), of<words>(numbers), of<kind>(kinds),
                                                compare<kind>(sparse_categorical_crossentropy{}));
#else
  const auto gradients = alone.gradients<image>(of<image>(pixels), of<words>(numbers), of<kind>(kinds));
#endif
}

// case: gradients_of_a_predictor_without_a_loss
// error: wrong_argument<.*because<.*gradients_of_a_predictor_take_a_loss_such_as_given_gradient>
// whole program
void train() {
  trainer model{row{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(numbers, kinds, epochs(2));
  const predictor alone{row{}, model};
#ifdef TWIN
  const auto gradients = alone.gradients(numbers, given, given_gradient{});
#else
  const auto gradients = alone.gradients(numbers, given);
#endif
}

// case: gradients_of_a_loss_with_other_labels
// error: data_mismatch<.*the_loss_takes_labels<.*the_data_set_has_labels<
// whole program
void train() {
  trainer model{row{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(numbers, kinds, epochs(2));
#ifdef TWIN
  const auto gradients = model.gradients(numbers, kinds);
#else
  const auto gradients = model.gradients(numbers, given);
#endif
}

// case: gradients_of_a_loss_that_takes_logits
// error: prediction_mismatch<
// whole program
void train() {
  trainer model{row{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(numbers, kinds, epochs(2));
#ifdef TWIN
  const auto gradients = model.gradients(numbers, given, categorical_crossentropy{});
#else
  const auto gradients = model.gradients(numbers, given, categorical_crossentropy<from_logits>{});
#endif
}

// case: gradients_with_an_option
// error: wrong_argument<.*because<.*gradients_take_x_and_y_then_perhaps_a_loss_and_a_span_for_the_result>
// whole program
void train() {
  trainer model{row{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(numbers, kinds, epochs(2));
#ifdef TWIN
  const auto gradients = model.gradients(numbers, kinds);
#else
  const auto gradients = model.gradients(numbers, kinds, epochs(2));
#endif
}
