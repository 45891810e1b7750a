// on<device<0>, items...>: layers that one device computes.
#pragma once

namespace strata {

/// The number of a device of the strategy, from 0.
template <int Index>
struct device {
  static constexpr int index = Index;
};

/// Layers in a row, as they stand, which the device with that number computes. It keeps their activations; what another device
/// reads of them is sent. The device is one of the strategy `placed`. Layers outside of any `on` are on device 0; an inner `on`
/// counts. The results are those of the same network without `on`, bit for bit.
///   add<on<device<0>, dense<64, relu>>, on<device<1>, dense<64, relu>>>
/// in: any  out: that of the last item.  https://www.tensorflow.org/api_docs/python/tf/device
template <class Device, class... Items>
struct on {};

}  // namespace strata
