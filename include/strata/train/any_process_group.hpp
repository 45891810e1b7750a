// A process group with its type erased, so that what agrees through it is compiled once for all programs.
#pragma once
#include <cstddef>
#include <span>
#include <strata/concepts/process_group.hpp>
#include <string>
#include <vector>

namespace strata {

namespace core {
/// The members are described at the concept process_group.
class any_process_group {
 public:
  virtual bool is_chief() const = 0;
  virtual int size() const = 0;
  virtual std::vector<double> gather(std::span<const double> values) = 0;
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  virtual void vote(bool yes) = 0;
  virtual bool vote_result() const = 0;
  virtual void barrier() = 0;
  /// Whether this process has joined a running training and has not received its state yet.
  virtual bool is_late() const = 0;

  virtual void announce_work(const std::string& what) const = 0;

  /// Whether any process passes true. A collective call.
  bool any(bool yes) {
    const double mine = yes;
    for (const double each : gather(std::span(&mine, 1)))
      if (each != 0) return true;
    return false;
  }

 protected:
  any_process_group() = default;
  any_process_group(const any_process_group&) = default;
  ~any_process_group() = default;
};

/// The members are described at the concept elastic_group.
class any_membership {
 public:
  virtual bool is_late() const = 0;
  virtual void join() = 0;
  virtual void has_caught_up() = 0;
  virtual bool admit() = 0;
  virtual void broadcast_to_newcomers(std::span<std::byte> bytes) = 0;
  virtual int finished_fits() const = 0;
  virtual void leave() = 0;

 protected:
  any_membership() = default;
  any_membership(const any_membership&) = default;
  ~any_membership() = default;
};
}  // namespace core

namespace detail {

template <process_group Group>
class erased_group final : public any_process_group {
  Group& group_;

 public:
  explicit erased_group(Group& group) : group_(group) {}
  bool is_chief() const override { return group_.is_chief(); }
  int size() const override { return group_.size(); }
  std::vector<double> gather(std::span<const double> values) override { return group_.gather(values); }
  void broadcast(std::span<std::byte> bytes) override { group_.broadcast(bytes); }
  void vote(bool yes) override { group_.vote(yes); }
  bool vote_result() const override { return group_.vote_result(); }
  void barrier() override { group_.barrier(); }
  bool is_late() const override { return group_.is_late(); }
  void announce_work(const std::string& what) const override { group_.announce_work(what); }
};

template <elastic_group Group>
class erased_membership final : public any_membership {
  Group& group_;

 public:
  explicit erased_membership(Group& group) : group_(group) {}
  bool is_late() const override { return group_.is_late(); }
  void join() override { group_.join(); }
  void has_caught_up() override { group_.has_caught_up(); }
  bool admit() override { return group_.admit(); }
  void broadcast_to_newcomers(std::span<std::byte> bytes) override { group_.broadcast_to_newcomers(bytes); }
  int finished_fits() const override { return group_.finished_fits(); }
  void leave() override { group_.leave(); }
};

}  // namespace detail

}  // namespace strata
