// An elastic mesh that loses a process at any of its messages, and readmits it: the bits of one device. Processes are
// threads.
#include <doctest/doctest.h>

#include "elastic_outcome.hpp"
#include "mortal_process.hpp"
#include "repetitions.hpp"
#include <exception>
#include <memory>
#include <strata/program/stages/pipelined.hpp>
#include <strata/strata.hpp>
#include <strata/synchronous/pipelines.hpp>
#include <strata/synchronous/regrouping_executor.hpp>
#include <strata/synchronous/stage_executor.hpp>
#include <strata/synchronous/tensor_ranks.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <strata/train/late_workers.hpp>
#include <string>
#include <thread>
#include <vector>
using namespace strata;
using namespace strata::core;
using namespace std::chrono_literals;
using strata::test::death, strata::test::mortal, strata::test::outcome, strata::test::registry, strata::test::take_time;
using strata::test::repetitions;

namespace {
using net = sequential<input<28, 28, 1>, flatten, dense<6, relu>, dropout<0.2_r>, dense<8, relu>, dense<10, softmax>>;
using all_columns = layout_map<rule<"dense*", by_columns>>;
using split = pipelined<balanced<2>, micro_batches<2>, one_forward_one_backward>;

using ranks = tensor_ranks<3, 2, all_columns, default_backend>;
using in_stages = pipelines<3, split, default_backend>;

template <class Mesh>
constexpr int places = Mesh::places();
template <class Mesh>
constexpr int processes = places<Mesh> * Mesh::groups;

template <class Mesh>
struct elastic_mesh {
  static constexpr auto name = "elastic_mesh";
  mortal processes;
  using fit_callback = late_workers;

  template <class Program>
  using executor = regrouping_executor<Program, Mesh, mortal>;
  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, {.threads = 1, .leaves = 8}, processes};
  }
};

// Norms over parameters that several processes share, or, with stages, over the layers of one process.
template <class Mesh>
const auto optimizer_of_mesh = adam{.global_clipnorm = 0.5};
template <>
const auto optimizer_of_mesh<in_stages> = lamb{.learning_rate = 0.01, .global_clipnorm = 0.5};

template <class Mesh>
outcome trained(const auto& strategy, std::chrono::milliseconds pause = 0ms) {
  static const data::digits digits = data::synthetic_digits(120, 3);
  trainer model{net{}, optimizer_of_mesh<Mesh>, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(7)};
  const training_history past =
      model.fit(digits | data::shuffle(120) | data::batch<48>, epochs(2), validation(digits | data::batch<60>), take_time{pause},
                verbose::off);  // 120 = 2 x 48 + 24
  const auto w = model.parameters();
  return strata::test::outcome_of(w, past);
}
template <class Mesh>
outcome survived(const mortal& process, std::chrono::milliseconds pause = 0ms) {
  return strata::test::survived(process, [&] { return trained<Mesh>(elastic_mesh<Mesh>{process}, pause); });
}

struct victim {
  int process, lives;
};
/// Lets processes die at a wait; the others have the bits of one device. Returns whether the first of them died before the end.
template <class Mesh>
bool dies_at(const std::vector<victim>& victims, const outcome& expected) {
  CAPTURE(victims.front().process);
  CAPTURE(victims.front().lives);
  CAPTURE(victims.back().process);
  CAPTURE(victims.back().lives);
  const auto all = std::make_shared<registry>(processes<Mesh>, places<Mesh>);
  std::vector<outcome> outcomes(processes<Mesh>);
  std::vector<std::thread> threads;
  for (int i = 0; i < processes<Mesh>; ++i) {
    int lives = -1;
    for (const victim& v : victims)
      if (v.process == i) lives = v.lives;
    threads.emplace_back([&, i, lives] { outcomes[std::size_t(i)] = survived<Mesh>(mortal(all, i, false, lives)); });
  }
  for (auto& t : threads) t.join();
  for (int i = 0; i < processes<Mesh>; ++i) {
    const outcome& o = outcomes[std::size_t(i)];
    CAPTURE(i);
    CHECK(o.problem == "");
    if (!o.died) CHECK(o == expected);
  }
  return outcomes[std::size_t(victims[0].process)].died;
}

template <class Mesh>
void dies_at_any(const outcome& expected) {
  constexpr int stride = repetitions(5, 17) * (processes<Mesh> > 6 ? 5 : 1);  // messages; all of them with 1
  int lives = 1, process = 1;
  for (; dies_at<Mesh>({{process, lives}}, expected); lives += stride) process = 1 + (process + 1) % (processes<Mesh> - 1);
  CHECK(lives > 50);
  // Then another one, in the smaller mesh.
  for (int first = 2; first < 60; first += 3 * stride) dies_at<Mesh>({{3, first}, {4, first + 15}}, expected);
}

/// Lets one process die before it has sent anything, while some others still connect and some send their first messages.
template <class Mesh>
void dies_while_others_connect(const outcome& expected) {
  constexpr int victim = 2;
  const auto all = std::make_shared<registry>(processes<Mesh>, places<Mesh>);
  std::vector<std::unique_ptr<mortal>> connected(processes<Mesh>);
  for (int i = 1; i < processes<Mesh>; i += 2) connected[std::size_t(i)] = std::make_unique<mortal>(all, i, false);
  all->die(victim);
  std::vector<outcome> outcomes(processes<Mesh>);
  std::vector<std::thread> threads;
  for (int i = 0; i < processes<Mesh>; ++i)
    if (i != victim)
      threads.emplace_back([&, i] {
        auto& self = connected[std::size_t(i)];
        outcomes[std::size_t(i)] = survived<Mesh>(self ? *self : mortal::starting_again(all, i));
      });
  for (auto& t : threads) t.join();
  for (int i = 0; i < processes<Mesh>; ++i) {
    const outcome& o = outcomes[std::size_t(i)];
    CAPTURE(i);
    CHECK(o.problem == "");
    if (i != victim) CHECK(o == expected);
  }
}

