// The trainer of a graph.
#include <cstdint>
#include <strata/data.hpp>
#include <strata/distribute/pipeline.hpp>
#include <strata/strata.hpp>
#include <strata/train/predictor.hpp>
#include <vector>

using namespace strata;

struct image : input<12, 12, 1> {};
struct tags : input<6> {};
struct both : node<concat<branch<image, flatten>, tags>, dense<32, relu>> {};
struct kind : node<both, dense<3, softmax>> {};
struct box : node<both, dense<2>> {};
using net = graph<kind, box>;
inline const std::vector<float> pixels(20 * 144), words(20 * 6), boxes(20 * 2);
inline const std::vector<int> kinds(20);

// case: graph_with_a_column_of_an_output_without_loss
// error: column_without_loss<.*box.*because<.*an_output_that_is_not_compared_has_no_column_for_training>
// whole program
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#else
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{})};
#endif
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
  const auto [one, two] = model.predict(of<image>(pixels), of<tags>(words));
}

// case: graph_without_compare
// error: output_without_loss<.*kind.*because<.*an_output_of_a_graph_is_compared_such_as_compare_kind_of_a_loss>
// whole program
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}};
#endif
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
}

// case: graph_compared_at_no_output
// error: no_output<.*both.*because<.*compare_names_an_output_of_the_graph>
// whole program
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#else
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<both>(mean_squared_error{})};
#endif
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
}

// case: graph_compared_twice
// error: compared_twice<.*box.*because<.*an_output_has_one_loss_and_several_metrics>
// whole program
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#else
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{}),
                compare<box>(mean_absolute_error{})};
#endif
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
}

// case: graph_compared_with_a_metric
// error: wrong_argument<.*because<.*compare_takes_a_loss_first_such_as_mean_squared_error>
// whole program
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}, accuracy{}), compare<box>(mean_squared_error{})};
#else
  trainer model{net{}, adam{}, compare<kind>(accuracy{}), compare<box>(mean_squared_error{})};
#endif
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
}

// case: graph_with_a_metric_outside_of_compare
// error: wrong_argument<.*accuracy.*because<.*losses_and_metrics_of_a_graph_stand_in_the_compare_of_an_output>
// whole program
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}, accuracy{}), compare<box>(mean_squared_error{})};
#else
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{}), accuracy{}};
#endif
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
}

// case: graph_with_a_metric_of_other_labels
// error: metric_does_not_go_with_labels<.*r2_score
// whole program
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{}, r2_score{})};
#else
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}, r2_score{}), compare<box>(mean_squared_error{})};
#endif
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
}

// case: graph_with_a_loss_of_probabilities_after_a_dense_layer
// error: prediction_mismatch<.*the_network_ends_with<.*dense<2.*the_loss_is<.*categorical_crossentropy
// whole program
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#else
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(categorical_crossentropy{})};
#endif
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
}

// case: sequential_with_compare
// error: wrong_argument<.*because<.*compare_belongs_to_a_graph_a_sequential_takes_a_loss_and_metrics>
// whole program
void train() {
  using row = sequential<input<6>, dense<3, softmax>>;
#ifdef TWIN
  trainer model{row{}, adam{}, sparse_categorical_crossentropy{}};
#else
  trainer model{row{}, adam{}, compare<kind>(sparse_categorical_crossentropy{})};
#endif
  model.fit(words, kinds, epochs(2));
}

// case: graph_in_a_pipeline
// error: wrong_argument<.*pipelines<.*because<.*this_strategy_trains_a_graph_only_with_one_input_one_output_and_no_compare>
// whole program
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#else
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{}),
                pipeline<stages<1, 2>>{}};
#endif
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
}

// case: graph_with_shared_layers_in_a_pipeline
// error: wrong_argument<.*pipelines<.*because<.*shared_layers_are_trained_by_one_device_and_mirrored_on_processors>
// whole program
struct encoder : shared<dense<6>> {};
struct twice : node<tags, encoder, relu, encoder, dense<3, softmax>> {};
void train() {
#ifdef TWIN
  trainer model{graph<twice>{}, adam{}, sparse_categorical_crossentropy{}};
#else
  trainer model{graph<twice>{}, adam{}, sparse_categorical_crossentropy{}, pipeline<stages<1, 3>>{}};
#endif
  model.fit(words, kinds, epochs(2));
}

// case: graph_with_a_column_missing
// error: column_is_missing<.*tags.*because<.*each_input_has_a_column_and_for_training_each_output>
// whole program
void train() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#ifdef TWIN
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
#else
  model.fit(of<image>(pixels), of<kind>(kinds), of<box>(boxes), epochs(2));
#endif
}

// case: graph_with_a_column_of_an_inner_node
// error: column_of_no_end<.*both.*because<.*a_column_has_the_name_of_an_input_or_an_output_of_the_graph>
// whole program
void train() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#ifdef TWIN
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
#else
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), of<both>(boxes), epochs(2));
#endif
}

