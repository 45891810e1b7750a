// cluster: the processes of a training, their addresses, and which of them this process is.
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <strata/base/hash.hpp>
#include <strata/base/reason.hpp>
#include <strata/base/text.hpp>
#include <strata/net/endpoint.hpp>
#include <utility>
#include <vector>

namespace strata {

/// The role of a process; TensorFlow calls it the task type. Chief and workers train; the chief also coordinates and writes
/// checkpoints. A ps (parameter server) keeps parameters. The evaluator evaluates checkpoints while the others train.
/// https://www.tensorflow.org/guide/distributed_training#TF_CONFIG
enum class role : std::uint8_t { chief, worker, ps, evaluator };

namespace core {
inline constexpr std::array all_roles = {role::chief, role::worker, role::ps, role::evaluator};

constexpr const char* name_of(role r) {
  constexpr const char* names[] = {"chief", "worker", "ps", "evaluator"};
  return names[static_cast<std::size_t>(r)];
}
}  // namespace core

/// One process of a cluster.
struct cluster_task {
  role type = role::worker;
  int index = 0;

  friend bool operator==(const cluster_task&, const cluster_task&) = default;
};

/// "worker 1"
inline std::string to_string(cluster_task t) { return core::name_of(t.type) + (' ' + std::to_string(t.index)); }

/// The result of a resolver. The constructor of `cluster` checks it.
struct cluster_spec {
  /// An unknown address becomes known at the rendezvous: its process sends it to the coordinator, which sends it to the others.
  using addresses = std::vector<std::optional<core::endpoint>>;

  addresses chief{}, worker{}, ps{}, evaluator{};
  cluster_task task{};
  std::optional<core::endpoint> coordinator{};    // left out: the address of rank 0
  std::optional<int> local_rank{}, local_size{};  // left out: counted over equal hosts, if addresses are known
  std::string run_id{};                           // left out: a fingerprint of the addresses
  std::uint64_t generation = 0;

 private:
  template <class Spec>
  static auto& of_role(Spec& s, role r) {
    return r == role::chief ? s.chief : r == role::worker ? s.worker : r == role::ps ? s.ps : s.evaluator;
  }

 public:
  addresses& operator[](role r) { return of_role(*this, r); }
  const addresses& operator[](role r) const { return of_role(*this, r); }
};

/// All members in one line: "chief a:1, worker b:1 c:1, ps ?", where ? is an unknown address. Processes compare this text to find
/// out whether they mean the same cluster.
inline std::string to_string(const cluster_spec& spec) {
  std::string out;
  for (const role r : core::all_roles) {
    if (spec[r].empty()) continue;
    out += (out.empty() ? "" : ", ") + std::string(core::name_of(r));
    for (const auto& address : spec[r]) out += ' ' + (address ? to_string(*address) : "?");
  }
  return out;
}

/// A cluster as one of its processes sees it: a constant value. When members come or go, a new cluster with the next generation
/// is made from a changed copy of the spec.
class cluster {
 public:
  /// Throws strata_error if the spec is not valid: no process trains, several chiefs or evaluators, a task that is not in
  /// the cluster, an address given twice, or several processes without the address of a coordinator.
  explicit cluster(cluster_spec spec) : spec_(std::move(spec)) {
    check_members();
    check_task();
    check_addresses();
    find_coordinator();
    find_neighbours();
    has_named_run_ = !spec_.run_id.empty();
    if (!has_named_run_) spec_.run_id = fingerprint();
  }

  const cluster_task& task() const { return spec_.task; }
  /// True if this process has rank 0: the chief, or worker 0 in a cluster without a chief.
  bool is_chief() const { return spec_.task == task_of_rank(0); }
  /// True if this process is the chief or a worker. Only these have a rank.
  bool trains() const { return spec_.task.type == role::chief || spec_.task.type == role::worker; }

  /// Among the processes that train, the chief has rank 0 and the workers follow. Throws strata_error for the other
  /// roles.
  int rank() const { return rank_of(spec_.task); }
  int rank_of(cluster_task t) const {
    if (t.type != role::chief && t.type != role::worker)
      throw_error(to_string(t) + " has no rank: only the chief and the workers train");
    return t.type == role::chief ? 0 : t.index + count(role::chief);
  }
  cluster_task task_of_rank(int rank) const {
    return rank < count(role::chief) ? cluster_task{role::chief, rank} : cluster_task{role::worker, rank - count(role::chief)};
  }
  /// The number of processes that train.
  int size() const { return count(role::chief) + count(role::worker); }
  int count(role r) const { return static_cast<int>(spec_[r].size()); }

  /// Rank and size among the processes on this host, if known: to choose a GPU or to share the cores.
  std::optional<int> local_rank() const { return spec_.local_rank; }
  std::optional<int> local_size() const { return spec_.local_size; }

