// After the first step, a training step allocates nothing and makes no system call.
#include <doctest/doctest.h>

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <strata/distribute/among.hpp>
#include <strata/distribute/device_mesh.hpp>
#include <strata/strata.hpp>
#include <strata/train/predictor.hpp>
#include <thread>

#include "count_allocations.hpp"
#include "gradient_check.hpp"
#ifndef STRATA_TEST_NEW_IS_TAKEN

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

using net = sequential<input<12, 12, 2>, conv2d<8, 3, relu>, max_pool2d<2>, conv2d<8, 3, same_padding, no_bias>, batch_norm<>,
                       activation<relu>, residual<conv2d<8, 3, same_padding, relu>>, dropout<0.2_r>, flatten,
                       dense<16, relu, kernel_regularizer<l2<>>>, dense<5, softmax>>;
using P = program<net, sparse_categorical_crossentropy<>, adam, type_list<accuracy>>;

auto make_executor(int threads) {
  return std::make_unique<synchronous_executor<P, cpu>>(
      adam{.learning_rate = exponential_decay{0.01, 10, 0.9}, .global_clipnorm = 1.0}, 1, compute_options{.threads = threads});
}

}  // namespace

TEST_CASE("a step allocates nothing") {
  const random_batch<P> batch(32), shorter(9);
  const auto executor = make_executor(2);
  executor->prepare(32, purpose::training), executor->prepare(32, purpose::inference);
  executor->train_step(batch.view());
  executor->evaluate_step(batch.view());
  std::vector<float> out(32 * 5);
  const long before = allocations;
  CHECK(before > 0);
  for (int i = 0; i < 5; ++i) {
    executor->train_step(batch.view());
    executor->train_step(shorter.view());
    executor->evaluate_step(batch.view());
    executor->predict(batch.view(), out.data());
  }
  CHECK(allocations == before);
}

TEST_CASE("nor does a prediction after prepare(), also the first one with new weights") {
  trainer model{net{}, sgd{}, sparse_categorical_crossentropy{}};
  predictor predicts{net{}, model.parameters()};
  predicts.prepare(3);
  const std::vector<float> x(3 * 288);
  std::vector<float> out(3 * 5);
  for (int replaced = 0; replaced < 3; ++replaced) {
    const long before = bytes_of_thread;
    predicts.predict(x, out);
    predicts.predict(std::span(x).first(288), std::span(out).first(5));
    CHECK(bytes_of_thread == before);
    predicts.set_parameters(model.parameters());
  }
}

TEST_CASE("nor do steps of ranks that divide layers") {
  using divided = sequential<input<12>, dense<16, relu>, dense<8, softmax>>;
  using D = program<divided, sparse_categorical_crossentropy<>, adam, type_list<accuracy>>;
  using halves = layout_map<rule<"dense", by_columns>, rule<"dense_1", by_classes>>;
  const random_batch<D> batch(24);
  /// Allocations of five steps of each kind. meet() waits for the other processes.
  const auto allocations_of = [&](auto&& strategy, auto&& meet) {
    auto executor = strategy.template make<D>(adam{}, 5);
    executor.prepare(24, purpose::training), executor.prepare(24, purpose::inference);
    std::vector<float> out(24 * 8);
    long before = 0;
    for (int i = 0; i < 6; ++i) {
      executor.train_step(batch.view());
      executor.evaluate_step(batch.view());
      executor.predict(batch.view(), out.data());
      if (i > 0) continue;
      meet();
      before = allocations;
      meet();
    }
    meet();
    return allocations - before;
  };
  const auto alone = [] {};
  CHECK(allocations_of(tensor_parallel<2, halves>{}, alone) == 0);
  CHECK(allocations_of(device_mesh<data_parallel<2>, tensor_parallel<2, halves>>{}, alone) == 0);
  CHECK(allocations_of(device_mesh<data_parallel<1>, pipeline<balanced<2>, micro_batches<4>>, tensor_parallel<2, halves>>{},
                       alone) == 0);
  std::barrier all(2);
  const auto meet = [&] { all.arrive_and_wait(); };
  std::vector<in_process> members = in_process::group(2);
  long of_other = -1;
  std::thread other([&] { of_other = allocations_of(tensor_parallel_among<in_process, 2, halves>{members[1]}, meet); });
  const long of_chief = allocations_of(tensor_parallel_among<in_process, 2, halves>{members[0]}, meet);
  other.join();
  CHECK(of_chief == 0);
  CHECK(of_other == 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a step makes no system call") {
  // In strict seccomp mode any call but read, write and exit ends the process with SIGKILL.
  const auto ends_well = [](auto&& f) {
    const pid_t child = fork();
    if (child == 0) {
      f();
      syscall(SYS_exit, 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  };
  CHECK_FALSE(ends_well([] {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    syscall(SYS_getppid);
  }));
  CHECK(ends_well([] {
    const random_batch<P> batch(32);
    auto* const executor = make_executor(1).release();  // is never destroyed: that would make system calls
    executor->prepare(32, purpose::training), executor->prepare(32, purpose::inference);
    executor->train_step(batch.view());
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    for (int i = 0; i < 5; ++i) executor->train_step(batch.view());
  }));
}
#endif

#endif
