// Objects that calls use one after the other, such as engines with their memory.
#pragma once
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace strata::detail {

/// Objects of any types. A call borrows one that no other call uses, and later calls use it again; many threads may call.
class reused_objects {
  struct object {
    const char* type;
    std::shared_ptr<void> it;
  };
  template <class T>
  static constexpr char type_of = 0;

  std::mutex mutex_{};
  std::vector<object> idle_{};
  std::size_t lent_ = 0;

 public:
  template <class T>
  class lent {
    reused_objects& from_;
    std::shared_ptr<void> it_;

   public:
    lent(reused_objects& from, std::shared_ptr<void> it) : from_(from), it_(std::move(it)) {}
    lent(const lent&) = delete;
    lent& operator=(const lent&) = delete;
    ~lent() {
      const std::lock_guard lock(from_.mutex_);
      --from_.lent_;
      from_.idle_.push_back({&type_of<T>, std::move(it_)});  // there is room
    }
    T& operator*() const { return *static_cast<T*>(it_.get()); }
    T* operator->() const { return static_cast<T*>(it_.get()); }
  };

  /// An object of type T, made from the arguments if there is none that is idle.
  template <class T, class... Arguments>
  lent<T> borrow(const Arguments&... arguments) {
    {
      const std::lock_guard lock(mutex_);
      for (object& each : idle_)
        if (each.type == &type_of<T>) {
          std::swap(each, idle_.back());
          std::shared_ptr<void> it = std::move(idle_.back().it);
          idle_.pop_back(), ++lent_;
          return {*this, std::move(it)};
        }
    }
    std::shared_ptr<void> made = std::make_shared<T>(arguments...);
    const std::lock_guard lock(mutex_);
    idle_.reserve(idle_.size() + lent_ + 1), ++lent_;
    return {*this, std::move(made)};
  }
};

}  // namespace strata::detail
