// Samples with names: sources, views and batches.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <strata/data.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::core;
using test::error_of;

namespace {
struct image : input<2, 2> {};
struct word : input<1> {};
struct kind {};
struct box {};

constexpr int n = 23;

/// The columns of sample i.
std::array<float, 4> image_of(int i) { return {float(4 * i), float(4 * i + 1), float(4 * i + 2), float(4 * i + 3)}; }
std::array<double, 2> box_of(int i) { return {i + 0.5, i + 0.25}; }
struct arrays {
  std::vector<std::array<std::array<float, 2>, 2>> images;
  std::vector<std::int64_t> words;
  std::vector<std::uint8_t> kinds;
  std::vector<std::array<double, 2>> boxes;

  explicit arrays(int first = 0, int count = n) {
    for (int i = first; i < first + count; ++i) {
      const auto pixels = image_of(i);
      images.push_back({{{pixels[0], pixels[1]}, {pixels[2], pixels[3]}}});
      words.push_back(100 + i), kinds.push_back(std::uint8_t(i)), boxes.push_back(box_of(i));
    }
  }
};
auto set(int first = 0, int count = n) {
  arrays a(first, count);
  return data::from_tensor_slices(of<image>(a.images), of<kind>(a.kinds), of<word>(a.words), of<box>(a.boxes));
}

/// The numbers of the samples of a batch of image, kind, word and box, each of which has to have the columns of that number.
template <class T>
std::vector<int> numbers(const samples<T>& batch) {
  std::vector<int> all;
  for (int k = 0; k < batch.count; ++k) {
    const int i = batch.truths[0].labels[k];
    all.push_back(i);
    for (int j = 0; j < 4; ++j) CHECK(batch.inputs[0][4 * k + j] == T(image_of(i)[std::size_t(j)]));
    CHECK(batch.inputs[1][k] == T(100 + i));
    for (int j = 0; j < 2; ++j) CHECK(batch.truths[1].targets[2 * k + j] == T(box_of(i)[std::size_t(j)]));
  }
  CHECK(batch.inputs[2] == nullptr);
  CHECK(batch.truths[0].targets == nullptr);
  CHECK(batch.truths[1].labels == nullptr);
  return all;
}
/// Those of a pass.
std::vector<int> pass(auto&& batches) {
  std::vector<int> all;
  for (const auto& batch : batches)
    for (const int i : numbers(batch)) all.push_back(i);
  return all;
}
/// The same of the stages `then` after samples without names.
std::vector<int> pass_without_names(auto then, int first = 0) {
  std::vector<int> all;
  for (const samples<float>& batch : data::range(first, first + n) | then)
    for (int k = 0; k < batch.count; ++k) all.push_back(batch.x() ? int(batch.x()[k]) : 0);
  return all;
}

struct ticket {
  std::array<std::array<float, 2>, 2> pixels;
  std::array<double, 2> place;
  std::uint8_t what;
  short text;
};
std::vector<ticket> tickets() {
  std::vector<ticket> all;
  const arrays a;
  for (std::size_t i = 0; i < std::size_t(n); ++i) all.push_back({a.images[i], a.boxes[i], a.kinds[i], short(a.words[i])});
  return all;
}
auto set_of(const std::vector<ticket>& records) {
  return data::from_structs(std::span(records), of<image>(&ticket::pixels), of<kind>(&ticket::what), of<word>(&ticket::text),
                            of<box>(&ticket::place));
}
auto all_columns = [](const auto& s) {
  return data::columns(of<image>(get<image>(s)), of<kind>(get<kind>(s)), of<word>(get<word>(s)), of<box>(get<box>(s)));
};
}  // namespace

TEST_CASE("batches have an array for each column: inputs in their order, outputs in theirs") {
  auto batches = set() | data::batch<8>;
  CHECK(batches.size() == 3);
  CHECK(pass(batches) == pass_without_names(data::batch<8>));
  CHECK(pass(set() | data::batch<8, double>) == pass_without_names(data::batch<8>));
  CHECK(pass(set() | data::batch(5)) == pass_without_names(data::batch(5)));
  CHECK(pass(set() | data::batch<8, data::drop_remainder>).size() == 16);
}

