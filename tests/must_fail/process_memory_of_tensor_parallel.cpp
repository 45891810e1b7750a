// error: wrong_argument<.*tensor_ranks<1, 2, .*because<.*process_memory_is_known_of_zero_and_of_strategies_over_processes_such_as_multi_worker_pipeline>
#include <strata/distribute/process_memory.hpp>
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
using training = program<net, sparse_categorical_crossentropy<>, adam, type_list<>>;
using halves = layout_map<rule<"dense", by_columns>>;

#ifdef TWIN
static_assert(process_memory_of<training, zero<2>>({.batch = 64, .processes = 4}).peak() > 0);
#else
static_assert(process_memory_of<training, tensor_parallel<2, halves>>({.batch = 64}).peak() >= 0);
#endif
