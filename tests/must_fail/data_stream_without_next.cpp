// error: the source of a stream_view is copyable and has .element., start.epoch., and next.element., which returns bool
#include <strata/data/core/stream.hpp>
using namespace strata;

/// 3, 2, 1.
class countdown {
  int left_ = 0;

 public:
  using element = int;
  void start(int) { left_ = 3; }
#ifdef TWIN
  bool next(int& e) { return (e = left_--) > 0; }
#endif
};

void check() { data::stream_view(countdown{}); }
