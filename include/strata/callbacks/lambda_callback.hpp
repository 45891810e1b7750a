// lambda_callback: hooks as functions.
#pragma once
#include <functional>
#include <strata/concepts/callback.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata {

namespace core {
/// An optional hook.
template <class State>
class optional_hook {
  std::function<void(State&)> f_;

 public:
  optional_hook() = default;
  template <class F>
    requires std::is_invocable_v<F&, State&>
  optional_hook(F f) : f_(std::move(f)) {}
  void operator()(State& s) const {
    if (f_) f_(s);
  }
};
}  // namespace core

/// `lambda_callback{.on_epoch_end = [](training_state& s) { std::cout << s.values << std::endl; }}`
/// https://keras.io/api/callbacks/lambda_callback
struct lambda_callback {
  core::optional_hook<training_state> on_epoch_begin{}, on_epoch_end{}, on_train_begin{}, on_train_end{}, on_batch_begin{},
      on_batch_end{};
  core::optional_hook<pass_state> on_test_begin{}, on_test_end{}, on_test_batch_begin{}, on_test_batch_end{}, on_predict_begin{},
      on_predict_end{}, on_predict_batch_begin{}, on_predict_batch_end{};
  std::vector<std::string> adds{};  // names of the values that it sets at the end of an epoch
};
static_assert(core::callback<lambda_callback>);

}  // namespace strata
