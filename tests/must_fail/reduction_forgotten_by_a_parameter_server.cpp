// error: (cannot convert|could not convert|no (known|viable) conversion).*leaf_gradients.*global_gradient
#include <strata/parameter_server/contributions.hpp>
#include <strata/parameter_server/stored_shard.hpp>
#include <strata/strata.hpp>

using namespace strata;
using host = host_arithmetic<cpu>;
using shard = detail::stored_shard<float, sgd, host>;
void push(shard& kept, detail::single_contribution<float>& sent, const push_request& from, auto& read,
          const leaf_gradients<float, host_device>& computed) {
#ifdef TWIN
  kept.apply(sent.receive(from, kept.place().size(), kept.contents(), {}, read), kept.contents().rest(), from.learning_rate);
#else
  kept.apply(computed, kept.contents().rest(), from.learning_rate);
#endif
}
template void push(shard&, detail::single_contribution<float>&, const push_request&, void (*&)(float*, std::size_t),
                   const leaf_gradients<float, host_device>&);
