// The summary has exactly the characters that Keras 3 prints.
#include <doctest/doctest.h>

#include <strata/layers/activation.hpp>
#include <strata/layers/average.hpp>
#include <strata/layers/batch_norm.hpp>
#include <strata/layers/concat.hpp>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/dense.hpp>
#include <strata/layers/dropout.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/layers/global_pool2d.hpp>
#include <strata/layers/max_pool2d.hpp>
#include <strata/layers/maximum.hpp>
#include <strata/layers/multiply.hpp>
#include <strata/layers/residual.hpp>
#include <strata/layers/subtract.hpp>
#include <strata/network/summary.hpp>

using namespace strata;
using namespace strata::core;

namespace {

using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<2>, conv2d<64, 3, relu>, max_pool2d<2>, flatten,
                       dense<64, relu>, dense<10, softmax>>;
using mlp = sequential<input<784>, dense<128, relu>, dropout<0.2_r>, dense<10, softmax>>;
using normalised = sequential<input<8, 8, 3>, conv2d<4, 3, same_padding, no_bias>, batch_norm<>, activation<relu>,
                              global_average_pool2d, dense<3>>;
using branched = sequential<input<8, 8, 3>, conv2d<4, 3, same_padding>,
                            concat<branch<residual<batch_norm<>>>, branch<max_pool2d<1>>>, global_average_pool2d, dense<3>>;

// Printed by Keras 3.15.1 for the same models.
const std::string keras_cnn = R"(Model: "sequential"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━┓
┃ Layer (type)                         ┃ Output Shape                ┃         Param # ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━┩
│ conv2d (Conv2D)                      │ (None, 26, 26, 32)          │             320 │
├──────────────────────────────────────┼─────────────────────────────┼─────────────────┤
│ max_pooling2d (MaxPooling2D)         │ (None, 13, 13, 32)          │               0 │
├──────────────────────────────────────┼─────────────────────────────┼─────────────────┤
│ conv2d_1 (Conv2D)                    │ (None, 11, 11, 64)          │          18,496 │
├──────────────────────────────────────┼─────────────────────────────┼─────────────────┤
│ max_pooling2d_1 (MaxPooling2D)       │ (None, 5, 5, 64)            │               0 │
├──────────────────────────────────────┼─────────────────────────────┼─────────────────┤
│ flatten (Flatten)                    │ (None, 1600)                │               0 │
├──────────────────────────────────────┼─────────────────────────────┼─────────────────┤
│ dense (Dense)                        │ (None, 64)                  │         102,464 │
├──────────────────────────────────────┼─────────────────────────────┼─────────────────┤
│ dense_1 (Dense)                      │ (None, 10)                  │             650 │
└──────────────────────────────────────┴─────────────────────────────┴─────────────────┘
 Total params: 121,930 (476.29 KB)
 Trainable params: 121,930 (476.29 KB)
 Non-trainable params: 0 (0.00 B)
)";

const std::string keras_mlp_after_fit_with_adam = R"(Model: "sequential"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━┓
┃ Layer (type)                         ┃ Output Shape                ┃         Param # ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━┩
│ dense (Dense)                        │ (None, 128)                 │         100,480 │
├──────────────────────────────────────┼─────────────────────────────┼─────────────────┤
│ dropout (Dropout)                    │ (None, 128)                 │               0 │
├──────────────────────────────────────┼─────────────────────────────┼─────────────────┤
│ dense_1 (Dense)                      │ (None, 10)                  │           1,290 │
└──────────────────────────────────────┴─────────────────────────────┴─────────────────┘
 Total params: 305,312 (1.16 MB)
 Trainable params: 101,770 (397.54 KB)
 Non-trainable params: 0 (0.00 B)
 Optimizer params: 203,542 (795.09 KB)
)";

const std::string keras_normalised = R"(Model: "sequential"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━┓
┃ Layer (type)                         ┃ Output Shape                ┃         Param # ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━┩
│ conv2d (Conv2D)                      │ (None, 8, 8, 4)             │             108 │
├──────────────────────────────────────┼─────────────────────────────┼─────────────────┤
│ batch_normalization                  │ (None, 8, 8, 4)             │              16 │
│ (BatchNormalization)                 │                             │                 │
├──────────────────────────────────────┼─────────────────────────────┼─────────────────┤
│ activation (Activation)              │ (None, 8, 8, 4)             │               0 │
├──────────────────────────────────────┼─────────────────────────────┼─────────────────┤
│ global_average_pooling2d             │ (None, 4)                   │               0 │
│ (GlobalAveragePooling2D)             │                             │                 │
├──────────────────────────────────────┼─────────────────────────────┼─────────────────┤
│ dense (Dense)                        │ (None, 3)                   │              15 │
└──────────────────────────────────────┴─────────────────────────────┴─────────────────┘
 Total params: 139 (556.00 B)
 Trainable params: 131 (524.00 B)
 Non-trainable params: 8 (32.00 B)
)";

