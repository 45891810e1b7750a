// Which algorithm of a library computes what: chosen by measurement once per process, and the same on all of its devices.
#pragma once
#include <map>
#include <mutex>
#include <string>

namespace strata::machine {

/// What was chosen for a description. One choice is made at a time.
class library_choices {
  std::recursive_mutex mutex_;
  std::map<std::string, std::string, std::less<>> chosen_;

 public:
  static library_choices& the() {
    static library_choices one;
    return one;
  }
  /// The choice for `what`. If there is none, or is_valid(choice) is false, it is made by choose().
  template <class IsValid, class Choose>
  std::string find(const std::string& what, IsValid&& is_valid, Choose&& choose) {
    const std::lock_guard locked(mutex_);
    if (const auto found = chosen_.find(what); found != chosen_.end() && is_valid(found->second)) return found->second;
    return chosen_[what] = choose();
  }
  /// For tests.
  void forget() {
    const std::lock_guard locked(mutex_);
    chosen_.clear();
  }
};

}  // namespace strata::machine
