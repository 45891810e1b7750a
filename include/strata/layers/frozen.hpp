// frozen<items...>: layers whose weights are not trained.
#pragma once
#include <strata/base/meta.hpp>

namespace strata {

/// A sequence of layers: their weights are state, as with Keras' `layer.trainable = False`. The optimizer keeps nothing for them,
/// regularizers add no penalty, and no gradient is computed below the first layer that trains. A batch_norm among them uses its
/// moving statistics, which do not change; dropout is not affected.
///   sequential<input<28, 28, 1>, frozen<conv2d<32, 3, relu>, max_pool2d<2>, flatten>, dense<10, softmax>>
/// in: any  out: that of the last item.  https://keras.io/guides/transfer_learning
template <class... Items>
struct frozen {};

namespace detail {
/// The operation used in a frozen layer: an operation whose training does more than update weights has a member `when_frozen`.
template <class Operation>
struct frozen_operation {
  using type = Operation;
};
template <class Operation>
  requires requires { typename Operation::when_frozen; }
struct frozen_operation<Operation> {
  using type = typename Operation::when_frozen;
};
}  // namespace detail

}  // namespace strata