const std::string keras_branched_in_96_columns = R"(Model: "functional"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┓
┃ Layer (type)              ┃ Output Shape           ┃        Param # ┃ Connected to           ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━┩
│ input_layer (InputLayer)  │ (None, 8, 8, 3)        │              0 │ -                      │
├───────────────────────────┼────────────────────────┼────────────────┼────────────────────────┤
│ conv2d (Conv2D)           │ (None, 8, 8, 4)        │            112 │ input_layer[0][0]      │
├───────────────────────────┼────────────────────────┼────────────────┼────────────────────────┤
│ batch_normalization       │ (None, 8, 8, 4)        │             16 │ conv2d[0][0]           │
│ (BatchNormalization)      │                        │                │                        │
├───────────────────────────┼────────────────────────┼────────────────┼────────────────────────┤
│ add (Add)                 │ (None, 8, 8, 4)        │              0 │ batch_normalization[0… │
│                           │                        │                │ conv2d[0][0]           │
├───────────────────────────┼────────────────────────┼────────────────┼────────────────────────┤
│ max_pooling2d             │ (None, 8, 8, 4)        │              0 │ conv2d[0][0]           │
│ (MaxPooling2D)            │                        │                │                        │
├───────────────────────────┼────────────────────────┼────────────────┼────────────────────────┤
│ concatenate (Concatenate) │ (None, 8, 8, 8)        │              0 │ add[0][0],             │
│                           │                        │                │ max_pooling2d[0][0]    │
├───────────────────────────┼────────────────────────┼────────────────┼────────────────────────┤
│ global_average_pooling2d  │ (None, 8)              │              0 │ concatenate[0][0]      │
│ (GlobalAveragePooling2D)  │                        │                │                        │
├───────────────────────────┼────────────────────────┼────────────────┼────────────────────────┤
│ dense (Dense)             │ (None, 3)              │             27 │ global_average_poolin… │
└───────────────────────────┴────────────────────────┴────────────────┴────────────────────────┘
 Total params: 155 (620.00 B)
 Trainable params: 147 (588.00 B)
 Non-trainable params: 8 (32.00 B)
)";

const std::string keras_branched = R"(Model: "functional"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━┓
┃ Layer (type)                  ┃ Output Shape              ┃         Param # ┃ Connected to               ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━┩
│ input_layer (InputLayer)      │ (None, 8, 8, 3)           │               0 │ -                          │
├───────────────────────────────┼───────────────────────────┼─────────────────┼────────────────────────────┤
│ conv2d (Conv2D)               │ (None, 8, 8, 4)           │             112 │ input_layer[0][0]          │
├───────────────────────────────┼───────────────────────────┼─────────────────┼────────────────────────────┤
│ batch_normalization           │ (None, 8, 8, 4)           │              16 │ conv2d[0][0]               │
│ (BatchNormalization)          │                           │                 │                            │
├───────────────────────────────┼───────────────────────────┼─────────────────┼────────────────────────────┤
│ add (Add)                     │ (None, 8, 8, 4)           │               0 │ batch_normalization[0][0], │
│                               │                           │                 │ conv2d[0][0]               │
├───────────────────────────────┼───────────────────────────┼─────────────────┼────────────────────────────┤
│ max_pooling2d (MaxPooling2D)  │ (None, 8, 8, 4)           │               0 │ conv2d[0][0]               │
├───────────────────────────────┼───────────────────────────┼─────────────────┼────────────────────────────┤
│ concatenate (Concatenate)     │ (None, 8, 8, 8)           │               0 │ add[0][0],                 │
│                               │                           │                 │ max_pooling2d[0][0]        │
├───────────────────────────────┼───────────────────────────┼─────────────────┼────────────────────────────┤
│ global_average_pooling2d      │ (None, 8)                 │               0 │ concatenate[0][0]          │
│ (GlobalAveragePooling2D)      │                           │                 │                            │
├───────────────────────────────┼───────────────────────────┼─────────────────┼────────────────────────────┤
│ dense (Dense)                 │ (None, 3)                 │              27 │ global_average_pooling2d[… │
└───────────────────────────────┴───────────────────────────┴─────────────────┴────────────────────────────┘
 Total params: 155 (620.00 B)
 Trainable params: 147 (588.00 B)
 Non-trainable params: 8 (32.00 B)
)";

