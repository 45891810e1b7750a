#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <list>
#include <strata/base/random.hpp>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/auto_shard.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/filter.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/repeat.hpp>
#include <strata/data/views/shard.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/skip.hpp>
#include <strata/data/views/take.hpp>
#include <string>
#include <vector>
using namespace strata;
using namespace strata::core;

namespace {
auto numbers(int n) {
  std::vector<float> x;
  for (int k = 0; k < n; ++k) x.push_back(float(k));
  return data::from_tensor_slices(std::move(x));
}
auto stream(int n) {
  std::list<float> x;
  for (int k = 0; k < n; ++k) x.push_back(float(k));
  return data::from_range(std::move(x));
}
std::vector<float> all(auto&& source) {
  std::vector<float> x;
  for (const auto& batch : source) x.insert(x.end(), batch.x(), batch.x() + batch.count);
  return x;
}
std::vector<float> sorted(std::vector<float> x) {
  std::ranges::sort(x);
  return x;
}

/// A stream out of files: the lines of file k are 100 k, 100 k + 1, ...
class lines {
 public:
  using element = float;

  explicit lines(std::vector<int> files) : files_(std::move(files)) {}

  const std::vector<int>& files() const { return files_; }
  void keep_files(std::size_t workers, std::size_t index) {
    std::vector<int> kept;
    for (std::size_t k = index; k < files_.size(); k += workers) kept.push_back(files_[k]);
    files_ = kept;
  }
  void start(int) { file_ = 0, line_ = 0; }
  bool next(float& e) {
    if (file_ == files_.size()) return false;
    e = float(100 * files_[file_] + line_);
    if (++line_ == 10) line_ = 0, ++file_;
    return true;
  }

 private:
  std::vector<int> files_;
  std::size_t file_ = 0;
  int line_ = 0;
};
}  // namespace

TEST_CASE("shards are parts of the data set: each sample in exactly one, for any length and number of workers") {
  const philox generator{11};
  for (std::uint64_t round = 0; round < 200; ++round) {
    const auto draw = [&](std::uint64_t k, int below) { return int(generator.uniform(k, round) * below); };
    const int workers = 1 + draw(0, 9), n = workers + draw(1, 60), buffer = 1 + draw(2, 80);
    const bool streamed = draw(3, 2) == 1;
    CAPTURE(workers);
    CAPTURE(n);
    std::vector<float> together;
    std::size_t least = 1000, most = 0;
    for (int w = 0; w < workers; ++w) {
      const auto mine = [&](auto source) {
        auto view = source | data::shuffle(std::size_t(buffer), data::shared_seed{round}) |
                    data::shard(std::size_t(workers), std::size_t(w));
        if constexpr (requires { view.size(); }) {
          std::size_t count = 0;
          for ([[maybe_unused]] const auto i : view) ++count;
          REQUIRE(view.size() == count);
          view.set_epoch(0);
        }
        return all(view | data::batch<1>);
      };
      const auto shard = streamed ? mine(stream(n)) : mine(numbers(n));
      together.insert(together.end(), shard.begin(), shard.end());
      least = std::min(least, shard.size()), most = std::max(most, shard.size());
    }
    REQUIRE(sorted(together) == all(numbers(n) | data::batch<1>));
    REQUIRE(most - least <= 1);
  }
}

TEST_CASE("which samples: every n-th") {
  CHECK(all(numbers(7) | data::shard(3, 0) | data::batch<1>) == std::vector<float>{0, 3, 6});
  CHECK(all(numbers(7) | data::shard(3, 2) | data::batch<1>) == std::vector<float>{2, 5});
  CHECK(all(numbers(7) | data::shard(1, 0) | data::batch<2>) == all(numbers(7) | data::batch<3>));
  CHECK(all(numbers(12) | data::shard(2, 1) | data::shard(3, 1) | data::batch<1>) == std::vector<float>{3, 9});
  CHECK(all(numbers(7) | data::shard(3, 2) | data::repeat(2) | data::batch<3>) == std::vector<float>{2, 5, 2, 5});
}

TEST_CASE("a shard that does not exist, and shards that would be empty, are refused") {
  CHECK_THROWS_WITH_AS(numbers(7) | data::shard(3, 3), "shard: index 3 is not below the number of shards, 3", strata_error);
  CHECK_THROWS_WITH_AS(numbers(7) | data::shard(0, 0), "shard: index 0 is not below the number of shards, 0", strata_error);
  CHECK_THROWS_WITH_AS(numbers(2) | data::shard(3, 0), "shard: 2 elements are too few for 3 shards", strata_error);
}

TEST_CASE("a training that stops and goes on with another number of workers sees what is left, each sample once") {
  const auto worker = [](std::size_t workers, std::size_t index) {
    return numbers(61) | data::shuffle(20, data::shared_seed{4}) | data::shard(workers, index);
  };
  const auto whole = all(numbers(61) | data::shuffle(20, data::shared_seed{4}) | data::batch<1>);
  std::vector<float> before, after;
  data_position stopped;
  for (std::size_t w = 0; w < 2; ++w) {
    auto view = worker(2, w) | data::batch<6>;
    auto at = view.begin();
    for (int batch = 0; batch < 2; ++batch) {
      if (batch > 0) ++at;
      before.insert(before.end(), (*at).x(), (*at).x() + (*at).count);
    }
    stopped = view.where();
    CHECK(stopped == data_position{0, 24});
  }
  for (std::size_t w = 0; w < 3; ++w) {
    auto view = worker(3, w) | data::batch<5>;
    view.resume_at(stopped);
    const auto rest = all(view);
    after.insert(after.end(), rest.begin(), rest.end());
  }
  CHECK(sorted(before) == sorted({whole.begin(), whole.begin() + 24}));
  CHECK(sorted(after) == sorted({whole.begin() + 24, whole.end()}));
  auto five = worker(5, 0) | data::batch<1>;
  CHECK_THROWS_WITH_AS(five.resume_at(stopped),
                       "batch: 24 samples of the epoch have been seen, which 5 workers cannot share evenly", strata_error);
}

TEST_CASE("policies: by file, by samples, whichever fits, not at all") {
  const auto set = [] {
    return data::stream_view(lines({0, 1, 2, 3, 4})) | data::filter([](float x) { return int(x) % 10 < 2; });
  };
  const auto of = [&](auto policy, std::size_t workers, std::size_t w) {
    return all(set() | data::shard_by<decltype(policy)>(workers, w) | data::batch<1>);
  };
  using policy = data::auto_shard;
  CHECK(of(policy::file{}, 2, 1) == std::vector<float>{100, 101, 300, 301});
  CHECK(of(policy::file{}, 5, 4) == std::vector<float>{400, 401});
  CHECK(of(policy::data{}, 2, 1) == std::vector<float>{1, 101, 201, 301, 401});
  CHECK(of(policy::off{}, 2, 1).size() == 10);
  CHECK(of(policy::automatic{}, 2, 1) == of(policy::file{}, 2, 1));
  CHECK(of(policy::automatic{}, 7, 6) == std::vector<float>{300});
  CHECK(all(numbers(9) | data::shard_by<policy::automatic>(2, 1) | data::batch<1>) == std::vector<float>{1, 3, 5, 7});
  CHECK_THROWS_WITH_AS(set() | data::shard_by<policy::file>(6, 0),
                       "auto_shard::file: 5 files are too few for 6 workers; auto_shard::data shares the samples instead",
                       strata_error);
  CHECK_THROWS_WITH_AS(set() | data::shard_by<policy::file>(2, 2), "shard_by: worker 2 is not below the number of workers, 2",
                       strata_error);
}
