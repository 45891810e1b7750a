// Sums by NCCL: the wrapper, its emulation, which notices what NCCL answers with a hang or a wrong sum, and trainings with
// fastest{}.
// needs: emulated_cuda
// flags: -O0
#include "compare.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <strata/communicators/in_process.hpp>
#include <strata/cuda/cuda.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>
#include <string>
#include <thread>

#include "unit/error_of.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
/// Whether this machine and this compilation have NCCL.
bool has_nccl() {
  const std::string missing = error_of([] { machine::need_nccl(); });
  if (missing != "no error") MESSAGE("left out: ", missing);
  return missing == "no error";
}

/// The number of devices for a test that needs `wanted`, or fewer if there are fewer: NCCL needs a device for each rank.
int devices_at_hand(int wanted, std::uint64_t seed = 1) {
  have_devices(wanted, seed);
  return std::min(wanted, machine::device_count());
}

/// Element i of what a rank contributes to a sum.
float brought(int rank, int sum, std::size_t i) { return float(rank + 1) * 0.5f + float(sum) + float(i % 7); }

using mlp = sequential<input<6>, dense<8, elu<>>, dense<16, relu>, dense<3, softmax>>;
using normalized = sequential<input<6>, dense<8>, batch_norm<>, activation<relu>, dense<3, softmax>>;

struct outcome {
  std::vector<float> weights, gradient;
  double loss = 0;
};
bool operator==(const outcome& a, const outcome& b) {
  return a.weights.size() == b.weights.size() && a.loss == b.loss &&
         std::memcmp(a.weights.data(), b.weights.data(), a.weights.size() * sizeof(float)) == 0;
}

template <class Network = mlp>
outcome trained(const auto& strategy) {
  constexpr std::size_t count = 46;
  std::vector<float> x(count * 6);
  std::vector<std::int32_t> y(count);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(number(3, i));
  for (std::size_t n = 0; n < count; ++n) y[n] = std::int32_t(n % 3);
  trainer model{Network{}, sgd{.learning_rate = 0.1}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(7)};
  model.executor().keep_gradient(true);
  outcome out;
  out.loss = model.fit(x, y, epochs(3), batch_size(20), shuffle(false), verbosity::off)["loss"].back();
  out.weights.assign(model.parameters().begin(), model.parameters().end());
  out.gradient.assign(model.executor().gradient().begin(), model.executor().gradient().end());
  return out;
}
cuda_options options_of(int first, int count, bool sums_by_nccl) {
  cuda_options options{.devices = {}, .leaves = 4, .sums_by_nccl = sums_by_nccl};
  for (int i = 0; i < count; ++i) options.devices.push_back(first + i);
  return options;
}
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  return difference(a, std::vector<double>(b.begin(), b.end()));
}
}  // namespace

TEST_CASE("sums over the devices of one process, for several orders of their work") {
  if (!has_nccl()) return;
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const int ranks = devices_at_hand(3, seed);
    constexpr std::size_t size = 1000, sums = 5;
    const machine::nccl_id group = machine::make_nccl_id();
    std::vector<machine::queue> queues;
    std::vector<cuda_device::buffer<float>> memory;
    std::vector<machine::nccl_communicator> places;
    machine::nccl_together([&] {
      for (int r = 0; r < ranks; ++r) {
        queues.emplace_back(r);
        memory.push_back(cuda_device(r).allocate<float>(size * sums));
        places.emplace_back(r, group, r, ranks);
      }
    });
    const auto await = [&] {
      for (const auto& each : places)
        while (!each.is_ready()) std::this_thread::yield();
    };
    await();
    std::vector<std::vector<float>> values(std::size_t(ranks), std::vector<float>(size * sums));
    for (int r = 0; r < ranks; ++r) {
      auto& own = values[std::size_t(r)];
      for (std::size_t i = 0; i < own.size(); ++i) own[i] = brought(r, int(i / size), i);
      cuda_device(r).copy_to_device(queues[std::size_t(r)], std::span<const float>(own), memory[std::size_t(r)].data());
    }
    for (std::size_t s = 0; s < sums; ++s) {
      machine::nccl_together([&] {
        for (std::size_t r = 0; r < std::size_t(ranks); ++r)
          places[r].add_up(queues[r], memory[r].data() + s * size, s == 0 ? 1 : size);
      });
      await();
    }
    for (std::size_t r = 0; r < std::size_t(ranks); ++r) {
      const cuda_device on{int(r)};
      on.copy_to_host(queues[r], static_cast<const float*>(memory[r].data()), std::span(values[r]));
      on.wait(queues[r]);
      for (std::size_t i = 0; i < size * sums; ++i) {
        float sum = 0;
        for (int from = 0; from < ranks; ++from) sum += brought(from, int(i / size), i);
        const bool is_added_up = i == 0 || i >= size;
        REQUIRE(values[r][i] == (is_added_up ? sum : brought(int(r), 0, i)));
      }
    }
  }
}