TEST_CASE("structs are read by members, borrowed or owned") {
  std::vector<ticket> records = tickets();
  CHECK(pass(set_of(records) | data::batch<8>) == pass_without_names(data::batch<8>));
  auto own = data::from_structs(records, of<image>(&ticket::pixels), of<kind>(&ticket::what), of<word>(&ticket::text),
                                of<box>(&ticket::place));
  CHECK(own.order() == set_of(records).order());
  records[3].place[1] = 7;
  CHECK(own.order() != set_of(records).order());
  CHECK(pass(own | data::shuffle(7) | data::batch<4>) == pass_without_names(data::shuffle(7) | data::batch<4>));
}

TEST_CASE("columns of different sizes are refused by name") {
  arrays a;
  a.boxes.pop_back();
  CHECK(error_of([&] { data::from_tensor_slices(of<image>(a.images), of<kind>(a.kinds), of<box>(a.boxes)); }) ==
        "from_tensor_slices: 23 samples of image, but 22 of box");
  CHECK(error_of([&] { data::from_tensor_slices(of<image>(std::vector<float>())); }) ==
        "from_tensor_slices: the data set is empty");
  CHECK(error_of([&] { data::from_structs(std::vector<ticket>(), of<kind>(&ticket::what)); }) ==
        "from_structs: the data set is empty");
}

TEST_CASE("the order of samples with names is that of samples without") {
  const auto same = [](auto stages) { CHECK(pass(set() | stages) == pass_without_names(stages)); };
  same(data::shuffle(5, {.seed = 3}) | data::batch<4>);
  same(data::skip(3) | data::take(11) | data::batch<4>);
  same(data::shard(2, 1) | data::shuffle(100) | data::batch<4>);
  same(data::shuffle(9) | data::repeat(3) | data::batch<4>);
  same(data::shuffle(9) | data::cache | data::batch<4> | data::prefetch(3));
  same(data::shuffle(9) | data::batch<4> | data::cache | data::repeat(2) | data::skip(1) | data::take(5));
  same(data::batch(5) | data::unbatch | data::shuffle(4) | data::batch<4>);
  CHECK(pass(set() | data::map(all_columns, data::parallel(2)) | data::shuffle(9) | data::batch<4>) ==
        pass_without_names(data::shuffle(9) | data::batch<4>));
  CHECK(pass(set() | data::concatenate(set(50, 5)) | data::skip(20) | data::batch<4>) ==
        std::vector{20, 21, 22, 50, 51, 52, 53, 54});
  CHECK(pass(set() | data::shuffle(4) | data::concatenate(set(50, 5)) | data::skip(23) | data::batch<2>) ==
        std::vector{50, 51, 52, 53, 54});
}

TEST_CASE("functions take and return samples with names") {
  const auto is_odd = [](const auto& s) { return get<kind>(s) % 2 == 1; };
  CHECK(pass(set() | data::filter(is_odd) | data::take(3) | data::batch<2>) == std::vector{1, 3, 5});
  const auto of_number = [](const auto& i) {
    return data::columns(of<image>(image_of(int(i))), of<kind>(i), of<word>(100 + int(i)), of<box>(box_of(int(i))));
  };
  const std::vector<int> some{4, 2, 9};
  CHECK(pass(data::from_range(some) | data::map(of_number) | data::batch<2>) == some);
  CHECK(pass(data::from_range(some) | data::map(of_number) | data::cache | data::batch<2>) == some);
  const auto two = [&](const auto& s) {
    return data::from_range(std::vector{int(get<kind>(s)), get<kind>(s) + 1}) | data::map(of_number);
  };
  const std::vector<int> twice{0, 1, 1, 2, 2, 3};
  CHECK(pass(set() | data::take(3) | data::flat_map(two) | data::batch<2>) == twice);
  CHECK(pass(set() | data::take(3) | data::interleave(two, {.cycle_length = 1}, data::parallel(2)) | data::shuffle(1) |
             data::batch<2>) == twice);
  CHECK(pass(data::from_generator([&] { return std::vector{of_number(7), of_number(3)}; }) | data::cache | data::repeat(2) |
             data::batch<3>) == std::vector{7, 3, 7, 3});
  const auto second = [](std::int64_t i, const auto& s) {
    CHECK(i == get<kind>(s));
    return all_columns(s);
  };
  CHECK(pass(set() | data::enumerate() | data::map(second) | data::batch<8>) == pass_without_names(data::batch<8>));
  int at = 0;
  for (const auto& e : set() | data::elements) {
    CHECK(get<kind>(e) == at);
    CHECK(get<box>(e)(1) == at + 0.25);
    CHECK(get<image>(e)(1, 1) == float(4 * at++ + 3));
  }
}

