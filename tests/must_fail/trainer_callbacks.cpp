// Callbacks of a trainer.

using namespace strata;
using namespace strata::core;

// case: trainer_callback_adds_number
// error: wrong_argument<.*measure.*because<.*the_member_adds_of_a_callback_is_public_and_a_text_or_a_range_of_texts>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
struct measure {
#ifdef TWIN
  const char* adds = "beauty";
#else
  int adds = 0;
#endif
  void on_epoch_end(training_state& s) { s.values.set("beauty", 1); }
};
void train(const std::vector<float>& x, const std::vector<int>& y) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(x, y, measure{});
}

// case: trainer_callback_pointer
// error: wrong_argument<.*early_stopping ?\*.*because<.*a_callback_is_given_itself_without_an_ampersand>
// whole program
#include <strata/callbacks/early_stopping.hpp>
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
void train(const std::vector<float>& x, const std::vector<int>& y) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  early_stopping stops{.monitor = "loss"};
#ifdef TWIN
  model.fit(x, y, stops);
#else
  model.fit(x, y, &stops);
#endif
}

// case: trainer_callback_private_adds
// error: wrong_argument<.*measure.*because<.*the_member_adds_of_a_callback_is_public_and_a_text_or_a_range_of_texts>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
class measure {
#ifdef TWIN
 public:
#endif
  std::vector<std::string> adds{"beauty"};

 public:
  void on_epoch_end(training_state& s) { s.values.set("beauty", 1); }
};
void train(const std::vector<float>& x, const std::vector<int>& y) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(x, y, measure{});
}

// case: trainer_callback_setting
// error: (has no non-static data member named .patiance.|field designator .patiance. does not refer to any field)
// whole program
#include <strata/callbacks/early_stopping.hpp>
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
void train(const std::vector<float>& x, const std::vector<int>& y) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(x, y, early_stopping{.monitor = "loss", .patience = 3});
#else
  model.fit(x, y, early_stopping{.monitor = "loss", .patiance = 3});
#endif
}

// case: trainer_callback_setting_in_braces
// error: (has no non-static data member named .save_best.|field designator .save_best. does not refer to any field)
// whole program
#include <strata/callbacks/model_checkpoint.hpp>
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
void train(const std::vector<float>& x, const std::vector<int>& y) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(x, y, model_checkpoint{"best.safetensors", {.monitor = "loss", .save_best_only = true}});
#else
  model.fit(x, y, model_checkpoint{"best.safetensors", {.monitor = "loss", .save_best = true}});
#endif
}

// case: trainer_callback_signature
// error: wrong_argument<.*printer.*because<.*the_hooks_of_a_callback_take_a_training_state>
#include <strata/strata.hpp>

template <shape Sample, label_kind Labels, shape Target = shape{}>
struct source {
  static constexpr int batch_size = 8;
  static constexpr shape sample_shape = Sample, target_shape = Target;
  static constexpr label_kind labels = Labels;
  using value_type = samples<float>;
  value_type* begin() { return nullptr; }
  value_type* end() { return nullptr; }
};
using net = sequential<input<8, 8, 1>, flatten, dense<10, softmax>>;
struct printer {
#ifdef TWIN
  void on_epoch_end(training_state&) {}
#else
  void on_epoch_end(int) {}
#endif
};
void train(source<shape{8, 8, 1}, label_kind::sparse>& data) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data, printer{});
}

// case: trainer_const_backup
// error: wrong_argument<.*backup_and_restore.*because<.*a_callback_that_changes_in_fit_cannot_be_const>
// whole program
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>

inline void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<10, softmax>>{}, sgd{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  backup_and_restore backup{"folder"};
#else
  const backup_and_restore backup{"folder"};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<64>, backup);
}

// case: trainer_const_callback
// error: wrong_argument<.*counter.*because<.*a_callback_that_changes_in_fit_cannot_be_const>
// whole program
#include <strata/strata.hpp>

struct counter {
  int epochs = 0;
  void on_epoch_end(training_state&) { ++epochs; }
};

inline void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<10, softmax>>{}, sgd{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  counter counts;
#else
  const counter counts;
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<64>, counts);
}

// case: trainer_copy
// error: deleted.*trainer\(const trainer&\) = delete;  // a function takes it by reference
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  auto& other = model;
#else
  auto other = model;
#endif
  other.set_learning_rate(0.1);
}

// case: trainer_hook_of_keras
// error: wrong_argument<.*printer.*because<.*the_hooks_of_fit_are_on_train_epoch_or_batch_and_begin_or_end>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
struct printer {
  void on_train_begin(training_state&) {}
#ifdef TWIN
  void on_epoch_end(training_state&) {}
#else
  void on_train_batch_end(training_state&) {}
#endif
};
void train(const std::vector<float>& x, const std::vector<int>& y) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(x, y, printer{});
}

// case: trainer_misspelt_hook
// error: wrong_argument<.*printer.*because<.*the_hooks_of_fit_are_on_train_epoch_or_batch_and_begin_or_end>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
struct printer {
  void on_train_begin(training_state&) {}
#ifdef TWIN
  void on_epoch_end(training_state&) {}
#else
  void on_epoch_ends(training_state&) {}
#endif
};
void train(const std::vector<float>& x, const std::vector<int>& y) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(x, y, printer{});
}

// case: trainer_object_without_hooks
// error: wrong_argument<.*printer.*because<.*fit_takes_options_and_callbacks_which_have_hooks_such_as_on_epoch_end>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
struct printer {
#ifdef TWIN
  void on_epoch_end(training_state&) {}
#else
  void after_each_epoch(training_state&) {}
#endif
};
void train(const std::vector<float>& x, const std::vector<int>& y) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(x, y, printer{});
}

// case: trainer_session_callback_without_after_epoch
// error: incomplete_model<.*saver.*because<.*session_callbacks_have_restore_after_step_after_epoch_and_after_training>
#include <strata/strata.hpp>
#include <strata/train/fit_session.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
struct saver {
  void restore(training_session&) {}
  void after_step(training_session&) {}
#ifdef TWIN
  void after_epoch(training_session&) {}
#endif
  void after_training(training_session&) {}
};
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<64>, saver{});
}

// case: trainer_steps_per_execution
// error: wrong_argument<.*steps_per_execution.*because<.*options_and_callbacks_go_to_fit_after_the_data>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, steps_per_execution(8)};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: trainer_test_hook
// error: wrong_argument<.*reporter.*because<.*the_hooks_of_evaluate_and_predict_take_a_pass_state>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
struct reporter {
  void on_epoch_end(training_state&) {}
#ifdef TWIN
  void on_test_end(pass_state&) {}
#else
  void on_test_end(training_state&) {}
#endif
};
void train() {
  const std::vector<float> x(80);
  const std::vector<int> y(10);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(x, y, reporter{});
}
