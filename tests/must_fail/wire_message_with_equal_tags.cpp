// error: two fields of a message have the same number
#include <strata/net/field.hpp>

using namespace strata;
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
