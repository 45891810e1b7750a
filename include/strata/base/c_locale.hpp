// The locale C for one thread, whatever locale the program has chosen.
#pragma once
#include <locale.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

namespace strata::detail {

/// While it lives, this thread has the locale C.
class c_locale {
  ::locale_t before_;

 public:
  c_locale() {
    static const ::locale_t c = ::newlocale(LC_ALL_MASK, "C", nullptr);
    before_ = ::uselocale(c);
  }
  c_locale(const c_locale&) = delete;
  ~c_locale() { ::uselocale(before_); }
};

}  // namespace strata::detail