#if !defined(__CUDACC__)
TEST_CASE("what NCCL does not notice is an error of the emulation") {
  have_devices(2);
  using machine::nccl_communicator;
  const machine::queue queue(0), other_queue(1);
  const auto memory = cuda_device(0).allocate<float>(8), other = cuda_device(1).allocate<float>(8);
  {
    const auto group = machine::make_nccl_id();
    nccl_communicator a(0, group, 0, 2), b(1, group, 1, 2);
    REQUIRE((a.is_ready() && b.is_ready()));
    a.add_up(queue, memory.data(), 8), b.add_up(other_queue, other.data(), 7);
    machine::wait(queue), machine::wait(other_queue);
    CHECK(error_of([&] { a.is_ready(); }) == "emulated NCCL: in sum 0 rank 1 brings 7 numbers of 4 bytes, rank 0 8 of 4");
    CHECK_THROWS_AS(b.is_ready(), communication_error);
  }
  {
    const auto group = machine::make_nccl_id();
    nccl_communicator a(0, group, 0, 2);
    CHECK(!a.is_ready());
    CHECK(error_of([&] { a.add_up(queue, memory.data(), 1); }) == "emulated NCCL: a sum before all ranks have joined");
    CHECK(error_of([&] { nccl_communicator(1, group, 0, 2); }) == "emulated NCCL: rank 0 is taken twice");
    nccl_communicator b(1, group, 1, 3);
    CHECK(error_of([&] { a.is_ready(); }) == "emulated NCCL: rank 1 takes part in a group of 3, rank 0 in one of 2");
  }
  const auto group = machine::make_nccl_id();
  nccl_communicator a(0, group, 0, 2);
  {
    nccl_communicator b(1, group, 1, 2);
    CHECK((a.is_ready() && b.is_ready()));
    a.add_up(queue, memory.data(), 8);
    CHECK(!machine::is_done(queue));
  }
  CHECK(error_of([&] { a.is_ready(); }) == "emulated NCCL: rank 1 has left");
  a.abort();
  CHECK(machine::is_done(queue));
}

TEST_CASE("a rank that never comes ends the wait") {
  have_devices(1);
  const int device = 0;
  int asked = 0;
  CHECK(error_of([&] {
          nccl_sums<float>(std::span(&device, 1), machine::make_nccl_id(), 0, 2, {{0, 8, 0}}, 8,
                           [&](nccl_event what, const std::string&) {
                             if (what == nccl_event::waits && ++asked > 3) throw communication_error("no other rank joins");
                           });
        }) == "no other rank joins");
}

TEST_CASE("sums that end within a step are aborted") {
  have_devices(2);
  const auto group = machine::make_nccl_id();
  const cuda_device devices[] = {cuda_device(0), cuda_device(1)};
  std::unique_ptr<nccl_sums<float>> ranks[2];
  std::vector<std::thread> threads;
  for (const int rank : {0, 1})
    threads.emplace_back([&, rank] {
      ranks[rank] = std::make_unique<nccl_sums<float>>(std::span(&rank, 1), group, rank, 2,
                                                       std::vector<gradient_bucket>{{4, 8, 1}, {0, 4, 0}}, 8, nccl_watch());
    });
  for (auto& t : threads) t.join();
  const auto gradients = devices[0].allocate<float>(8);
  const machine::queue backward = devices[0].make_queue();
  ranks[0]->begin(0, gradients.data());
  ranks[0]->passed(0, backward, 1, 1);  // the first of two buckets
  CHECK(std::filesystem::exists(group.bytes));
  ranks[0] = nullptr;
  CHECK(!std::filesystem::exists(group.bytes));
  ranks[1]->begin(0, devices[1].allocate<float>(8).data());
  CHECK_THROWS_AS(ranks[1]->passed(0, devices[1].make_queue(), 1, 1), communication_error);
}

TEST_CASE("what killed processes have left is removed") {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  const std::filesystem::path own = machine::make_nccl_id().bytes;
  const auto folder_of = [&](pid_t maker) {
    return own.parent_path() / (machine::detail::nccl_files::prefix + std::to_string(maker) + "-0-test");
  };
  const std::filesystem::path ended = folder_of(child), running = folder_of(::getpid());
  for (const auto& folder : {ended, running}) std::filesystem::create_directory(folder);
  (void)machine::make_nccl_id();
  CHECK(!std::filesystem::exists(ended));
  CHECK(std::filesystem::exists(running));
  std::filesystem::remove(running);
}
#endif

