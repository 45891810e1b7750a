// The C locale for one thread, whatever locale the program has set.
#pragma once
#include <locale.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif
#ifdef _WIN32
#include <string>
#endif

namespace strata::detail {

/// Sets the C locale for this thread during the lifetime of the object.
class c_locale {
#ifdef _WIN32
  int had_own_ = ::_configthreadlocale(_ENABLE_PER_THREAD_LOCALE);
  std::string before_ = ::setlocale(LC_ALL, nullptr);

 public:
  c_locale() { ::setlocale(LC_ALL, "C"); }
  c_locale(const c_locale&) = delete;
  ~c_locale() {
    ::setlocale(LC_ALL, before_.c_str());
    ::_configthreadlocale(had_own_);
  }
#else
  ::locale_t before_;

 public:
  c_locale() {
    static const ::locale_t c = ::newlocale(LC_ALL_MASK, "C", nullptr);
    before_ = ::uselocale(c);
  }
  c_locale(const c_locale&) = delete;
  ~c_locale() { ::uselocale(before_); }
#endif
};

}  // namespace strata::detail
