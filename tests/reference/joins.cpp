// The joins of branches against the recordings.
#include <strata/base/precision.hpp>
#include <strata/cpu/cpu.hpp>
#include <strata/layers/add.hpp>
#include <strata/layers/average.hpp>
#include <strata/layers/maximum.hpp>
#include <strata/layers/multiply.hpp>
#include <strata/layers/subtract.hpp>

#include "recorded.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

template <class Join, class Backend, class Precision, shape... In>
void check_on(recording& recorded, const std::string& name) {
  using T = typename Precision::value_type;
  using K = typename find_kernel<Backend, Join, Precision, In...>::type;
  INFO(name << " on " << Backend::name << ", " << sizeof(T) << " bytes");
  operands<T> o;
  std::vector<std::vector<T>> x, dx;
  for (std::size_t k = 0; k < sizeof...(In); ++k) {
    x.push_back(recorded.tensor<T>(name + "/input_" + std::to_string(k)));
    dx.emplace_back(x.back().size());
    o.x[k] = x.back().data(), o.dx[k] = dx.back().data();
  }
  const std::vector<double> expected = recorded.tensor(name + "/output");
  const std::vector<T> dy = recorded.tensor<T>(name + "/output_gradient");
  std::vector<T> y(expected.size());
  o.count = 2, o.y = y.data(), o.dy = dy.data();
  K::forward(o);
  compare<T>("output", y, expected, tolerance_of<T>);
  K::backward(o);
  for (std::size_t k = 0; k < sizeof...(In); ++k) {
    const std::string gradient = name + "/input_" + std::to_string(k) + "_gradient";
    compare<T>(gradient, dx[k], recorded.tensor(gradient), tolerance_of<T>);
  }
}

template <class Join, shape... In>
void check(recording& recorded, const std::string& name) {
  check_on<Join, reference, precision::f64, In...>(recorded, name);
  check_on<Join, reference, precision::f32, In...>(recorded, name);
  check_on<Join, cpu, precision::f64, In...>(recorded, name);
  check_on<Join, cpu, precision::f32, In...>(recorded, name);
}

}  // namespace

TEST_CASE("joins of branches") {
  constexpr shape same{3, 4, 5};
  recording recorded("joins");
  check<sum_of_branches, same, same, same>(recorded, "add");
  check<mean_of_branches, same, same, same>(recorded, "average");
  check<largest_of_branches, same, same, same>(recorded, "maximum");
  check<product_of_branches, same, same, same>(recorded, "multiply");
  check<difference_of_branches, same, same>(recorded, "subtract");
  check<stack_of_branches, same, shape{3, 4, 1}, shape{3, 4, 18}>(recorded, "concatenate");
  CHECK(recorded.forgotten() == "");
}
