// error: abstract.*stop
#include <strata/communicators/message_engine.hpp>

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
