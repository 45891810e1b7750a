// Emulated devices notice what a GPU forgives now and then: host code that follows an address of a device, work that does not
// wait for other work, barriers that some threads miss. Also counts the work of a training step.
// needs: emulated_cuda
#include "compare.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <strata/callbacks/check_numerics.hpp>
#include <strata/cuda/cuda.hpp>
#include <strata/cuda/machine/nccl.hpp>
#include <strata/cuda/places.hpp>
#include <strata/program/least_bytes.hpp>
#include <strata/strata.hpp>
#include <string>
#include <thread>

#include "unit/error_of.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
struct add_one {
  float* values;
  void operator()(long i) const { values[i] += 1; }
};

struct misses_a_barrier {
  static constexpr int threads = 32;
  struct shared {
    int unused;
  };
  void operator()(const machine::lane& l, shared&) const {
    if (l.thread() < 7) l.barrier();
  }
};

/// Computes b = a + 1, where another queue writes a; `ordered`: the second queue waits for the first.
float after_another_queue(std::uint64_t seed, bool ordered) {
  have_devices(1, seed);
  const cuda_device on(0);
  const machine::queue first = on.make_queue(), second = on.make_queue();
  const auto a = on.allocate<float>(1), b = on.allocate<float>(1);
  const float five = 5;
  float result = 0;
  on.copy_to_device(first, std::span(&five, 1), a.data());
  if (ordered) machine::order(first, second);
  machine::copy_between(second, b.data(), a.data(), sizeof(float));
  machine::for_each_index(second, 1, add_one{b.data()});
  on.copy_to_host(second, static_cast<const float*>(b.data()), std::span(&result, 1));
  on.wait(second);
  return result;
}
}  // namespace

TEST_CASE("the host cannot read memory of a device") {
  have_devices(1);
  const cuda_device on(0);
  const auto memory = on.allocate<float>(4);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGSEGV, SIG_DFL);
    const volatile float seen = memory.data()[0];
    ::_exit(seen == 0 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGSEGV);
}

TEST_CASE("with some seed a queue that does not wait for another one is too early") {
  bool too_early = false;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CHECK(after_another_queue(seed, true) == 6);
    too_early = too_early || after_another_queue(seed, false) != 6;
  }
  CHECK(too_early);
}

TEST_CASE("queues that wait for each other are an error") {
  have_devices(1);
  const cuda_device on(0);
  const machine::queue a = on.make_queue(), b = on.make_queue();
  const auto never = std::make_shared<bool>(false);
  machine::detail::machine_state::the().enqueue(a.state(), {[never] { return *never; }, {}});
  CHECK(error_of([&] { on.wait(a); }) == "emulated devices: each queue waits for another one");
}

TEST_CASE("a barrier that some threads never reach is an error") {
  have_devices(1);
  const cuda_device on(0);
  const machine::queue q = on.make_queue();
  machine::launch(q, 1, misses_a_barrier{});
  CHECK(error_of([&] { on.wait(q); }) == "some threads of a block wait at a barrier that others never reach");
}

TEST_CASE("out of memory: what was asked for, what is free; freed memory is used again") {
#if !defined(__CUDACC__)
  machine::emulate_devices(2, 1 << 20);
  const cuda_device on(1);
  auto half = on.allocate<float>(1 << 17);
  CHECK(error_of([&] { (void)on.allocate<float>(1 << 18); }) ==
        "gpu(1): out of memory: 1048576 bytes are needed, 524288 of 1048576 are free");
  CHECK_THROWS_AS((void)on.allocate<float>(1 << 18), out_of_device_memory);
  half = {};
  CHECK_THROWS_AS((void)machine::allocate(1, std::numeric_limits<std::size_t>::max()), out_of_device_memory);
  const auto all = on.allocate<float>(1 << 18);
  CHECK(all.size() == 1 << 18);
#endif
}

