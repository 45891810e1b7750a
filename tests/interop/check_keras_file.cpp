// needs: hdf5 libzip
// The example check_keras_file, for test_keras_files.py.
#define main example_main
#include "../examples/check_keras_file.cpp"
#undef main

int main(int argc, char** argv) { return example_main(argc, argv); }
