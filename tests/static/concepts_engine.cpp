// Models of an engine that each lack one member: each has its own diagnostic.
#include <strata/strata.hpp>
#include <type_traits>
#include <utility>

using namespace strata;
using namespace strata::core;

using P = program<sequential<input<8>, dense<10, softmax>>, sparse_categorical_crossentropy<>, adam, type_list<>>;

template <class... Verdicts>
constexpr bool all_differ = true;
template <class First, class... More>
constexpr bool all_differ<First, More...> =
    (!std::is_same_v<typename First::type, typename More::type> && ...) && all_differ<More...>;

struct no_device {};

template <int Without>
struct some_engine {
  using program = P;
  using options = compute_options;
  using value_type = float;
  using device = std::conditional_t<Without == 0, no_device, host_device>;
  static constexpr std::conditional_t<Without == 11, no_device, engine_traits> traits{};
  using gradient = leaf_gradients<float, host_device>;

  some_engine(options, leaf_policy, int)
    requires(Without != 1);
  int prepare(int, purpose, int)
    requires(Without != 2);
  void share_among(int);
  void observe(kernel_observer*)
    requires(Without != 10);
  void begin(purpose, samples<float>, philox, int, int);
  void forward(int);
  void forward_backward(auto&&);
  void backward(int)
    requires(Without != 3);
  double* sums(int);
  void set_statistics(int, std::span<const double>)
    requires(Without != 4);
  int leaves() const;
  std::span<const double> penalties();
  host_device on() const;
  host_device::queue queue() const
    requires(Without != 5);
  gradient gradients()
    requires(Without != 6);
  void update(const adam&, long, double, const global_gradient<float, host_device>&)
    requires(Without != 7);
  void update_state();
  void measure();
  void predict(output_rows<float>)
    requires(Without != 8);
  void read_parameters(std::span<float>);
  void write_parameters(std::span<const float>);
  void read_slots(std::span<float>)
    requires(Without != 9);
  void write_slots(std::span<const float>);
};
static_assert(engine<some_engine<-1>> && engine<cpu_engine<P, cpu>>);
template <int... I>
constexpr bool each_engine_lacks_one(std::integer_sequence<int, I...>) {
  return (!engine<some_engine<I>> && ...) && all_differ<detail::engine_verdict<some_engine<I>>...>;
}
static_assert(each_engine_lacks_one(std::make_integer_sequence<int, 12>{}));