// Two parameters with one name, and a class name that resembles a numbered one.
struct two_affines {
  static constexpr auto name = "two_affines", class_name = "TwoAffines";
  using operations = type_list<affine<dense_settings{4}>, affine<dense_settings{2}>>;
};
struct dense_1 {
  static constexpr auto name = "dense_1";
  static constexpr expected_shape output_shape(shape in) { return in; }
};

}  // namespace

TEST_CASE("summaries are those of Keras") {
  // 88 columns are the default, unless standard output is a narrower terminal.
  CHECK(summary_of<cnn>({.line_length = 88}) == keras_cnn);
  CHECK(summary_of<mlp>({.optimizer_parameters = 2 * 101'770 + 2, .line_length = 88}) == keras_mlp_after_fit_with_adam);
  CHECK(summary_of<normalised>({.line_length = 88}) == keras_normalised);
  CHECK(summary_of<branched>({.line_length = 96}) == keras_branched_in_96_columns);
  CHECK(summary_of<branched>({.line_length = 108}) == keras_branched);
}

TEST_CASE("doubles take twice the memory; the model may have a name") {
  const std::string text = summary_of<mlp>({.element_size = 8, .name = "digits"});
  CHECK(text.starts_with("Model: \"digits\"\n"));
  CHECK(text.ends_with(
      " Total params: 101,770 (795.08 KB)\n Trainable params: 101,770 (795.08 KB)\n Non-trainable params: 0 (0.00 B)\n"));
}

TEST_CASE("class names become Keras' automatic names") {
  CHECK(detail::snake_case("MaxPooling2D") == "max_pooling2d");
  CHECK(detail::snake_case("Conv2D") == "conv2d");
  CHECK(detail::snake_case("GlobalAveragePooling2D") == "global_average_pooling2d");
  CHECK(detail::snake_case("InputLayer") == "input_layer");
  CHECK(detail::snake_case("LSTM") == "lstm");
  CHECK(detail::snake_case("PReLU") == "p_re_lu");
  CHECK(detail::snake_case("LeakyReLU") == "leaky_re_lu");
  CHECK(detail::snake_case("my_scale") == "my_scale");
}

TEST_CASE("layers and parameters have names of their own") {
  CHECK(layer_names_of<cnn>() == std::vector<std::string>{"input_layer", "conv2d", "max_pooling2d", "conv2d_1", "max_pooling2d_1",
                                                          "flatten", "dense", "dense_1"});
  CHECK(parameter_names_of<normalised>() ==
        std::vector<std::string>{"conv2d/kernel", "batch_normalization/gamma", "batch_normalization/beta",
                                 "batch_normalization/moving_mean", "batch_normalization/moving_variance", "dense/kernel",
                                 "dense/bias"});
  using joined =
      sequential<input<3>, multiply<branch<dense<3, sigmoid>>, branch<>>, subtract<branch<dense<3>>, branch<>>,
                 maximum<branch<dense<3>>, branch<>>, average<branch<dense<3>>, branch<>>, multiply<branch<>, branch<>>>;
  CHECK(layer_names_of<joined>() == std::vector<std::string>{"input_layer", "dense", "multiply", "dense_1", "subtract", "dense_2",
                                                             "maximum", "dense_3", "average", "multiply_1"});
  using odd = sequential<input<3>, dense<3>, dense_1, dense<3>, two_affines>;
  CHECK(layer_names_of<odd>() == std::vector<std::string>{"input_layer", "dense", "dense_1", "dense_2", "two_affines"});
  CHECK(parameter_names_of<odd>() == std::vector<std::string>{"dense/kernel", "dense/bias", "dense_2/kernel", "dense_2/bias",
                                                              "two_affines/kernel", "two_affines/bias", "two_affines/kernel_1",
                                                              "two_affines/bias_1"});
}

namespace {
struct picture : input<6, 6, 1> {};
struct tags : input<3> {};
struct encoder : shared<dense<4>, relu> {};
struct seen : node<picture, conv2d<2, 3, relu>, flatten> {};
struct joined : node<concat<branch<seen, dense<3>, encoder>, branch<tags, encoder>>> {};
struct kind : node<joined, dense<2>> {};
}  // namespace

TEST_CASE("layers of a graph have the names of their nodes") {
  const std::string text = summary_of<graph<kind, seen>>({.line_length = 108});
  for (const char* part : {"│ picture (InputLayer)   ", "│ tags (InputLayer)   ", "│ seen/conv2d (Conv2D)   ",
                           "│ picture[0][0]   ", "│ seen/flatten[0][0]   ", "│ joined/dense_1 (Dense)   ",
                           "│ joined/dense[0][0], ", "│ joined/concatenate[0][0]   ", "│ kind/dense_2 (Dense)   "}) {
    INFO(part << " in\n" << text);
    CHECK(text.find(part) != std::string::npos);
  }
}
