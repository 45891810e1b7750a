// error: wrong_argument<.*measure.*because<.*the_member_adds_of_a_callback_is_public_and_a_text_or_a_range_of_texts>
// whole program
#include <strata/strata.hpp>

using namespace strata;
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