TEST_CASE("fastest{}: the numbers of one device up to rounding, the same bits each time, and with devices without leaves") {
  if (!has_nccl()) return;
  have_devices(1);
  const outcome one = trained(one_device<cuda>{options_of(0, 1, false)});
  const outcome one_normalized = trained<normalized>(one_device<cuda>{options_of(0, 1, false)});
  CHECK(trained(one_device<cuda>{options_of(0, 1, true)}) == one);
  for (const int wanted : {2, 3, 6}) {
    const int devices = devices_at_hand(wanted);
    CAPTURE(devices);
    const outcome first = trained(one_device<cuda>{options_of(0, devices, true)});
    CHECK(distance(first.weights, one.weights) < 1e-5);
    CHECK(distance(first.gradient, one.gradient) < 1e-4);
    CHECK(first.loss == doctest::Approx(one.loss).epsilon(1e-5));
    CHECK(distance(trained<normalized>(one_device<cuda>{options_of(0, devices, true)}).weights, one_normalized.weights) < 1e-4);
    for (const std::uint64_t order : {2u, 3u}) {
      have_devices(wanted, order);
      CHECK(trained(one_device<cuda>{options_of(0, devices, true)}) == first);
    }
  }
}

#if !defined(__CUDACC__)
TEST_CASE("fastest{} copies no gradients, and waits once in a step") {
  have_devices(2);
  std::vector<float> x(64 * 6, 0.5f);
  std::vector<std::int32_t> y(64);
  trainer model{mlp{}, adam{}, sparse_categorical_crossentropy{}, mirrored{gpus(), fastest{}}};
  const samples<float> batch{x.data(), y.data(), 64};
  model.train_step(batch);
  machine::take_counts(0);
  model.train_step(batch);
  const machine::work_counts counts = machine::take_counts(0);
  CHECK(counts.sums == 1);            // such small gradients are one bucket
  CHECK(counts.copies_between == 2);  // metric sums of both devices, to the first; no gradients
  CHECK(counts.copies_to_host == 1);
  CHECK(counts.waits == 0);  // it polls whether the work is done, and whether the others are alive
}

TEST_CASE("processes with one or two GPUs each add up by NCCL") {
  have_devices(1);
  const outcome one = trained<normalized>(one_device<cuda>{options_of(0, 1, false)});
  for (const int devices : {1, 2})
    for (const std::uint64_t order : {1u, 2u}) {
      CAPTURE(devices);
      have_devices(4, order);
      std::vector<std::string> failures(2, "");
      std::vector<outcome> outcomes(2);
      std::vector<std::thread> threads;
      for (in_process& member : in_process::group(2))
        threads.emplace_back([&, member] {
          try {
            const cuda_options own = options_of(2 * member.rank(), devices, true);
            outcomes[std::size_t(member.rank())] =
                trained<normalized>(synchronous_among<in_process, cuda>{member, own, {.bytes_per_pack = 64}});
          } catch (const std::exception& e) {
            failures[std::size_t(member.rank())] = e.what();
          }
        });
      for (auto& t : threads) t.join();
      for (const auto& f : failures) CHECK(f == "");
      CHECK(outcomes[0] == outcomes[1]);
      CHECK(distance(outcomes[0].weights, one.weights) < 1e-4);
      CHECK(distance(outcomes[0].gradient, one.gradient) < 1e-3);
    }
}

TEST_CASE("which GPUs: braces list them, parentheses count them; the workers of a machine divide them") {
  using list = std::vector<int>;
  const auto of = [](const gpus& some) { return some.with({}).devices; };
  have_devices(5);
  CHECK(of(gpus()) == list{0, 1, 2, 3, 4});
  CHECK(of(gpus(2)) == list{0, 1});
  CHECK(of(gpus({2})) == list{2});
  CHECK(of(gpus({2, 0})) == list{2, 0});
  struct one_of {
    int rank, size;
    std::optional<int> local_rank() const { return rank; }
    std::optional<int> local_size() const { return size; }
  };
  CHECK(of(gpus().of_worker(one_of{0, 1})) == list{0, 1, 2, 3, 4});
  CHECK(of(gpus().of_worker(one_of{0, 2})) == list{0, 1});
  CHECK(of(gpus().of_worker(one_of{1, 2})) == list{2, 3, 4});
  CHECK(of(gpus().of_worker(one_of{6, 7})) == list{1});
  CHECK(of(gpus({3}).of_worker(one_of{1, 2})) == list{3});
  ::setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3,4", 1);
  CHECK(of(gpus().of_worker(one_of{1, 2})) == list{0, 1, 2, 3, 4});
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_CASE("bf16_gradients are refused with fastest{}") {
  have_devices(2);
  std::vector<std::string> failures(2);
  std::vector<std::thread> threads;
  for (in_process& member : in_process::group(2))
    threads.emplace_back([&, member] {
      failures[std::size_t(member.rank())] = error_of([&] {
        trained(synchronous_among<in_process, cuda>{member, options_of(member.rank(), 1, true), {.bf16_gradients = true}});
      });
    });
  for (auto& t : threads) t.join();
  for (const auto& f : failures)
    CHECK(f == "communication_options.bf16_gradients: NCCL does not round gradients: use deterministic{} instead of fastest{}");
}
#endif