// case: graph_with_a_column_twice
// error: column_given_twice<.*tags.*because<.*an_input_or_an_output_has_one_column>
// whole program
void train() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#ifdef TWIN
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
#else
  model.fit(of<image>(pixels), of<tags>(words), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
#endif
}

// case: graph_with_a_column_of_another_shape
// error: column_mismatch<.*image.*the_network_takes<12, 12, 1>.*the_data_set_yields<12, 12>.*because<.*the_input_has_the_shape_of_one_sample>
// whole program
void train() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#ifdef TWIN
  constexpr shape extents{12, 12, 1};
#else
  constexpr shape extents{12, 12};
#endif
  model.fit(of<image>(data::array<float, extents>(pixels)), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
}

// case: graph_with_classes_for_a_loss_of_targets
// error: column_mismatch<.*kind.*the_loss_takes_labels<.*the_data_set_has_labels<.*because<.*class_numbers_are_integers
// whole program
void train() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#ifdef TWIN
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
#else
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(std::vector<float>(20)), of<box>(boxes), epochs(2));
#endif
}

// case: graph_validated_without_a_column
// error: column_is_missing<.*tags.*because<.*each_input_has_a_column_and_for_training_each_output>
// whole program
void train() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2),
#ifdef TWIN
            validation(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes)));
#else
            validation(of<image>(pixels), of<kind>(kinds), of<box>(boxes)));
#endif
}

// case: graph_validated_with_one_column
// error: column_is_missing<.*image.*because<.*each_input_has_a_column_and_for_training_each_output>
// whole program
void train() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2),
#ifdef TWIN
            validation(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes)));
#else
            validation(of<tags>(words)));
#endif
}

// case: graph_validated_with_a_column_of_an_inner_node
// error: column_of_no_end<.*both.*because<.*a_column_has_the_name_of_an_input_or_an_output_of_the_graph>
// whole program
void train() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2),
#ifdef TWIN
            validation(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes)));
#else
            validation(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), of<both>(boxes)));
#endif
}

// case: graph_validated_with_a_column_of_another_shape
// error: column_mismatch<.*image.*the_network_takes<12, 12, 1>.*the_data_set_yields<12, 12>.*because<.*the_input_has_the_shape_of_one_sample>
// whole program
void train() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2),
#ifdef TWIN
            validation(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes)));
#else
            validation(of<image>(data::array<float, shape{12, 12}>(pixels)), of<tags>(words), of<kind>(kinds), of<box>(boxes)));
#endif
}

// case: graph_validated_with_a_column_and_an_array
// error: wrong_argument<.*given_columns<.*because<.*a_graph_takes_columns_such_as_of_image_of_an_array_or_batches_of_a_data_set_with_columns>
// whole program
void train() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2),
#ifdef TWIN
            validation(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes)));
#else
            validation(of<image>(pixels), words, of<kind>(kinds), of<box>(boxes)));
#endif
}

// case: sequential_validated_with_columns
// error: wrong_argument<.*because<.*columns_belong_to_a_graph_whose_outputs_are_compared>
// whole program
void train() {
  using row = sequential<input<6>, dense<3, softmax>>;
  trainer model{row{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(words, kinds, epochs(2), validation(words, kinds));
#else
  model.fit(words, kinds, epochs(2), validation(of<tags>(words), of<kind>(kinds)));
#endif
}

// case: graph_with_x_and_y
// error: wrong_argument<.*because<.*a_graph_takes_columns_such_as_of_image_of_an_array_or_batches_of_a_data_set_with_columns>
// whole program
void train() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#ifdef TWIN
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
#else
  model.fit(data::from_tensor_slices(data::array<float, shape{12, 12, 1}>(pixels), kinds) | data::batch<10>, epochs(2));
#endif
}

// case: graph_with_weights_of_no_output
// error: wrong_argument<.*because<.*weights_in_a_graph_are_those_of_an_output_such_as_of_kind_of_sample_weight>
// whole program
void train() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#ifdef TWIN
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
#else
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2), class_weight{{0, 2.0}});
#endif
}

// case: graph_with_weights_of_classes_of_an_inner_node
// error: no_output<.*both.*because<.*classes_are_those_of_an_output_that_is_compared_with_classes_or_targets>
// whole program
void train() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#ifdef TWIN
  using weighted = kind;
#else
  using weighted = both;
#endif
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), of<weighted>(class_weight{{0, 2.0}}));
}

// case: graph_with_weights_of_samples_of_an_inner_node
// error: column_of_no_end<.*both.*because<.*a_column_has_the_name_of_an_input_or_an_output_of_the_graph>
// whole program
void train() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#ifdef TWIN
  using weighted = kind;
#else
  using weighted = both;
#endif
  const std::vector<float> weights(20);
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), of<weighted>(sample_weight(weights)));
}

