// Requests plans for an H100 from cuDNN, without such a GPU: every kind of convolution that strata gives to cuDNN must have some.
// Prints how many, or that this version of cuDNN does not accept the description of a device.
#include <cstdio>
#include <exception>
#include <strata/cuda/machine/dnn.hpp>
#include <string_view>
using namespace strata::machine;

namespace {
// The keys are those that cuDNN 9.19 requires.
constexpr std::string_view h100 =
    R"({"deviceName": "NVIDIA H100 80GB HBM3", "deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0,
        "totalGlobalMem": 85899345920, "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
        "regsPerBlock": 65536, "multiProcessorCount": 132, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
        "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
        "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
        "supportCoopLaunch": 1, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000, "l2CacheSize": 52428800})";

bool has_plans(const detail::dnn_target& target, const dnn_convolution& what) {
  check(what);
  const auto plans = dnn_plan::candidates(target, what);
  std::printf("%zu plans: %s\n", plans.size(), text_of(what).c_str());
  return !plans.empty() && plans.size() <= most_dnn_plans && plans.front().text().starts_with("{");
}
}  // namespace

int main() {
  try {
    detail::dnn_descriptor device(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, h100.data(), h100.size());
    if (!device.finalize()) return std::printf("cuDNN does not take the description of a device\n"), 0;
    const detail::dnn_target target{nullptr, &device};
    const dnn_axis plain{32, 32, 3, 1, 1, 1, 1}, strided{32, 16, 3, 2, 1, 0, 1}, valid{30, 28, 3};
    bool all = true;
    for (const factor_type factors : {factor_type::f32, factor_type::tf32, factor_type::bf16})
      for (const dnn_axis& axis : {plain, strided, valid}) {
        const bool fuses = factors != factor_type::bf16;
        for (const dnn_direction direction : {dnn_direction::forward, dnn_direction::input_gradient, dnn_direction::kernel_gradient})
          all = has_plans(target, {direction, factors, 32, axis, axis, 64, 128, false, false, 16}) && all;
        if (fuses) all = has_plans(target, {dnn_direction::forward, factors, 32, axis, axis, 64, 128, true, true, 16}) && all;
      }
    return all ? 0 : 1;
  } catch (const std::exception& e) {
    return std::printf("%s\n", e.what()), 1;
  }
}
