// error: incomplete_model<.*communicator_of_mine.*because<.*communicators_have_begun_and_wait_received>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>

using namespace strata;
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