TEST_CASE("bytes that cannot be counted, because memory is in use, do not disturb the work") {
#if !defined(__CUDACC__)
  machine::emulate_devices(1, 1 << 20);
  const cuda_device on(0);
  const machine::queue q = on.make_queue();
  const auto memory = on.allocate<float>(100);
  CHECK(error_of([] { machine::count_bytes(); }) ==
        "count_bytes: a trainer or a buffer already has memory of an emulated device");
  const std::vector<float> sent(100, 2.f);
  std::vector<float> read(100);
  on.copy_to_device(q, std::span(sent), memory.data());
  on.copy_to_host(q, static_cast<const float*>(memory.data()), std::span(read));
  on.wait(q);
  CHECK(read == sent);
#endif
}

TEST_CASE("after a batch that was too large a smaller one trains") {
#if !defined(__CUDACC__)
  machine::emulate_devices(2, 1 << 20);
  std::vector<float> x(4096 * 8), y(4096);
  trainer model{sequential<input<8>, dense<64, relu>, dense<1>>{}, sgd{}, mean_squared_error{}, mirrored{gpus()}};
  const samples<float> small{x.data(), y.data(), 64}, large{x.data(), y.data(), 4096};
  const std::string said = error_of([&] { model.train_step(large); });
  CAPTURE(said);
  CHECK(said.find("are free. To train with batches of 4096, a GPU needs ") != std::string::npos);
  CHECK(said.find(" bytes: 2624 for weights, 20992 for gradients of 8 leaves, ") != std::string::npos);
  CHECK(
      said.ends_with(" for activations, 213504 for the batch and 20992 for copies of the gradients of 8 leaves of other GPUs; "
                     "smaller batches need "
                     "less"));
  model.train_step(small);
  CHECK(error_of([&] { model.train_step(large); }).find("out of memory") != std::string::npos);
  model.train_step(small);
#endif
}

#if !defined(__CUDACC__)
TEST_CASE("however little memory is left: what a batch that was too large has got is given back") {
  const std::vector<float> x(4096 * 8), y(4096);
  const samples<float> small{x.data(), y.data(), 64}, large{x.data(), y.data(), 4096};
  int trained = 0;
  for (std::size_t memory = 100'000; memory < 700'000; memory += 20'000) {
    CAPTURE(memory);
    machine::emulate_devices(1, memory);
    const auto make = [] {
      return trainer{sequential<input<8>, dense<64, relu>, dense<1>>{}, sgd{}, mean_squared_error{}, one_device{gpu(0)}};
    };
    if (auto fresh = make(); error_of([&] { fresh.train_step(small); }) != "no error") continue;
    auto other = make();
    if (error_of([&] { other.train_step(large); }) == "no error") continue;
    CHECK(error_of([&] { other.train_step(small); }) == "no error");
    ++trained;
  }
  CHECK(trained > 5);
}
#endif

#if !defined(__CUDACC__)
TEST_CASE("memory runs out in a callback that catches the error, and fit goes on to the same bits") {
  const std::vector<float> x(120 * 8, 0.5f), large(20000 * 8, 0.5f);
  const std::vector<float> y(120, 1.0f), large_y(20000, 1.0f);
  using net = sequential<input<8>, dense<16, relu>, dense<1>>;
  const auto weights = [&](const auto& strategy, bool runs_out) {
    trainer model{net{}, adam{}, mean_squared_error{}, strategy, seed(1)};
    struct too_much {
      std::function<void()> call;
      int errors = 0;
      void on_epoch_end(training_state&) {
        try {
          call();
        } catch (const out_of_device_memory&) {
          ++errors;
        }
      }
    } callback{[&] {
      if (runs_out) model.evaluate(large, large_y, batch_size(20000));
    }};
    model.fit(x, y, batch_size(50), epochs(3), callback, verbosity::off);
    CHECK(callback.errors == (runs_out ? 3 : 0));
    const auto all = model.parameters();
    return std::vector<float>(all.begin(), all.end());
  };
  const auto goes_on = [&](const auto& strategy) {
    const std::vector<float> all = weights(strategy(), true);
    CHECK(all == weights(strategy(), false));
  };
  machine::emulate_devices(2, 1 << 19);
  goes_on([] { return one_device{gpu(0)}; });
  goes_on([] { return one_device{gpu(0), {.graphs = false, .kept_data_memory = 0}}; });
  goes_on([] { return mirrored{gpus()}; });
  goes_on([] { return gpu_pipeline<balanced<2>, micro_batches<2>>{gpus(2), {.leaves = 2}}; });
}

