// The reference CNN in dlib, on random images: its compile time beside ours, and samples per second of training steps.
// g++ -O3 -march=native -std=c++17 dlib_cnn.cpp -ldlib -lopenblas -llapack     (libdlib-dev, libopenblas-dev)
#include <dlib/dnn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

using image = dlib::matrix<unsigned char>;
template <long Filters, class Below>
using convolution = dlib::max_pool<2, 2, 2, 2, dlib::relu<dlib::con<Filters, 3, 3, 1, 1, Below>>>;
using cnn =
    dlib::loss_multiclass_log<dlib::fc<10, dlib::relu<dlib::fc<64, convolution<64, convolution<32, dlib::input<image>>>>>>>;

int main(int argc, char** argv) {
  constexpr int batch = 64, steps = 40;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 3;
  dlib::rand random;
  std::vector<image> x(batch, image(28, 28));
  std::vector<unsigned long> y(batch);
  for (image& one : x)
    for (unsigned char& pixel : one) pixel = random.get_random_8bit_number();
  for (unsigned long& label : y) label = random.get_random_8bit_number() % 10;

  cnn net;
  dlib::dnn_trainer<cnn, dlib::adam> trainer(net, dlib::adam(0, 0.9f, 0.999f));
  trainer.set_learning_rate(1e-3);
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int step = 0; step < steps; ++step) trainer.train_one_step(x, y);
    trainer.get_net();  // waits for the last step
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("{\"model\": \"cnn\", \"batch\": %d, \"samples_per_second\": %.0f}\n", batch, batch * steps / seconds);
  }
}
