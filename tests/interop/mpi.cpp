// needs: mpi openssl protozero
// mpi [among|multi_worker|twice|much|late] [BYTES_PER_PACK]: a process that mpirun starts trains with the others, over MPI.
#include <cstring>
#include <iostream>
#include <strata/communicators/mpi.hpp>
#include <strata/distribute/multi_worker_mirrored.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/resolvers/mpirun.hpp>
#include <strata/strata.hpp>
#include <string>
#include <thread>

#include "distributed/outcome.hpp"
using namespace strata;

namespace {
using mlp = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dropout<0.2_r>, dense<64, relu>, dense<10, softmax>>;

/// Trains, and returns a digest of the parameters.
std::string trained(const auto& strategy) {
  const auto digits = data::synthetic_digits(150, 3);
  trainer model{mlp{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(5)};
  model.fit(digits | data::shuffle(150) | data::batch<64>, epochs(2), verbose::off);
  return test::digest_of(model.parameters());
}

/// Exchanges more than fits in one message of MPI.
void exchange_much() {
  mpi_communicator c;
  constexpr std::size_t bytes = (std::size_t{1} << 26) + 4096;
  if (c.rank() > 1) return;
  auto memory = c.allocate(bytes);
  if (c.rank() == 0) std::memset(memory.data(), 7, bytes);
  c.rank() == 0 ? c.send(memory, 0, bytes, 1) : c.receive(memory, 0, bytes, 0);
  c.wait("much");
  std::cout << (memory.data()[bytes - 1] == std::byte(7) ? "all of it\n" : "not all of it\n");
}
}  // namespace

int main(int argc, char** argv) try {
  const std::string what = argc > 1 ? argv[1] : "one_device";
  const compute_options compute{.threads = 1, .leaves = 4};
  const communication_options communication{.bytes_per_pack = argc > 2 ? std::stoul(argv[2]) : 0,
                                            .implementation = mpi_communication};
  if (what == "one_device") std::cout << "digest " + trained(one_device{compute}) + '\n';
  if (what == "among") std::cout << "digest " + trained(synchronous_among{mpi_communicator(), compute, communication}) + '\n';
  if (what == "multi_worker")
    std::cout << "digest " + trained(multi_worker_mirrored{mpirun(), {.compute = compute, .communication = communication}}) +
                     '\n';
  if (what == "twice") {  // two trainings, one after the other, in a program that uses MPI itself
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &argc);
    const std::string first = trained(synchronous_among{mpi_communicator(), compute});
    std::cout << (first == trained(synchronous_among{mpi_communicator(), compute}) ? "digest " + first + '\n' : "unequal\n");
    MPI_Finalize();
  }
  if (what == "much") exchange_much();
  if (what == "late") {
    mpi_communicator c(std::chrono::milliseconds(500));
    if (c.rank() > 0) std::this_thread::sleep_for(std::chrono::seconds(60));
    auto memory = c.allocate(100);
    c.receive(memory, 0, 100, 1);
    c.wait("gradients");
  }
} catch (...) {
  return test::report_error();
}