/// Lets a process die and come back.
template <class Mesh>
void comes_back(const outcome& expected) {
  int came_back = 0;
  for (int again = 0; again < repetitions(4, 2); ++again) {
    CAPTURE(again);
    const auto all = std::make_shared<registry>(processes<Mesh>, places<Mesh>);
    std::vector<outcome> outcomes(processes<Mesh> + 1);
    std::vector<std::thread> threads;
    const int victim = 1 + (again + 2) % (processes<Mesh> - 1);
    for (int i = 0; i < processes<Mesh>; ++i)
      if (i != victim) threads.emplace_back([&, i] { outcomes[std::size_t(i)] = survived<Mesh>(mortal(all, i, false), 20ms); });
    threads.emplace_back([&] {
      outcomes[std::size_t(victim)] = survived<Mesh>(mortal(all, victim, false, 8 + 3 * again));
      outcomes.back() = survived<Mesh>(mortal(all, victim, true, again % 2 == 0 ? -1 : 4 * again));
    });
    for (auto& t : threads) t.join();
    for (const outcome& o : outcomes) {
      CHECK(o.problem == "");
      if (!o.died) CHECK(o == expected);
    }
    came_back += !outcomes.back().died;
  }
  CHECK(came_back > 0);
}

/// Predictions for 50 samples in batches of 24, the last of which is short, after a training of one epoch.
std::vector<float> predicted_by(const auto& strategy) {
  static const data::digits digits = data::synthetic_digits(50, 3);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, strategy, seed(7)};
  model.fit(digits | data::batch<24>, epochs(1), verbose::off);
  model.reset_optimizer();  // a spare has no slots
  return model.predict(digits | data::batch<24>).values;
}
/// The predictions of each process. Process 3 dies, so process 5 takes its place and process 4 becomes a spare. Empty for a
/// process that died.
template <class Mesh>
std::vector<std::vector<float>> predictions_of_all(std::vector<std::string>& problems) {
  const auto all = std::make_shared<registry>(processes<Mesh>, places<Mesh>);
  std::vector<std::vector<float>> predicted(processes<Mesh>);
  problems.resize(processes<Mesh>);
  std::vector<std::thread> threads;
  for (int i = 0; i < processes<Mesh>; ++i)
    threads.emplace_back([&, i] {
      const mortal self(all, i, false, i == 3 ? 10 : -1);
      try {
        predicted[std::size_t(i)] = predicted_by(elastic_mesh<Mesh>{self});
        self.end();
      } catch (const death&) {
      } catch (const std::exception& e) {
        problems[std::size_t(i)] = e.what();
      }
    });
  for (auto& t : threads) t.join();
  return predicted;
}
}  // namespace

TEST_CASE("a process of a mesh that divides tensors dies at any of its messages: the others have the bits of one device") {
  const outcome expected = trained<ranks>(one_device{{.threads = 1, .leaves = 8}});
  dies_at_any<ranks>(expected);
  dies_while_others_connect<ranks>(expected);
  comes_back<ranks>(expected);
}

TEST_CASE("the same in a mesh of pipelines") {
  const outcome expected = trained<in_stages>(one_device{{.threads = 1, .leaves = 8}});
  dies_at_any<in_stages>(expected);
  dies_while_others_connect<in_stages>(expected);
  comes_back<in_stages>(expected);
}

TEST_CASE("where layers are divided, a spare gets the predictions of the others") {
  const std::vector<float> expected = predicted_by(one_device{{.threads = 1, .leaves = 8}});
  REQUIRE(expected.size() == 500);
  std::vector<std::string> problems;
  const auto predicted = predictions_of_all<ranks>(problems);
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    CAPTURE(i);
    CHECK(problems[i] == "");
    CHECK(predicted[i] == (i == 3 ? std::vector<float>{} : expected));
  }
}

TEST_CASE("in a mesh of pipelines each process predicts alone, and a spare says that it cannot") {
  const std::vector<float> expected = predicted_by(one_device{{.threads = 1, .leaves = 8}});
  std::vector<std::string> problems;
  const auto predicted = predictions_of_all<in_stages>(problems);
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    CAPTURE(i);
    const bool is_spare = i == 4;
    CHECK((problems[i] == "") == !is_spare);
    CHECK(predicted[i] == (is_spare || i == 3 ? std::vector<float>{} : expected));
  }
  CHECK(problems[4] == "this process is waiting for others to form a group with the whole network, so it cannot predict");
}

TEST_CASE("where layers are divided, an optimizer that takes norms of directions is refused") {
  const mortal one(std::make_shared<registry>(processes<ranks>, places<ranks>), 0, false);
  CHECK_THROWS_WITH_AS((trainer{net{}, lamb{}, sparse_categorical_crossentropy{}, elastic_mesh<ranks>{one}}),
                       "lamb takes norms of whole parameters while it updates, and several processes have parts of them, so that "
                       "some could update and others not: use another optimizer, or leave out elastic_options",
                       strata_error);
}