// case: sequential_with_columns
// error: wrong_argument<.*because<.*columns_belong_to_a_graph_whose_outputs_are_compared>
// whole program
void train() {
  using row = sequential<input<6>, dense<3, softmax>>;
  trainer model{row{}, adam{}, sparse_categorical_crossentropy{}};
  const auto rows = data::array<float, shape{6}>(words);
#ifdef TWIN
  model.fit(data::from_tensor_slices(rows, kinds) | data::batch<10>, epochs(2));
#else
  model.fit(data::from_tensor_slices(of<tags>(rows), of<kind>(kinds)) | data::batch<10>, epochs(2));
#endif
}

// case: graph_fitted_to_x_and_y
// error: wrong_argument<.*because<.*a_graph_takes_columns_such_as_of_image_of_an_array_or_batches_of_a_data_set_with_columns>
// whole program
void train() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#ifdef TWIN
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
#else
  model.fit(pixels, kinds, epochs(2));
#endif
}

// case: refused_graph_with_a_loss_weight
// error: no_output<.*both.*because<.*compare_names_an_output_of_the_graph>
// whole program
double train() {
#ifdef TWIN
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#else
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<both>(mean_squared_error{})};
#endif
  model.set_loss_weight<box>(0.5);
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
  return model.loss_weight_of<box>();
}

// case: graph_with_the_loss_weight_of_an_inner_node
// error: no_output<.*both.*because<.*a_loss_weight_is_that_of_an_output_with_a_loss>
// whole program
void train() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#ifdef TWIN
  model.set_loss_weight<box>(0.5);
#else
  model.set_loss_weight<both>(0.5);
#endif
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
}

// case: graph_with_a_column_for_a_loss_without_truth
// error: column_without_loss<.*box.*because<.*an_output_that_is_not_compared_has_no_column_for_training>
// whole program
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
#else
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(kl_of_normal{})};
#endif
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
}

// case: kl_of_normal_of_an_odd_row
// error: shape_mismatch<.*kind.*kl_of_normal.*because<.*kl_of_normal_takes_a_row_of_means_and_as_many_standard_deviations>
// whole program
void train() {
  trainer model{net{}, adam{}, compare<box>(kl_of_normal{}),
#ifdef TWIN
                compare<kind>(mean_of_values{})};
#else
                compare<kind>(kl_of_normal{})};
#endif
  model.fit(of<image>(pixels), of<tags>(words), epochs(2));
}

// case: graph_with_a_metric_of_a_loss_without_truth
// error: metric_does_not_go_with_labels<.*mean_absolute_error
// whole program
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(kl_of_normal{})};
#else
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}),
                compare<box>(kl_of_normal{}, mean_absolute_error{})};
#endif
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), epochs(2));
}

// case: graph_with_the_loss_weight_of_an_output_without_loss
// error: no_output<.*box.*because<.*a_loss_weight_is_that_of_an_output_with_a_loss>
// whole program
void train() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{})};
#ifdef TWIN
  model.set_loss_weight<kind>(0.5);
#else
  model.set_loss_weight<box>(0.5);
#endif
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), epochs(2));
}

// case: predictor_of_a_graph_with_x
// error: predict: a graph takes a column for each input: predict\(of<image>\(pixels\), of<tags>\(words\)\)
void predict() {
  const predictor model{net{}, std::vector<float>(100)};
#ifdef TWIN
  const auto [one, two] = model.predict(of<image>(pixels), of<tags>(words));
#else
  const auto predicted = model.predict(pixels);
#endif
}

// case: predictor_of_a_node_that_the_trainer_lacks
// error: no_node<.*features.*because<.*a_predictor_of_a_graph_has_nodes_of_the_graph_that_is_trained>
// whole program
struct features : node<tags, dense<8, relu>> {};
void train() {
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}), compare<box>(mean_squared_error{})};
  model.fit(of<image>(pixels), of<tags>(words), of<kind>(kinds), of<box>(boxes), epochs(2));
#ifdef TWIN
  const predictor inner{graph<both>{}, model};
  const auto predicted = inner.predict(of<image>(pixels), of<tags>(words));
#else
  const predictor inner{graph<features>{}, model};
  const auto predicted = inner.predict(words);
#endif
}

// case: predictor_of_another_network_than_the_trainer
// error: wrong_argument<.*because<.*a_predictor_takes_the_weights_of_a_trainer_of_its_network_or_of_a_graph_with_its_nodes>
// whole program
void train() {
  using row = sequential<input<6>, dense<3, softmax>>;
  trainer model{row{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(words, kinds, epochs(2));
#ifdef TWIN
  const predictor alone{row{}, model};
#else
  const predictor alone{sequential<input<6>, dense<3>>{}, model};
#endif
  const auto predicted = alone.predict(words);
}

// case: predictor_of_another_precision_than_the_trainer
// error: wrong_argument<.*f64.*because<.*the_weights_of_a_trainer_have_its_precision>
// whole program
void train() {
  using row = sequential<input<6>, dense<3, softmax>>;
  trainer model{row{}, adam{}, sparse_categorical_crossentropy{}, precision::f64{}};
  model.fit(words, kinds, epochs(2));
#ifdef TWIN
  const predictor alone{row{}, model, precision::f64{}};
#else
  const predictor alone{row{}, model, precision::f32{}};
#endif
}
