// The other half of test_images.py: prints the pixels of image files.
// needs: libpng libjpeg
#include <cstdio>
#include <cstdlib>
#include <strata/data/image/image_file.hpp>

using namespace strata;

/// images CHANNELS FILE...: prints a line for each file, "height width channels pixels" or "error REASON".
int main(int argc, char** argv) {
  data::image image;
  for (int i = 2; i < argc; ++i) {
    try {
      data::read_image(argv[i], std::atoi(argv[1]), image);
      std::printf("%d %d %d ", image.height, image.width, image.channels);
      for (const std::uint8_t v : image.values) std::printf("%02x", v);
      std::printf("\n");
    } catch (const strata_error& e) {
      std::printf("error %s\n", e.what());
    }
  }
  return 0;
}
