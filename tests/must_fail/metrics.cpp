// Metrics.
#include <strata/metrics/auc.hpp>
#include <strata/metrics/confusion.hpp>
#include <strata/metrics/top_k_categorical_accuracy.hpp>

using namespace strata;

// case: metric_with_the_name_of_another_value
// error: wrong_argument<.*my_loss.*because<.*a_metric_has_a_name_that_is_not_epoch_batch_learning_rate
// whole program
#include <strata/strata.hpp>

struct my_loss : accuracy {
#ifdef TWIN
  static constexpr auto name = "loss";
#else
  static constexpr auto name = "val_loss";
#endif
};
void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<10, softmax>>{}, adam{}, sparse_categorical_crossentropy{},
                my_loss{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: metric_without_measure
// error: incomplete_model<.*metric_of_mine.*because<.*it_is_no_metric_which_has_measure_and_no_strategy_which_has_executor>
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
struct metric_of_mine {
  static constexpr auto name = "metric_of_mine";
#ifdef TWIN
  template <class T>
  static double measure(std::span<const T> prediction, std::int32_t) {
    return double(prediction[0]);
  }
#endif
};
void train() { trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, metric_of_mine{}}; }

// case: metric_without_name
// error: incomplete_model<.*metric_of_mine.*because<.*metrics_have_a_name>
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
struct metric_of_mine {
#ifdef TWIN
  static constexpr auto name = "metric_of_mine";
#endif
  template <class T>
  static double measure(std::span<const T> prediction, std::int32_t) {
    return double(prediction[0]);
  }
};
void train() { trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, metric_of_mine{}}; }

// case: metrics_class_id_too_large
// error: wrong_argument<.*precision_score<.*class_id<10>.*because<.*class_id_must_be_less_than_the_number_of_predictions>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, precision_score<class_id<9>>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, precision_score<class_id<10>>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: metrics_top_zero
// error: top-k accuracy needs K >= 1
#ifdef TWIN
sparse_top_k_categorical_accuracy<1> m;
#else
sparse_top_k_categorical_accuracy<0> m;
#endif

// case: metrics_unknown_option
// error: the metric does not support one of its options
#ifdef TWIN
recall<top_k<2>> m;
#else
auc<top_k<2>> m;
#endif
