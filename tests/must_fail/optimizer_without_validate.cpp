// error: incomplete_model<.*of_mine.*because<.*optimizers_have_validate_which_throws_for_wrong_settings>
// whole program
#include <strata/strata.hpp>

using namespace strata;
struct of_mine {
  static constexpr auto name = "of_mine";
  learning_rate_schedule learning_rate = 0.1;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
  int slots() const { return 0; }
#ifdef TWIN
  void validate() const {}
#endif
  template <class T>
  void with_rule(long step, double rate, auto&& f) const {
    sgd{}.with_rule<T>(step, rate, f);
  }
};
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, of_mine{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
