// After the first step, a training step allocates nothing and asks the system for nothing.
#include <doctest/doctest.h>

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <strata/strata.hpp>

#include "count_allocations.hpp"
#include "gradient_check.hpp"
#ifndef STRATA_TEST_NEW_IS_TAKEN

using namespace strata;
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
    auto* const executor = make_executor(1).release();  // no destructor: that would call the system
    executor->prepare(32, purpose::training), executor->prepare(32, purpose::inference);
    executor->train_step(batch.view());
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    for (int i = 0; i < 5; ++i) executor->train_step(batch.view());
  }));
}
#endif

#endif
