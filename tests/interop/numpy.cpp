// The other half of test_numpy.py: writes arrays for NumPy, and prints what it reads from NumPy's.
// needs: libzip
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <strata/data/formats/npy.hpp>
#include <strata/data/formats/npz.hpp>
#include <string>
#include <vector>

using namespace strata;

namespace {

constexpr shape sample{2, 3};

/// Prints a value per line, with all its bits.
template <class T>
void print(const std::string& path, const std::string& member) {
  const auto a = member.empty() ? data::load_npy<T, sample>(path) : data::load_npz(path).load<T, sample>(member);
  for (const T v : a.values()) {
    if constexpr (std::is_same_v<T, double>) std::printf("%a\n", v);
    if constexpr (std::is_same_v<T, std::int64_t>) std::printf("%lld\n", static_cast<long long>(v));
    if constexpr (std::is_same_v<T, std::uint64_t>) std::printf("%llu\n", static_cast<unsigned long long>(v));
  }
}

template <class T>
std::vector<T> values() {
  std::vector<T> v(24);
  std::iota(v.begin(), v.end(), T{1});
  return v;
}

void write(const std::filesystem::path& folder) {
  const auto u1 = values<std::uint8_t>();
  const auto i2 = values<std::int16_t>();
  const auto i4 = values<std::int32_t>();
  const auto u8 = values<std::uint64_t>();
  auto f4 = values<float>();
  const auto f8 = values<double>();
  for (float& v : f4) v *= 0.1f;
  const data::array<float, sample> x(f4);
  const bool truth[] = {true, false, true};
  data::save_npy(folder / "u1.npy", {u1, {4, 2, 3}});
  data::save_npy(folder / "i2.npy", {i2, {4, 2, 3}});
  data::save_npy(folder / "i4.npy", {i4, {24}});
  data::save_npy(folder / "u8.npy", {u8, {2, 2, 1, 6}});
  data::save_npy(folder / "f4.npy", x);
  data::save_npy(folder / "f8.npy", {f8, {4, 2, 3}});
  data::save_npy(folder / "b1.npy", truth);
  for (const bool compressed : {false, true})
    data::save_npz(folder / (compressed ? "compressed.npz" : "stored.npz"),
                   {{"x", x},
                    {"labels", i4},
                    {"n\xC3\xA4me", {u1, {24, 1}}},
                    {"scalar", {std::span(f8).first(1), {}}},
                    {"none", {std::span(f8).first(0), {0, 3}}}},
                   {.compressed = compressed});
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string command = argc > 1 ? argv[1] : "", path = argc > 2 ? argv[2] : "", member = argc > 3 ? argv[3] : "";
    if (command == "write") write(path);
    if (command == "float64") print<double>(path, member);
    if (command == "int64") print<std::int64_t>(path, member);
    if (command == "uint64") print<std::uint64_t>(path, member);
  } catch (const strata_error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
