// on<device<0>, items...>: layers that one device computes.
#pragma once

namespace strata {

/// A device of the strategy, by its index from 0.
template <int Index>
struct device {
  static constexpr int index = Index;
};

/// A sequence of layers computed by the device with that index. The device keeps their activations; those that other devices read
/// are sent. It is a device of the strategy `placed`. Layers outside of any `on` are on device 0; of nested ones the innermost
/// counts. The results are those of the same network without `on`, bit for bit.
///   add<on<device<0>, dense<64, relu>>, on<device<1>, dense<64, relu>>>
/// in: any  out: that of the last item.  https://www.tensorflow.org/api_docs/python/tf/device
template <class Device, class... Items>
struct on {};

}  // namespace strata
