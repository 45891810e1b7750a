// error: data::unbatch takes batches whose source can be copied
#include <memory>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/unbatch.hpp>
#include <utility>
using namespace strata;

using batches = decltype(data::range(4) | data::batch<2>);
struct with_a_file : batches {
#ifdef TWIN
  std::shared_ptr<int> file;
#else
  std::unique_ptr<int> file;
#endif
};

auto check(with_a_file view) { return std::move(view) | data::unbatch; }
