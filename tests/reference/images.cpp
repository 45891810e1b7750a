// Image augmentation and resizing against Keras and TensorFlow; generate_images.py records them.
#include <array>
#include <cstdio>
#include <strata/data/image/affine_transform.hpp>
#include <strata/data/image/random_contrast.hpp>
#include <strata/data/image/random_flip.hpp>
#include <strata/data/image/resize.hpp>
#include <string>

#include "recorded.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::data;

static test::recording recorded("images");

namespace {

constexpr shape image_shape{6, 9, 3};

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-13;

template <class T>
void check_affine() {
  const std::vector<T> image = recorded.tensor<T>("image");
  std::vector<T> out(image.size());
  for (const char* name : {"identity", "whole_pixels", "translation", "far", "zoom_out", "zoom_in", "stretch", "rotation",
                           "turned_around", "shear"}) {
    const std::vector<double> m = recorded.tensor(std::string("matrix/") + name);
    const affine_matrix matrix{m[0], m[1], m[2], m[3], m[4], m[5]};
    for (const auto& [mode, mode_name] : {std::pair{fill_mode::constant, "constant"}, std::pair{fill_mode::nearest, "nearest"},
                                          std::pair{fill_mode::reflect, "reflect"}, std::pair{fill_mode::wrap, "wrap"}})
      for (const auto& [between, between_name] :
           {std::pair{interpolation::nearest, "nearest"}, std::pair{interpolation::bilinear, "bilinear"}}) {
        const std::string what = std::string("affine/") + name + "/" + mode_name + "/" + between_name;
        affine_transform(tensor<const T, image_shape>{image.data()}, matrix, tensor<T, image_shape>{out.data()},
                         {mode, between, 7});
        test::compare<T>(what, out, recorded.tensor(what), tolerance<T>);
        // The function is applied to each element once, and nothing else is written.
        affine_transform(tensor<const T, image_shape>{image.data()}, matrix, tensor<T, image_shape>{out.data()},
                         {mode, between, 7}, [](T v) { return v + 1; });
        std::vector<double> one_more = recorded.tensor(what);
        for (double& v : one_more) v += 1;
        test::compare<T>(what, out, one_more, tolerance<T>);
      }
  }
}

void check_matrix(const affine_matrix& m, const char* name) {
  test::compare<double>(name, std::array{m.a0, m.a1, m.a2, m.b0, m.b1, m.b2}, recorded.tensor(std::string("matrix/") + name),
                        1e-15);
}

}  // namespace

TEST_CASE("affine_transform") {
  check_affine<double>();
  check_affine<float>();
}

TEST_CASE("matrices of random_translation, random_zoom and random_rotation") {
  check_matrix(affine_matrix::translation(0, 0), "identity");
  check_matrix(affine_matrix::translation(2, -3), "whole_pixels");
  check_matrix(affine_matrix::translation(-1.25, 2.375), "translation");
  check_matrix(affine_matrix::zoom(1.6875, 1.3125, image_shape), "zoom_out");
  check_matrix(affine_matrix::zoom(0.40625, 0.71875, image_shape), "zoom_in");
  check_matrix(affine_matrix::rotation(0.4, image_shape), "rotation");
  check_matrix(affine_matrix::rotation(2.9, image_shape), "turned_around");
}

TEST_CASE("flips and contrast") {
  const std::vector<float> image = recorded.tensor<float>("image");
  std::vector<float> out(image.size());
  flip_left_right(tensor<const float, image_shape>{image.data()}, tensor<float, image_shape>{out.data()});
  test::compare<float>("flip_left_right", out, recorded.tensor("flip_left_right"), 0);
  flip_up_down(tensor<const float, image_shape>{image.data()}, tensor<float, image_shape>{out.data()});
  test::compare<float>("flip_up_down", out, recorded.tensor("flip_up_down"), 0);
  for (const char* factor : {"0.25", "1.75"}) {
    out = image;
    adjust_contrast(tensor<float, image_shape>{out.data()}, std::stof(factor), {20, 240});
    test::compare<float>("contrast", out, recorded.tensor(std::string("contrast/") + factor), 1e-6);
    std::vector<double> exact = recorded.tensor("image");
    adjust_contrast(tensor<double, image_shape>{exact.data()}, std::stod(factor), {20, 240});
    test::compare<double>("contrast", exact, recorded.tensor(std::string("contrast/") + factor), 1e-14);
  }
}

namespace {

template <int Channels>
void check_resize(const std::string& name, int height, int width, int new_height, int new_width, resize_method method,
                  aspect_ratio proportion) {
  INFO(name);
  const std::vector<std::uint8_t> photo = recorded.tensor<std::uint8_t>("photo/" + std::to_string(height) + "_" +
                                                                        std::to_string(width) + "_" + std::to_string(Channels));
  const std::vector<double> expected = recorded.tensor(name);
  std::vector<float> out(expected.size());
  const pixels<const std::uint8_t, Channels> from{photo.data(), height, width, width * Channels};
  resize(from, pixels<float, Channels>{out.data(), new_height, new_width, new_width * Channels}, method, proportion);
  test::compare<float>(name, out, expected, method == resize_method::nearest ? 0 : 2e-6);

  // Resized to bytes, into the middle of a larger picture.
  const int stride = (new_width + 2) * Channels;
  std::vector<std::uint8_t> bytes(std::size_t(stride * (new_height + 2)), 99);
  pixels<std::uint8_t, Channels> whole{bytes.data(), new_height + 2, new_width + 2, stride};
  resize(from, whole.part(1, 1, new_height, new_width), method, proportion);
  for (int y = 0; y < new_height + 2; ++y)
    for (int k = 0; k < stride; ++k) {
      const bool inside = y >= 1 && y <= new_height && k >= Channels && k < stride - Channels;
      const double value = inside ? expected[std::size_t(((y - 1) * new_width - 1) * Channels + k)] : 99;
      REQUIRE(std::abs(std::clamp(value, 0.0, 255.0) - whole.row(y)[k]) <= 0.5001);
    }
}

}  // namespace

TEST_CASE("resize") {
  int checked = 0;
  const safetensors_file file("tests/reference/recorded/images.safetensors");
  for (const auto& [proportion, proportion_name] :
       {std::pair{aspect_ratio::distort, "distort"}, std::pair{aspect_ratio::crop, "crop"}, std::pair{aspect_ratio::pad, "pad"}})
    for (const auto& [method, method_name] :
         {std::pair{resize_method::bilinear, "bilinear"}, std::pair{resize_method::nearest, "nearest"},
          std::pair{resize_method::bicubic, "bicubic"}, std::pair{resize_method::area, "area"}})
      for (const auto& entry : file.entries()) {
        const std::string start = std::string(proportion_name) + "/" + method_name + "/";
        if (!entry.name.starts_with(start)) continue;
        int height = 0, width = 0, channels = 0, new_height = 0, new_width = 0;
        REQUIRE(std::sscanf(entry.name.c_str() + start.size(), "%d_%d_%d/%d_%d", &height, &width, &channels, &new_height,
                            &new_width) == 5);
        const auto check = channels == 1 ? check_resize<1> : channels == 3 ? check_resize<3> : check_resize<4>;
        check(entry.name, height, width, new_height, new_width, method, proportion);
        ++checked;
      }
  CHECK(checked > 120);
}

TEST_CASE("nothing was left out") { CHECK(recorded.forgotten("") == ""); }
