// on_device<0, items...>: layers that one device computes.
#pragma once

namespace strata {

/// A sequence of layers computed by a device of the strategy `placed`, given by its index from 0. The device keeps their
/// activations; those that other devices read are sent. Layers outside of any `on_device` are on device 0; of nested ones the
/// innermost counts. The results are those of the same network without it, bit for bit.
///   add<on_device<0, dense<64, relu>>, on_device<1, dense<64, relu>>>
/// in: any  out: that of the last item.  https://www.tensorflow.org/api_docs/python/tf/device
template <int Index, class... Items>
struct on_device {};

}  // namespace strata
