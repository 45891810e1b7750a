// Sizes of memory: 512_MiB.
#pragma once

namespace strata {
inline namespace literals {

consteval long operator""_KiB(unsigned long long n) { return long(n) << 10; }
consteval long operator""_MiB(unsigned long long n) { return long(n) << 20; }
consteval long operator""_GiB(unsigned long long n) { return long(n) << 30; }

}  // namespace literals
}  // namespace strata
