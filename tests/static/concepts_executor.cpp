// Models of executor, elastic_group and communicator that each lack one member: each has its own diagnostic.
#include <strata/distribute/mirrored.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/kernel/unfused.hpp>
#include <strata/optimizers/adam.hpp>
#include <strata/strata.hpp>
#include <type_traits>
#include <utility>

using namespace strata;
using namespace strata::core;

using P = program<sequential<input<8>, dense<10, softmax>>, sparse_categorical_crossentropy<>, adam, type_list<accuracy>>;

static_assert(std::is_same_v<decltype(mirrored<unfused<cpu>>{cpus(2)})::backend, unfused<cpu>>);

template <int>
struct nothing {};

template <class... Verdicts>
constexpr bool all_differ = true;
template <class First, class... More>
constexpr bool all_differ<First, More...> =
    (!std::is_same_v<typename First::type, typename More::type> && ...) && all_differ<More...>;

template <int Without>
struct some_group : std::conditional_t<Without == 5, nothing<0>, fixed_membership> {
  int rank() const
    requires(Without != 0);
  int size() const;
  bool is_chief() const;
  std::vector<double> gather(std::span<const double>)
    requires(Without != 1);
  void broadcast(std::span<std::byte>)
    requires(Without != 2);
  void vote(bool);
  bool vote_result() const
    requires(Without != 3);
  void barrier()
    requires(Without != 4);
  void announce_error(const std::string&);
  void announce_work(const std::string&) const
    requires(Without != 6);
};
static_assert(elastic_group<some_group<-1>> && process_group<some_group<5>>);
template <int... I>
constexpr bool each_group_lacks_one(std::integer_sequence<int, I...>) {
  return (!elastic_group<some_group<I>> && ...) && all_differ<detail::process_group_verdict<some_group<I>>...>;
}
static_assert(each_group_lacks_one(std::make_integer_sequence<int, 7>{}));

template <int Without>
struct some_executor : std::conditional_t<Without == 7, nothing<0>, counted_optimizer<adam>>,
                       std::conditional_t<Without == 9, nothing<1>, executor_defaults> {
  void prepare(int, purpose)
    requires(Without != 0);
  metric_sums<P> train_step(samples<float>)
    requires(Without != 1);
  metric_sums<P> finish()
    requires(Without != 2);
  metric_sums<P> evaluate_step(samples<float>)
    requires(Without != 3);
  void predict(samples<float>, output_rows<float>)
    requires(Without != 4);
  std::span<float> parameters();
  std::span<const float> parameters() const
    requires(Without != 5);
  void parameters_changed()
    requires(Without != 6);
  solo_group& group();
  const solo_group& group() const
    requires(Without != 8);
};
static_assert(executor<some_executor<-1>, P>);
template <int... I>
constexpr bool each_executor_lacks_one(std::integer_sequence<int, I...>) {
  return (!executor<some_executor<I>, P> && ...) && all_differ<detail::executor_verdict<some_executor<I>, P>...>;
}
static_assert(each_executor_lacks_one(std::make_integer_sequence<int, 10>{}));
static_assert(executor<one_device<>::executor<P>, P> && executor<mirrored<>::executor<P>, P>);

template <int Without>
struct some_communicator {
  struct memory {
    std::byte* data();
  };
  some_communicator(some_communicator&&)
    requires(Without != 0);
  some_communicator& operator=(some_communicator&&)
    requires(Without != 0);
  int rank() const
    requires(Without != 1);
  int size() const;
  memory allocate(std::size_t)
    requires(Without != 2);
  void send(memory&, std::size_t, std::size_t, int);
  void receive(memory&, std::size_t, std::size_t, int)
    requires(Without != 3);
  void wait(const char*)
    requires(Without != 4);
  int begun() const
    requires(Without != 5);
  void wait_received(const char*, int);
};
static_assert(communicator<some_communicator<-1>>);
template <int... I>
constexpr bool each_communicator_lacks_one(std::integer_sequence<int, I...>) {
  return (!communicator<some_communicator<I>> && ...) && all_differ<detail::communicator_verdict<some_communicator<I>>...>;
}
static_assert(each_communicator_lacks_one(std::make_integer_sequence<int, 6>{}));