TEST_CASE("a data set stays on devices only if there is room for all that the training needs") {
  const std::vector<float> x(301 * 64, 0.5f), y(301, 1.0f);
  const auto trains = [&](std::size_t memory, double kept) {
    machine::emulate_devices(4, memory);
    return error_of([&] {
             trainer model{sequential<input<64>, dense<16, relu>, dense<1>>{}, adam{}, mean_squared_error{},
                           mirrored{gpus(), {.leaves = 16, .kept_data_memory = kept}}};
             model.fit(x, y, batch_size(64), epochs(1), verbosity::off);
           }) == "no error";
  };
  int trained = 0;
  for (std::size_t memory = 60'000; memory < 300'000; memory += 8'000)
    if (trains(memory, 0)) {
      CAPTURE(memory);
      CHECK(trains(memory, 1));
      ++trained;
    }
  CHECK(trained > 5);
}
#endif

TEST_CASE("the device with the fewest leaves needs the most copies of gradients") {
  CHECK(gradient_copies<float>::copies_of(16, 0, 3) == 11);
  CHECK(gradient_copies<float>::copies_of(16, 2, 3) == 10);
  CHECK(gradient_copies<float>::copies_of(16, 0, 1) == 0);
}

TEST_CASE("weights that are too large for a device") {
#if !defined(__CUDACC__)
  machine::emulate_devices(1, 1 << 10);
  const std::string said = error_of(
      [&] { trainer model{sequential<input<8>, dense<64, relu>, dense<1>>{}, adam{}, mean_squared_error{}, mirrored{gpus()}}; });
  CHECK(said ==
        "gpu(0): out of memory: 2624 bytes are needed, 1024 of 1024 are free. Without batches, a GPU needs 7872 bytes: "
        "2624 for weights and 5248 for slots of the optimizer");
#endif
}

#if !defined(__CUDACC__)
TEST_CASE("a device is lost while others wait for its sums") {
  const std::vector<float> x(64 * 8, 0.5f), y(64, 1.0f);
  const samples<float> batch{x.data(), y.data(), 64};
  for (long after = 0; after < 64; ++after) {
    CAPTURE(after);
    have_devices(2, std::uint64_t(after) + 1);
    trainer model{sequential<input<8>, dense<16, relu>, dense<1>>{}, sgd{}, mean_squared_error{}, mirrored{gpus(), fastest{}}};
    model.train_step(batch);
    machine::lose_device(1, after);
    const std::string said = error_of([&] {
      for (int step = 0; step < 20; ++step) model.train_step(batch);
    });
    CHECK(said.starts_with("gpu(1) is lost: "));
  }
}

TEST_CASE("a lost device is one error that names it; the CPU and other devices go on") {
  const std::vector<float> x(64 * 8, 0.5f), y(64, 1.0f);
  const samples<float> batch{x.data(), y.data(), 64};
  const auto make = [](const auto& strategy) {
    return trainer{sequential<input<8>, dense<16, relu>, dense<1>>{}, sgd{}, mean_squared_error{}, strategy, seed(2)};
  };
  for (long after = 0; after < 60; after += 3) {  // whatever the device does at that moment
    CAPTURE(after);
    have_devices(2, std::uint64_t(after) + 1);
    auto model = make(mirrored{gpus()});
    model.train_step(batch);
    machine::lose_device(1, after);
    const auto train_on = [&] {
      for (int step = 0; step < 20; ++step) model.train_step(batch);
    };
    const std::string said = error_of(train_on);
    CHECK(said.starts_with("gpu(1) is lost: unspecified launch failure, noticed in "));
    CHECK(said.ends_with("; this process cannot use it any more"));
    CHECK_THROWS_AS(train_on(), device_lost);
    CHECK_THROWS_AS(make(mirrored{gpus()}), device_lost);
    auto on_the_other = make(one_device{gpu(0)});
    on_the_other.train_step(batch);
    auto on_the_cpu = make(one_device{{.threads = 1}});
    on_the_cpu.train_step(batch);
  }
}

TEST_CASE("two threads that capture one queue: one of them is refused; they may capture two queues at once") {
  have_devices(1);
  const cuda_device on(0);
  const machine::queue queues[] = {on.make_queue(), on.make_queue()};
  constexpr int rounds = 200;
  std::atomic<int> inside = 0, together = 0;
  const auto capture_in_two_threads = [&](const machine::queue& first, const machine::queue& second) {
    std::atomic<int> come = 0, captures = 0, refused = 0;
    const auto capture_often = [&](const machine::queue& q) {
      for (int round = 0; round < rounds; ++round) {
        ++come;
        while (come < 2 * (round + 1)) std::this_thread::yield();
        const std::string said = error_of([&] {
          machine::capture(q, [&] {
            together += inside++ > 0;
            std::this_thread::sleep_for(std::chrono::microseconds(20));
            --inside;
          });
        });
        captures += said == "no error", refused += said == "a capture of a queue that another thread captures";
      }
    };
    std::thread other([&] { capture_often(second); });
    capture_often(first);
    other.join();
    CHECK(captures + refused == 2 * rounds);
    return captures.load();
  };
  CHECK(capture_in_two_threads(queues[0], queues[0]) >= rounds);
  CHECK(together.load() == 0);
  CHECK(capture_in_two_threads(queues[0], queues[1]) == 2 * rounds);
  CHECK(machine::take_counts(0).captures >= 3 * rounds);
}

TEST_CASE("the work of a queue that is gone is done, and nothing of it is left") {
  have_devices(1);
  const cuda_device on(0);
  const machine::queue other = on.make_queue();
  const auto memory = on.allocate<float>(1);
  float result = 0;
  const auto read = [&] {
    on.copy_to_host(other, static_cast<const float*>(memory.data()), std::span(&result, 1));
    on.wait(other);
    return result;
  };
  const auto owned = std::make_shared<int>();
  const auto enqueue = [&](const machine::queue& q) {
    machine::detail::enqueue(q, [owned] {});
    machine::for_each_index(q, 1, add_one{memory.data()});
  };
  enqueue(on.make_queue());
  CHECK(owned.use_count() == 1);
  CHECK(read() == 1);
  {
    const machine::queue gone = on.make_queue();
    enqueue(gone);
    machine::event recorded;
    recorded.record(gone);
  }
  CHECK(owned.use_count() == 1);
  CHECK(read() == 2);
  {
    const machine::queue gone = on.make_queue(), also_gone = on.make_queue();
    machine::event first, second;
    enqueue(gone);
    first.record(gone);
    first.hold(also_gone);
    enqueue(also_gone);
    second.record(also_gone);
    second.hold(gone);
  }
  CHECK(owned.use_count() == 1);
  CHECK(read() == 4);
  machine::event outlives;
  {
    const machine::queue gone = on.make_queue();
    enqueue(gone);
    outlives.record(gone);
  }
  outlives.hold(other);
  CHECK(read() == 5);
  outlives.wait();
  outlives = {};
  enqueue(other);
  machine::order(other, on.make_queue());  // a queue whose last work is a wait
  CHECK(read() == 6);
  CHECK(owned.use_count() == 1);
}

TEST_CASE("work that was enqueued before other devices are emulated is dropped") {
  have_devices(2);
  const machine::queue q = cuda_device(1).make_queue();
  const auto owned = std::make_shared<int>();
  machine::detail::enqueue(q, [owned] {});
  have_devices(2);
  CHECK(owned.use_count() == 1);
  CHECK(machine::is_done(q));
}

TEST_CASE("pinned memory begins with garbage, and copies of it are the same memory") {
  machine::pinned_memory memory(100);
  CHECK(memory.size() == 100);
  CHECK(std::ranges::count(std::span(memory.data(), 100), std::byte{0xcd}) == 100);
  machine::pinned_memory same = memory;
  CHECK(same.data() == memory.data());
  memory = {};
  CHECK(memory.size() == 0);
  CHECK(same.data()[99] == std::byte{0xcd});
}

TEST_CASE("whatever is asked of a device that does not exist is refused") {
  have_devices(2);
  const machine::queue q = cuda_device(1).make_queue();
  const machine::graph work = machine::capture(q, [&] { machine::detail::enqueue(q, [] {}); });
  for (const int device : {-1, 2, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    const std::string refused = "gpu(" + std::to_string(device) + ") does not exist: the number of emulated devices is 2";
    CHECK(error_of([&] { machine::queue made(device); }) == refused);
    CHECK(error_of([&] { (void)machine::allocate(device, 4); }) == refused);
    CHECK(error_of([&] { (void)machine::free_memory(device); }) == refused);
    CHECK(error_of([&] { machine::lose_device(device); }) == refused);
    CHECK(error_of([&] { machine::take_counts(device); }) == refused);
    CHECK(error_of([&] { machine::nccl_communicator(device, machine::make_nccl_id(), 0, 1); }) == refused);
    float memory = 0;
    machine::release(device, &memory);  // cannot throw
  }
  have_devices(1);  // the device of the queue no longer exists
  const std::string gone = "gpu(1) does not exist: the number of emulated devices is 1";
  float numbers[2] = {};
  std::byte* const bytes = reinterpret_cast<std::byte*>(numbers);
  CHECK(error_of([&] { machine::copy_to_device(q, numbers, numbers + 1, 4); }) == gone);
  CHECK(error_of([&] { machine::copy_to_host(q, numbers, numbers + 1, 4); }) == gone);
  CHECK(error_of([&] { machine::copy_between(q, numbers, numbers + 1, 4); }) == gone);
  CHECK(error_of([&] { machine::copy_pinned_to_device(q, numbers, bytes, 4); }) == gone);
  CHECK(error_of([&] { machine::for_each_index(q, 1, add_one{numbers}); }) == gone);
  CHECK(error_of([&] { machine::capture(q, [] {}); }) == gone);
  CHECK(error_of([&] { machine::wait(q); }) == gone);
  CHECK(error_of([&] { (void)machine::is_done(q); }) == gone);
  CHECK(error_of([&] { machine::event().record(q); }) == gone);
  CHECK(error_of([&] { machine::order(machine::queue(0), q); }) == gone);
  CHECK(error_of([&] { work.launch(q); }) == gone);
  CHECK(error_of([&] { work.launch(machine::queue(0)); }) == gone);
  CHECK(machine::take_counts(0).graphs == 0);
  CHECK(numbers[0] == 0);
}

TEST_CASE("what a GPU refuses during a capture: waits and queries of the host, memory that comes or goes") {
  have_devices(2);
  const cuda_device on(0);
  const machine::queue q = on.make_queue(), joined = on.make_queue(), other = cuda_device(1).make_queue();
  machine::event before, inside;
  before.record(other);
  // Also if what is captured catches the error: the capture is then invalid. Afterwards the queue works again.
  const auto refused = [&](const std::string& error, auto&& f) {
    CHECK(error_of([&] { machine::capture(q, f); }) == error);
    CHECK(error_of([&] { machine::capture(q, [&] { (void)error_of(f); }); }) == error);
    CHECK(machine::is_done(q));
  };
  refused("a query of the host cannot be part of a graph", [&] { (void)machine::is_done(q); });
  refused("a query of the host cannot be part of a graph", [&] {
    machine::order(q, joined);
    (void)machine::is_done(joined);
  });
  refused("a query of the host while a queue is captured", [&] { (void)machine::is_done(other); });
  refused("a wait of the host while a queue is captured", [&] { machine::wait(other); });
  refused("a wait of the host while a queue is captured", [&] { before.wait(); });
  refused("a wait of the host cannot be part of a graph", [&] { machine::wait(q); });
  refused("the host waits for an event of a graph", [&] {
    inside.record(q);
    inside.wait();
  });
  refused("a queue that is captured waits for an event that is not part of the graph", [&] { before.hold(q); });
  refused("memory is allocated while a queue is captured", [&] { (void)on.allocate<float>(1); });
  refused("pinned memory is allocated while a queue is captured", [&] { machine::pinned_memory made(1); });
  // These two throw nothing themselves.
  auto freed = on.allocate<float>(1);
  CHECK(error_of([&] { machine::capture(q, [&] { freed = {}; }); }) == "memory is released while a queue is captured");
  machine::pinned_memory pinned(1);
  CHECK(error_of([&] { machine::capture(q, [&] { pinned = {}; }); }) == "pinned memory is released while a queue is captured");
  const auto memory = on.allocate<float>(1);
  CHECK(memory.size() == 1);
}

TEST_CASE("what other threads do, and what they may not do, while a thread captures") {
  have_devices(1);
  const cuda_device on(0);
  const machine::queue q = on.make_queue(), other = on.make_queue();
  const auto in_another_thread = [&](auto&& f) {
    std::string said;
    std::thread([&] { said = error_of(f); }).join();
    return said;
  };
  std::string said;
  machine::capture(q, [&] {
    said = in_another_thread([&] {
      const auto memory = on.allocate<float>(1);
      const machine::pinned_memory pinned(1);
      machine::event done;
      done.record(other);
      done.wait();
      machine::wait(other);
      CHECK(machine::is_done(other));
    });
  });
  CHECK(said == "no error");

  const std::string query =
      error_of([&] { machine::capture(q, [&] { said = in_another_thread([&] { (void)machine::is_done(q); }); }); });
  CHECK(query == "a query of the host cannot be part of a graph");
  CHECK(said == query);

  const std::string merged = error_of([&] {
    machine::event inside;
    machine::capture(q, [&] {
      inside.record(q);
      said = in_another_thread([&] { machine::capture(other, [&] { inside.hold(other); }); });
    });
  });
  CHECK(merged == "a queue that is captured waits for an event of another graph");
  CHECK(said == merged);
}
#endif

TEST_CASE("an observer that reads numbers as if the host had them is refused") {
  struct reader : kernel_observer {
    void begins(const observed_call&) override {}
    void ended(const observed_call&, const observed_numbers&) override {}
    bool reads_gradients() const override { return true; }
    void on_train_begin(training_state&, fitted_model& model) { model.observe(*this); }
  };
  have_devices(1);
  trainer model{sequential<input<2>, dense<1>>{}, sgd{}, mean_squared_error{}, one_device{gpu(0)}};
  const std::vector<float> x(8), y(4);
  reader own;
  CHECK(error_of([&] { model.fit(x, y, verbosity::off, own); }) ==
        "an observer that reads numbers of layers, but not by their number_reader, needs a strategy on the CPU");
}

namespace {
using checked = sequential<input<6>, dense<5, relu>, dense<3, softmax>>;

/// The error of check_numerics under a strategy, if an element of the data or a weight is replaced.
std::string complaint(const auto& strategy, float number, float weight, long steps = 1) {
  std::vector<float> x(48 * 6);
  std::vector<std::int32_t> y(48);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1 + float(i % 7);
  x[(24 + 17) * 6 + 5] = number;
  trainer model{checked{}, sgd{.learning_rate = 1e-30}, sparse_categorical_crossentropy{}, strategy, seed(3)};
  std::vector<float> weights(model.parameters().begin(), model.parameters().end());
  weights[std::size_t(layout_of<checked::items>.slots[2].offset) + 1] = weight;
  model.set_parameters(weights);
  return error_of(
      [&] { model.fit(x, y, batch_size(24), shuffle(false), verbosity::off, steps_per_execution(steps), check_numerics{}); });
}
}  // namespace

TEST_CASE("check_numerics says on a GPU what it says on the CPU") {
  constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const auto same = [](const std::string& begin, const std::string& end, auto... how) {
    const std::string on_the_cpu = complaint(one_device{{.threads = 1, .leaves = 4}}, how...);
    CAPTURE(on_the_cpu);
    CHECK(on_the_cpu.starts_with(begin));
    CHECK(on_the_cpu.ends_with(end));
    const cuda_options four{.leaves = 4}, streamed{.leaves = 4, .kept_data_memory = 0};
    have_devices(2);
    CHECK(complaint(one_device<cuda>{four}, how...) == on_the_cpu);
    CHECK(complaint(one_device<cuda>{four}, how..., 2) == on_the_cpu);
    CHECK(complaint(one_device<cuda>{streamed}, how...) == on_the_cpu);
    CHECK(complaint(mirrored{gpus(), four}, how...) == on_the_cpu);
  };
  same("check_numerics: epoch 1, update 2: the data is nan at sample 17 of the batch, number 5", "(in the data: sample 41)",
       not_a_number, 1.0f);
  same("check_numerics: epoch 1, update 1: the output of dense_1 ", "not finite before this step: dense_1/kernel", 1.0f,
       infinity);

  // The gradient of a weight is the sum of x / 2 over the four samples of a leaf.
  const auto overflowing = [](const auto& strategy) {
    trainer model{sequential<input<2>, dense<2, no_bias>>{}, sgd{.learning_rate = 1e-30}, mean_absolute_error{}, strategy};
    model.set_parameters(std::vector<float>(model.parameters().size(), 1e-30f));
    const std::vector<float> y(16);
    std::vector<float> x(16, 1.0f);
    std::fill(x.begin() + 8, x.end(), 3e38f);
    const auto rows = data::from_tensor_slices(data::array<float, shape{2}>(x), data::array<float, shape{2}>(y));
    return error_of([&] { model.fit(rows | data::batch<8>, verbosity::off, check_numerics{}); });
  };
  const cuda_options two{.leaves = 2};
  const std::string on_the_cpu = overflowing(one_device{{.threads = 1, .leaves = 2}});
  CHECK(on_the_cpu ==
        "check_numerics: epoch 1, update 1: the gradient of dense/kernel is inf at element 0, after samples 4 to 7 of the batch");
  CHECK(overflowing(one_device<cuda>{two}) == on_the_cpu);
  CHECK(overflowing(mirrored{gpus(), two}) == on_the_cpu);
}

TEST_CASE("an optimizer on GPUs begins anew") {
  const auto check = [](const auto& strategy) {
    trainer model{checked{}, adam{}, sparse_categorical_crossentropy{}, strategy, seed(3)};
    const std::vector<float> start(model.parameters().begin(), model.parameters().end()), x(48 * 6, 0.5f);
    const std::vector<std::int32_t> y(48);
    const auto fit = [&] { return model.fit(x, y, batch_size(24), epochs(2), verbosity::off)["loss"]; };
    const std::vector<double> first = fit();
    model.set_parameters(start);
    CHECK(fit() != first);
    model.set_parameters(start);
    model.reset_optimizer();
    CHECK(fit() == first);
  };
  have_devices(2);
  check(one_device<cuda>{});
  check(mirrored{gpus(), cuda_options{.leaves = 4}});
}

TEST_CASE("devices do not vanish while they are used") {
  have_devices(1);
  const auto memory = cuda_device(0).allocate<float>(1);
  CHECK(error_of([] { machine::emulate_devices(2); }) ==
        "emulate_devices: a trainer or a buffer still has memory of an emulated device");
  CHECK(error_of([] { machine::take_counts(1); }) == "gpu(1) does not exist: the number of emulated devices is 1");
}

TEST_CASE("devices that do not exist") {
  CHECK(error_of([] { machine::emulate_devices(-1); }) == "emulate_devices(-1): a number of devices is at least 0");
  have_devices(2);
  CHECK(error_of([] { cuda_device(2); }) == "gpu(2): this machine has 2, from gpu(0) to gpu(1)");
  CHECK(error_of([] { cuda_device(-1); }) == "gpu(-1): this machine has 2, from gpu(0) to gpu(1)");
  CHECK(error_of([] { gpus(0); }) == "gpus(0): at least one device is needed");
  CHECK(error_of([] { gpus({1, 0, 1}); }) == "gpus: device 1 is listed twice");
  have_devices(0);
  const std::string none =
      error_of([] { trainer model{sequential<input<2>, dense<1>>{}, adam{}, mean_squared_error{}, one_device{gpu(0)}}; });
  CHECK(none.starts_with("gpu(0): this file was not compiled by nvcc"));
}

TEST_CASE("fit, evaluate and predict on emulated GPUs") {
  have_devices(2);
  std::vector<float> x(200 * 2);
  std::vector<std::int32_t> y(200);
  for (std::size_t n = 0; n < 200; ++n) {
    x[2 * n] = float(number(1, 2 * n)), x[2 * n + 1] = float(number(1, 2 * n + 1));
    y[n] = x[2 * n] * x[2 * n + 1] > 0;
  }
  trainer model{sequential<input<2>, dense<16, relu>, dense<2, softmax>>{},
                adam{.learning_rate = 0.02},
                sparse_categorical_crossentropy{},
                accuracy{},
                mirrored{gpus()},
                seed(5)};
  model.fit(x, y, epochs(20), batch_size(20), verbosity::off);
  CHECK(model.evaluate(x, y)["accuracy"] > 0.93);
}

/// The work of the second step of a training. leaves: 0 means the default of the options.
template <class Network, class Precision = precision::f32>
machine::work_counts counts_of_a_step(bool counts_bytes = false, int count = 64, int leaves = 0) {
  have_devices(1);
  if (counts_bytes) machine::count_bytes();
  std::vector<float> x(std::size_t(count) * std::size_t(Network::input_shape.size()), 0.5f);
  std::vector<std::int32_t> y(std::size_t(count), 0);
  trainer model{Network{},  adam{}, sparse_categorical_crossentropy{}, accuracy{}, one_device{gpu(0), {.leaves = leaves}},
                Precision{}};
  const samples<float> batch{x.data(), y.data(), count};
  model.train_step(batch);
  machine::take_counts(0);
  model.train_step(batch);
  return machine::take_counts(0);
}

TEST_CASE("kernels, copies and waits of a training step") {
  using mlp = sequential<input<784>, dense<64, relu>, dense<64, relu>, dense<10, softmax>>;
  const auto of_mlp = counts_of_a_step<mlp>();
  CHECK(of_mlp.kernels <= 6);
  CHECK(of_mlp.copies_to_device == 1);  // samples, labels, and the scalars of the step
  CHECK(of_mlp.copies_to_host == 1);    // loss and metrics
  CHECK(of_mlp.waits == 1);
  using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<>, conv2d<64, 3, relu>, max_pool2d<>, flatten,
                         dense<64, relu>, dense<10, softmax>>;
  const auto of_cnn = counts_of_a_step<cnn>();
  CHECK(of_cnn.kernels <= 10);  // two of them add up the parts of the gradients of kernels
  CHECK(of_cnn.waits == 1);
}

TEST_CASE("no kernel leaves to few threads what many could do") {
  using wide = sequential<input<300>, dense<300, relu>, dense<300, softmax>>;
  using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<>, conv2d<64, 3, relu>, max_pool2d<>, flatten,
                         dense<10, softmax>>;
  CHECK(counts_of_a_step<wide>(true, 128, 1).most_bytes_of_thread < 100);
  CHECK(counts_of_a_step<cnn>(true, 128, 2).most_bytes_of_thread < 300);
  // On tensor cores a block has 128 threads, for 64 x 64 results of about 256 terms.
  using mlp = sequential<input<1600>, dense<64, relu>, dense<10, softmax>>;
  CHECK(counts_of_a_step<wide, precision::tf32>(true, 128, 1).most_bytes_of_thread < 1300);
  CHECK(counts_of_a_step<mlp, precision::tf32>(true, 128, 2).most_bytes_of_thread < 1100);
  CHECK(counts_of_a_step<cnn, precision::tf32>(true, 128, 2).most_bytes_of_thread < 1100);
}

/// The bytes that a step reads and writes, relative to the least that the plan needs.
template <class Network>
double share_of_least_bytes() {
  constexpr int count = 64;
  const machine::work_counts counts = counts_of_a_step<Network>(true, count);
  using program_type = program<Network, sparse_categorical_crossentropy<>, adam, type_list<accuracy>>;
  const batch_division division = leaf_policy_of<program_type>(0, 1)(count);
  return double(counts.bytes_read + counts.bytes_written) /
         double(least_bytes_of_step<program_type, cuda>(count, division.leaves, adam{}.slots()));
}

TEST_CASE("what a training step reads and writes") {
  using mlp = sequential<input<784>, dense<64, relu>, dense<64, relu>, dense<10, softmax>>;
  using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<>, conv2d<64, 3, relu>, max_pool2d<>, flatten,
                         dense<64, relu>, dense<10, softmax>>;
  const double of_mlp = share_of_least_bytes<mlp>(), of_cnn = share_of_least_bytes<cnn>();
  CAPTURE(of_mlp);
  CAPTURE(of_cnn);
  CHECK(of_mlp > 0.8);
  CHECK(of_mlp < 1.2);
  CHECK(of_cnn > 0.8);
  CHECK(of_cnn < 1.2);
}
