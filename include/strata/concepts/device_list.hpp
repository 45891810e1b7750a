// The lists of devices that strategies take.
#pragma once
#include <concepts>
#include <strata/base/namespaces.hpp>

namespace strata::core {

/// `type` is the list of devices among which a strategy divides a batch. Each backend specialises it. The list has a member type
/// `backend`, so that `mirrored{gpus()}` is mirrored<cuda>.
template <class Backend>
struct device_list;
/// A backend that wraps another one, such as fits_in<8_MiB>, has the list of that one.
template <class Backend>
  requires requires { typename Backend::whole; }
struct device_list<Backend> : device_list<typename Backend::whole> {};

/// Whether D is the device list of a backend, such as `cpus` and `gpus`.
template <class D>
concept lists_devices = requires { typename device_list<typename D::backend>::type; } &&
                        std::same_as<D, typename device_list<typename D::backend>::type>;

/// `type` is one device of a backend, as in `one_device{gpu(0)}`. Backends whose devices have names specialise it; the type of
/// others takes no value.
template <class Backend>
struct single_device {
  struct type {
    type() = delete;
    template <class Options>
    Options with(Options) const;
  };
};

}  // namespace strata::core