TEST_CASE("named gives names to x and the truth, zip joins columns") {
  const arrays a;
  auto images = data::from_tensor_slices(a.images, a.kinds) | data::scale(1) | data::named<image, kind>;
  auto rest = data::zip(data::from_range(a.words) | data::named<word>, data::from_tensor_slices(a.boxes) | data::named<box>);
  auto whole = data::zip(images, rest);
  CHECK(whole.size() == n);
  CHECK(pass(whole | data::batch<4>) == pass_without_names(data::batch<4>));
  CHECK(pass(data::zip(images, data::from_range(a.words) | data::named<word>,
                       data::from_tensor_slices(a.boxes) | data::shuffle(1) | data::named<box>) |
             data::batch<4>) == pass_without_names(data::batch<4>));
  CHECK(pass(whole | data::shuffle(6) | data::map(all_columns) | data::batch<4>) ==
        pass_without_names(data::shuffle(6) | data::batch<4>));
  CHECK(pass(data::zip(images, rest | data::shuffle(1)) | data::cache | data::batch<4>) == pass_without_names(data::batch<4>));
  // An integer is a class if its node is an output; targets of another type than x.
  auto outputs = data::zip(data::from_range(a.kinds) | data::named<kind>,
                           data::from_tensor_slices(a.images, a.boxes) | data::named<image, box>);
  CHECK(pass(data::zip(outputs, data::from_range(a.words) | data::named<word>) | data::cache | data::batch<4>) ==
        pass_without_names(data::batch<4>));
  CHECK(images.order() == "named(image, kind)");
}

TEST_CASE("a window has the inputs of all its samples, and the truth of the last") {
  const auto weight = [](const auto& s) { return 2.0 * get<kind>(s); };
  int last = 2;
  for (const samples<float>& b :
       set() | data::sample_weight(weight) | data::window<3>({.shift = 2}) | data::batch<4> | data::prefetch())
    for (int k = 0; k < b.count; ++k, last += 2) {
      CHECK(b.truths[0].labels[k] == last);
      CHECK(b.truths[0].weights[k] == float(2 * last));
      CHECK(b.truths[1].targets[2 * k + 1] == float(box_of(last)[1]));
      for (int j = 0; j < 3; ++j) {
        CHECK(b.inputs[1][3 * k + j] == float(98 + last + j));
        for (int c = 0; c < 4; ++c) CHECK(b.inputs[0][12 * k + 4 * j + c] == image_of(last - 2 + j)[std::size_t(c)]);
      }
    }
  CHECK(last == n + 1);
}

TEST_CASE("weights of samples are those of each output") {
  const auto weight = [](const auto& s) { return 2.0 * get<kind>(s); };
  for (const samples<float>& b : set() | data::sample_weight(weight) | data::shuffle(5) | data::batch<8> | data::prefetch()) {
    numbers(b);
    for (int k = 0; k < b.count; ++k) {
      CHECK(b.truths[0].weights[k] == float(2 * b.truths[0].labels[k]));
      CHECK(b.truths[1].weights[k] == b.truths[0].weights[k]);
    }
    CHECK(b.truths[2].weights == nullptr);
  }
  std::vector<float> listed(n, 3);
  for (const samples<float>& b : set() | data::sample_weight(listed) | data::batch<8> | data::cache)
    CHECK(b.truths[1].weights[b.count - 1] == 3);
}

TEST_CASE("a pass continues in the middle of an epoch") {
  auto view = set() | data::shuffle(10) | data::cache | data::batch<4> | data::prefetch();
  data_position after;
  std::vector<int> left;
  int count = 0;
  for (const samples<float>& b : view) {
    if (count++ == 2) {
      after = view.where();
      CHECK(view.describe(after, b.count, 1) == "sample " + std::to_string(b.truths[0].labels[1]));
    } else if (count > 3) {
      for (const int i : numbers(b)) left.push_back(i);
    }
  }
  CHECK(after == data_position{0, 12});
  auto again = set() | data::shuffle(10) | data::cache | data::batch<4> | data::prefetch();
  again.resume_at(after);
  CHECK(pass(again) == left);
}

