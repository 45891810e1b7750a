// A communicator of some of the processes of another one.
#pragma once
#include <cstddef>
#include <strata/concepts/communicator.hpp>

namespace strata::core {

/// `count` processes of C: `first`, `first + stride`, ... The other communicator outlives it; its wait() is for all messages of
/// this process, also those to others. first_size: the number of processes in the first generation of an elastic training.
template <communicator C>
class subgroup {
  C* all_;
  int first_, stride_, count_, first_size_;

 public:
  using memory = typename C::memory;

  subgroup(C& all, int first, int stride, int count) : subgroup(all, first, stride, count, count) {}
  subgroup(C& all, int first, int stride, int count, int first_size)
      : all_(&all), first_(first), stride_(stride), count_(count), first_size_(first_size) {}

  int rank() const { return (all_->rank() - first_) / stride_; }
  int size() const { return count_; }
  int first_size() const { return first_size_; }
  memory allocate(std::size_t bytes) { return all_->allocate(bytes); }
  void send(memory& from, std::size_t offset, std::size_t bytes, int to) {
    all_->send(from, offset, bytes, first_ + to * stride_);
  }
  void receive(memory& to, std::size_t offset, std::size_t bytes, int from) {
    all_->receive(to, offset, bytes, first_ + from * stride_);
  }
  void wait(const char* what) { all_->wait(what); }
  auto begun() const { return all_->begun(); }
  void wait_received(const char* what, const auto& mark) { all_->wait_received(what, mark); }
};

}  // namespace strata::core
