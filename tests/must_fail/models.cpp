// Models of concepts that lack a member.
#include <strata/communicators/message_engine.hpp>
#include <strata/net/field.hpp>

// case: communicator_without_wait_received
// error: incomplete_model<.*communicator_of_mine.*because<.*communicators_have_begun_and_wait_received>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>

using namespace strata;
using namespace strata::core;
struct communicator_of_mine {
  using memory = detail::alone::memory;
  int rank() const { return 0; }
  int size() const { return 1; }
  memory allocate(std::size_t) { return {}; }
  void send(memory&, std::size_t, std::size_t, int) {}
  void receive(memory&, std::size_t, std::size_t, int) {}
  void wait(const char*) {}
  int begun() const { return 0; }
#ifdef TWIN
  void wait_received(const char*, int) {}
#endif
};
synchronous_among strategy{communicator_of_mine{}};

// case: engine_without_observe
// error: incomplete_model<.*engine_of_mine.*because<.*engines_have_observe_of_a_kernel_observer>
#include <strata/strata.hpp>

using namespace strata;
using namespace strata::core;
using P = program<sequential<input<8>, dense<10, softmax>>, sparse_categorical_crossentropy<>, adam, type_list<>>;
struct engine_of_mine : cpu_engine<P, cpu> {
  using cpu_engine<P, cpu>::cpu_engine;
#ifndef TWIN
  void observe();
#endif
};
template <>
struct strata::core::engine_for<P, cpu> {
  using type = engine_of_mine;
};
bool check = sizeof(synchronous_executor<P, cpu>) > 0;

// case: engine_without_update
// error: incomplete_model<.*engine_of_mine.*because<.*engines_have_update_of_a_global_gradient_and_update_state>
#include <strata/strata.hpp>

using namespace strata;
using namespace strata::core;
using P = program<sequential<input<8>, dense<10, softmax>>, sparse_categorical_crossentropy<>, adam, type_list<>>;
struct engine_of_mine : cpu_engine<P, cpu> {
  using cpu_engine<P, cpu>::cpu_engine;
#ifndef TWIN
  void update();
#endif
};
template <>
struct strata::core::engine_for<P, cpu> {
  using type = engine_of_mine;
};
bool check = sizeof(synchronous_executor<P, cpu>) > 0;

// case: executor_without_finish
// error: incomplete_model<.*executor_of_mine.*because<.*executors_have_finish_which_returns_metric_sums>
#include <strata/strata.hpp>

#include <must_fail/complete_models.hpp>

using namespace strata;
using namespace strata::core;
template <class P>
struct executor_of_mine : test::complete_executor<P> {
  using test::complete_executor<P>::complete_executor;
#ifndef TWIN
  void finish();
#endif
};
using strategy_of_mine = test::complete_strategy<executor_of_mine>;
void train() { trainer model{test::small_net{}, adam{}, sparse_categorical_crossentropy{}, strategy_of_mine{}}; }

// case: message_engine_without_stop
// error: abstract.*stop
struct engine_of_mine final : strata::detail::message_engine {
  void send(std::byte*, std::size_t, int) override {}
  void receive(std::byte*, std::size_t, int) override {}
  std::uint64_t begun() const override { return 0; }
  void wait_received(const char*, std::uint64_t) override {}
  void wait(const char*) override {}
  void interrupt(const std::string&) override {}
#ifdef TWIN
  void stop() override {}
#endif
};
engine_of_mine engine;

// case: process_group_without_vote_result
// error: incomplete_model<.*group_of_mine.*because<.*process_groups_have_vote_and_vote_result>
#include <strata/strata.hpp>

#include <must_fail/complete_models.hpp>

using namespace strata;
using namespace strata::core;
struct group_of_mine : solo_group {
#ifndef TWIN
  void vote_result();
#endif
};
template <class P>
using executor_of_mine = test::complete_executor<P, group_of_mine>;
using strategy_of_mine = test::complete_strategy<executor_of_mine>;
void train() { trainer model{test::small_net{}, adam{}, sparse_categorical_crossentropy{}, strategy_of_mine{}}; }

// case: strategy_without_make
// error: incomplete_model<.*strategy_of_mine.*because<.*a_strategy_has_make_of_an_optimizer_and_a_seed>
#include <strata/strata.hpp>

#include <must_fail/complete_models.hpp>

using namespace strata;
using namespace strata::core;
template <class P>
using executor_of_mine = test::complete_executor<P>;
struct strategy_of_mine : test::complete_strategy<executor_of_mine> {
#ifndef TWIN
  void make();
#endif
};
using whole = trainer<program<test::small_net, sparse_categorical_crossentropy<>, adam, type_list<>>, strategy_of_mine>;
bool check = sizeof(whole) > 0;

// case: strategy_without_name
// error: incomplete_model<.*strategy_of_mine.*because<.*a_strategy_is_copyable_and_has_a_name>
#include <strata/strata.hpp>

#include <must_fail/complete_models.hpp>

using namespace strata;
using namespace strata::core;
template <class P>
using executor_of_mine = test::complete_executor<P>;
struct strategy_of_mine : test::complete_strategy<executor_of_mine> {
#ifndef TWIN
  void name();
#endif
};
void train() { trainer model{test::small_net{}, adam{}, sparse_categorical_crossentropy{}, strategy_of_mine{}}; }

// case: wire_message_with_equal_tags
// error: two fields of a message have the same number
using namespace strata;
using namespace strata::core;
struct heartbeat_of_mine {
  int waits_for = -1;
  bool knows_failure = false;
  static constexpr auto message_name = "heartbeat";
#ifdef TWIN
  using fields = wire::fields<wire::field<1, &heartbeat_of_mine::waits_for>, wire::field<2, &heartbeat_of_mine::knows_failure>>;
#else
  using fields = wire::fields<wire::field<1, &heartbeat_of_mine::waits_for>, wire::field<1, &heartbeat_of_mine::knows_failure>>;
#endif
};
heartbeat_of_mine::fields all;
