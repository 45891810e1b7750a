// needs: hdf5 libzip
// The example keras_to_strata, for test_keras_files.py.
#define main example_main
#include "../examples/keras_to_strata.cpp"
#undef main

int main(int argc, char** argv) { return example_main(argc, argv); }