  /// Nothing if the address is unknown before the rendezvous. Throws strata_error for a task that the cluster does not
  /// have.
  const std::optional<core::endpoint>& address(cluster_task t) const {
    if (!contains(t)) throw_error("there is no " + to_string(t) + " in the cluster of " + to_string(spec_));
    return spec_[t.type][static_cast<std::size_t>(t.index)];
  }
  /// True if all addresses are known without a rendezvous.
  bool knows_addresses() const {
    return std::ranges::all_of(core::all_roles, [&](role r) {
      return std::ranges::all_of(spec_[r], [](const auto& address) { return address.has_value(); });
    });
  }
  bool contains(cluster_task t) const { return 0 <= t.index && t.index < count(t.type); }

  /// True if this process is the only one.
  bool is_alone() const { return members() == 1 && contains(spec_.task); }
  /// The address of the coordinator. Throws strata_error in a cluster of one process without an address.
  const core::endpoint& coordinator() const {
    if (!spec_.coordinator) throw_error("a cluster of one process without an address has no coordinator");
    return *spec_.coordinator;
  }

  /// Equal in all processes of a run, and different in other runs, as far as the resolver can distinguish them.
  const std::string& run_id() const { return spec_.run_id; }
  /// True if the resolver set the run id; otherwise it is a fingerprint of the addresses.
  bool has_named_run() const { return has_named_run_; }
  /// The number of times that the cluster was formed anew during the run.
  std::uint64_t generation() const { return spec_.generation; }

  const cluster_spec& spec() const { return spec_; }

 private:
  cluster_spec spec_;
  bool has_named_run_ = false;

  int members() const { return size() + count(role::ps) + count(role::evaluator); }

  void check_members() const {
    if (size() == 0) throw_error("the cluster has neither a chief nor a worker, so no process would train");
    for (const role r : {role::chief, role::evaluator}) {
      if (count(r) > 1)
        throw_error(detail::formatted("the cluster has %d %ss, but may have only one", count(r), core::name_of(r)));
    }
  }

  void check_task() const {
    const cluster_task t = spec_.task;
    // As in TensorFlow, the evaluator may be left out of the cluster: the others need no address of it.
    if (contains(t) || (t == cluster_task{role::evaluator, 0} && count(role::evaluator) == 0)) return;
    if (count(t.type) == 0)
      throw_error("this process is " + to_string(t) + ", but the cluster has no " + core::name_of(t.type) + ": " +
                  to_string(spec_));
    throw_error(detail::formatted("this process is %s, but the %ss of the cluster are 0 to %d", to_string(t).c_str(),
                                  core::name_of(t.type), count(t.type) - 1));
  }

  void check_addresses() const {
    std::map<std::string, cluster_task> seen;
    for (const role r : core::all_roles) {
      for (int i = 0; i < count(r); ++i) {
        const cluster_task t{r, i};
        if (!address(t)) continue;
        const auto [first, is_new] = seen.try_emplace(detail::lower_case(to_string(*address(t))), t);
        if (!is_new)
          throw_error(to_string(first->second) + " and " + to_string(t) + " have the same address, " + to_string(*address(t)));
      }
    }
  }

  void find_coordinator() {
    if (!spec_.coordinator) spec_.coordinator = address(task_of_rank(0));
    if (!spec_.coordinator && !is_alone())
      throw_error("the address of the coordinator, " + to_string(task_of_rank(0)) + ", is unknown");
  }

  void find_neighbours() {
    if (spec_.local_rank || !trains() || !address(spec_.task)) return;
    int before = 0, all = 0;
    for (int rank = 0; rank < size(); ++rank) {
      const auto& other = address(task_of_rank(rank));
      if (!other) return;
      const bool here = detail::same_host(other->host, address(spec_.task)->host);
      all += here;
      before += here && rank < this->rank();
    }
    spec_.local_rank = before;
    spec_.local_size = all;
  }

  std::string fingerprint() const {
    const std::uint64_t hash = detail::hash_of(to_string(spec_) + (spec_.coordinator ? to_string(*spec_.coordinator) : ""));
    return detail::formatted("%016llx", static_cast<unsigned long long>(hash));
  }
};

namespace reasons {
inline constexpr reason resolvers_are_copyable;
inline constexpr reason a_resolver_such_as_tf_config_comes_first_and_returns_a_cluster_when_called;
}  // namespace reasons

namespace detail {
template <class R>
auto requirements_of_resolver() {
  if constexpr (!std::copy_constructible<R>)
    return lacks<R, reasons::resolvers_are_copyable>{};
  else if constexpr (!requires(R& resolve) {
                       { resolve() } -> std::same_as<cluster>;
                     })
    return lacks<R, reasons::a_resolver_such_as_tf_config_comes_first_and_returns_a_cluster_when_called>{};
  else
    return no_complaint{};
}
/// no_complaint, or the first requirement that a resolver does not meet.
template <class R>
using resolver_verdict = decltype(requirements_of_resolver<R>());
}  // namespace detail

namespace core {
/// A copyable object that returns the cluster when it is called without arguments. Strategies take one.
template <class R>
concept cluster_resolver = std::same_as<detail::resolver_verdict<R>, detail::no_complaint>;
}  // namespace core

}  // namespace strata