TEST_CASE("a process writes only its rows, and the threads of a training write them") {
  auto some = set() | data::batch<8>;
  some.only_rows([](int) { return row_range{2, 4}; });
  for (const samples<float>& b : some) {
    CHECK(b.inputs[0][8] == image_of(b.truths[0].labels[2])[0]);
    break;
  }
  std::vector<std::array<float, 1024>> rows(n);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].fill(float(i));
  struct wide : input<1024> {};
  auto large = data::from_tensor_slices(of<wide>(rows), of<kind>(arrays().kinds)) | data::shuffle(10) | data::batch<16>;
  int parts = 0;
  large.written_by([&](std::size_t count, const auto& write) {
    for (std::size_t k = 0; k < count; ++k, ++parts) write(k, k + 1);
  });
  for (const samples<float>& b : large)
    for (int k = 0; k < b.count; ++k) CHECK(b.inputs[0][1024 * k + 1023] == float(b.truths[0].labels[k]));
  CHECK(parts == n);
}

TEST_CASE("a cache file belongs to one set of columns") {
  const test::scratch_folder folder("data_columns");
  const auto path = folder / "cache";
  CHECK(pass(set() | data::cache(path) | data::shuffle(5) | data::batch<4>) ==
        pass_without_names(data::shuffle(5) | data::batch<4>));
  CHECK(pass(set() | data::cache(path) | data::batch<4>) == pass_without_names(data::batch<4>));
  arrays a;
  const auto open = [&] {
    auto again = data::from_tensor_slices(of<image>(a.images), of<kind>(a.kinds), of<word>(a.words), of<box>(a.boxes));
    return error_of([&] { again | data::cache(path); });
  };
  CHECK(open() == "no error");
  a.boxes[5][0] = 0;
  const std::string refusal = open();
  CAPTURE(refusal);
  CHECK(test::contains(refusal,
                       "holds 'strata cache 4: image float32 (2, 2), kind label, word int64 (1,), box float64 (2,) of "
                       "from_tensor_slices(23 samples, checksum "));
  a = arrays();
  a.kinds[5] = 0;
  CHECK(test::contains(open(), "but the data set is"));
  a = arrays();
  a.words[22] = 0;
  CHECK(test::contains(open(), "but the data set is"));
  struct other {};
  a = arrays();
  auto renamed = data::from_tensor_slices(of<image>(a.images), of<other>(a.kinds), of<word>(a.words), of<box>(a.boxes));
  CHECK(test::contains(error_of([&] { renamed | data::cache(path); }), "but the data set is"));
  CHECK(renamed.order() != set().order());

  // What a function gives is compared, too.
  const auto made = folder / "made";
  float by = 0;
  const auto moved = [&](const auto& s) {
    auto whole = all_columns(s);
    return data::columns(of<image>(get<image>(whole)), of<box>(std::array{get<box>(s).data[0] + double(by)}));
  };
  set() | data::map(moved) | data::cache(made);
  CHECK(error_of([&] { set() | data::map(moved) | data::cache(made); }) == "no error");
  by = 1;
  CHECK(test::contains(error_of([&] { set() | data::map(moved) | data::cache(made); }), "sample 0 differs"));
}

TEST_CASE("samples that cannot be made are left out, and numbers that are not finite have the name of their column") {
  const auto fails = [](const auto& s) {
    if (get<kind>(s) % 3 == 0) throw_error("three");
    return all_columns(s);
  };
  CHECK(pass(set() | data::take(8) | data::map(fails) | data::ignore_errors | data::batch<3>) == std::vector{1, 2, 4, 5, 7});
  CHECK(error_of([&] { pass(set() | data::skip(1) | data::map(fails) | data::batch<3>); }) == "map: sample 3: three");
  arrays a;
  a.boxes[4][1] = std::numeric_limits<double>::quiet_NaN();
  auto view = data::from_tensor_slices(of<image>(a.images), of<kind>(a.kinds), of<box>(a.boxes)) | data::check_finite;
  CHECK(error_of([&] {
          for (const auto& b : view | data::batch<8>) CHECK(b.count == 8);
        }) == "check_finite: value 1 of box of sample 4 is NaN");
  CHECK(pass(set() | data::check_finite | data::ignore_errors | data::batch<4>) == pass_without_names(data::batch<4>));
}

TEST_CASE("class numbers fit into 32 bits") {
  const auto large = [](const auto&) { return data::columns(of<kind>(std::int64_t{1} << 40)); };
  CHECK(error_of([&] {
          for (const auto& b : set() | data::map(large) | data::batch<4>) CHECK(b.count == 0);
        }) == "label 1099511627776 does not fit into 32 bits");
}
