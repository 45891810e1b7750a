// What data sets are made of.
// needs: libpng libjpeg
#include <strata/data/image/image_dataset_from_directory.hpp>

// case: data_image_dataset_channels
// error: image_dataset_from_directory<shape.height, width, channels.>: channels are 1 .grey., 3 .RGB. or 4 .RGBA.
#ifdef TWIN
constexpr int channels = 3;
#else
constexpr int channels = 2;
#endif
void open() { strata::data::image_dataset_from_directory<strata::shape{8, 8, channels}>("folder"); }
