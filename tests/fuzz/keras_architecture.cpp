// needs: hdf5 libzip
// Architectures in files of Keras, converted to the text of a network.
#include <strata/interop/keras/network_text.hpp>

#include "fuzz.hpp"
using namespace strata;

namespace {
std::vector<std::string> seeds() {
  return {
      R"({"class_name":"Sequential","config":[{"class_name":"Conv2D","config":{"batch_input_shape":[null,9,8,2],"filters":4,"kernel_size":[3,2],
              "strides":[2,1],"padding":"same"}},{"class_name":"BatchNormalization","config":{"axis":[3],"momentum":0.9}},
              {"class_name":"MaxPooling2D","config":{"pool_size":[2,3],"strides":[1,2]}},{"class_name":"ZeroPadding2D","config":{
              "padding":[[0,1],[2,0]]}},{"class_name":"UpSampling2D","config":{"size":[1,2]}},{"class_name":"Conv2DTranspose","config":{
              "filters":3,"kernel_size":3,"strides":[1,2]}},{"class_name":"Reshape","config":{"target_shape":[-1,3]}},
              {"class_name":"GlobalMaxPooling1D","config":{}},{"class_name":"Dense","config":{"units":2,"activation":"relu",
              "kernel_regularizer":{"class_name":"L1L2","config":{"l1":0.1,"l2":0.2}},"kernel_initializer":{"class_name":
              "VarianceScaling","config":{"scale":2,"mode":"fan_in","distribution":"normal"}}}}]})",
      R"({"class_name":"Model","config":{"layers":[{"name":"a","class_name":"InputLayer","config":{"batch_input_shape":[null,6]},
              "inbound_nodes":[]},{"name":"b","class_name":"Dense","config":{"units":6},"inbound_nodes":[[["a",0,0,{}]]]},
              {"name":"c","class_name":"Add","config":{},"inbound_nodes":[[["b",0,0,{}],["a",0,0,{}]]]}],"output_layers":[["c",0,0]]}})",
      R"({"class_name":"Functional","config":{"layers":[{"name":"a","module":"keras.layers","class_name":"InputLayer","config":{
              "batch_shape":[null,7]},"inbound_nodes":[]},{"name":"e","class_name":"Embedding","config":{"input_dim":9,"output_dim":4},
              "inbound_nodes":[{"args":[{"class_name":"__keras_tensor__","config":{"keras_history":["a",0,0]}}],"kwargs":{"mask":null}}]},
              {"name":"d","class_name":"Dropout","config":{"rate":0.5,"noise_shape":[null,7,4]},"inbound_nodes":[{"args":[{"class_name":
              "__keras_tensor__","config":{"keras_history":["e",0,0]}}],"kwargs":{}}]}],"output_layers":["d",0,0]}})"};
}

std::vector<std::string> larger(int count) {
  std::string objects, layers;
  for (int i = 0; i < count; ++i) {
    objects += i > 0 ? ",{}" : "{}";
    layers += R"({"class_name":"Dense","config":{"units":2}},)";
  }
  const std::string network =
      R"("class_name":"Sequential","config":[{"class_name":"Dense","config":{"units":2,"batch_input_shape":[null,2]}}])";
  return {R"({"a":[)" + objects + "]," + network + '}',
          R"({"class_name":"Sequential","config":[{"class_name":"InputLayer","config":{"batch_input_shape":[null,2]}},)" +
              layers + R"({"class_name":"Dense","config":{"units":2}}]})"};
}

void read(std::string_view input) {
  const keras::network_text network = keras::network_text_of(keras::parse_architecture("input", input));
  fuzz::check(network.type.empty() != network.unknown.empty());
}

const fuzz::target keras_architecture{"keras_architecture", seeds, read, larger};
}  // namespace
