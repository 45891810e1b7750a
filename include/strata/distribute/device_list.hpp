// Which devices a strategy names, and the sentences about those that it does not take.
#pragma once
#include <concepts>
#include <strata/base/reason.hpp>

namespace strata {

/// `type` is the list of devices that a strategy shares a batch among. Each backend specialises it. The list names its backend,
/// as `backend`, so that `mirrored{gpus()}` is mirrored<cuda>.
template <class Backend>
struct device_list;

/// Whether D is the device list of a backend, such as `cpus` and `gpus`.
template <class D>
concept lists_devices = requires { typename device_list<typename D::backend>::type; } &&
                        std::same_as<D, typename device_list<typename D::backend>::type>;

// The sentence about devices that a strategy does not take. Never defined.
template <class Given, class Why>
struct wrong_devices;

inline constexpr reason one_device_takes_a_device_such_as_gpu_0_or_compute_options_and_mirrored_takes_several{
    "one_device takes one device, such as gpu(0), or compute_options; mirrored takes several"};
inline constexpr reason mirrored_takes_a_list_of_devices_such_as_gpus_or_cpus_4{
    "mirrored takes a list of devices, such as gpus() or cpus(4)"};
inline constexpr reason central_storage_takes_cpus_and_gpus_are_for_mirrored{"central_storage takes cpus; gpus are for mirrored"};

namespace detail {
/// The backend of a strategy that has told its sentence: it goes on as if no device was named, so that the sentence is the only
/// error.
template <class Given, const reason& Why>
struct refused_devices;
}  // namespace detail

}  // namespace strata
