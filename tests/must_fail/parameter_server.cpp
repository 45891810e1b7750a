// parameter_server.

// case: parameter_server_batch_norm
// error: not_for_parameter_servers<.*at_node<2>.*by_layer<.*batch_norm<.*because<.*no_worker_sees_the_whole_batch_use_mirrored
#include <strata/parameter_server/parameter_executor.hpp>
#include <strata/strata.hpp>

using namespace strata;
using namespace strata::core;

template <class T>
struct connection {
  int rank() const { return 0; }
  int size() const { return 1; }
  bool is_synchronous() const { return false; }
  double communicating() const { return 0; }
  double waiting() const { return 0; }
  void assign(const T*, bool) {}
  long pull(T*, std::int64_t) { return 0; }
  void pull_rows(std::span<const std::uint32_t>, T*) {}
  long push(pushed_gradient<T>&, T*) { return 0; }
  void announce_error(const std::string&) {}
};
#ifdef TWIN
using net = sequential<input<8>, dense<4>, layer_norm<>, activation<relu>, dense<3, softmax>>;
#else
using net = sequential<input<8>, dense<4>, batch_norm<>, activation<relu>, dense<3, softmax>>;
#endif
using whole = program<net, sparse_categorical_crossentropy<>, adam, type_list<>>;
static_assert(sizeof(parameter_executor<whole, connection>) > 0);
