// A training that reads a data set from files and writes files of all kinds into a folder, for systems that may lack features of
// Linux.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <strata/callbacks/csv_logger.hpp>
#include <strata/callbacks/early_stopping.hpp>
#include <strata/callbacks/model_checkpoint.hpp>
#include <strata/callbacks/stop_on_interrupt.hpp>
#include <strata/callbacks/tensor_board.hpp>
#include <strata/data.hpp>
#include <strata/data/core/position_file.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <strata/train/sidecar_evaluator.hpp>
#include <strata/train/weights_file.hpp>
#include <string>
using namespace strata;
namespace fs = std::filesystem;

using net = sequential<input<2>, dense<8, relu>, dense<2, softmax>>;

auto new_trainer() { return trainer{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, seed(1)}; }

int main(int, char** arguments) {
  const fs::path folder = arguments[1];
  {
    std::ofstream table(folder / "table.csv");
    table << "a,b,label\n";
    for (int i = 0; i < 256; ++i) table << 0.01 * (i % 17) << ',' << -0.5e-1 * (i % 13) << ',' << i % 2 << '\n';
  }
  auto table = data::csv<2>(folder / "table.csv", {.label = "label"});
  auto samples = data::from_tensor_slices(table.x, table.y) | data::cache(folder / "cache") | data::shuffle(64);
  auto batches = samples | data::batch<32> | data::prefetch(2);

  auto model = new_trainer();
  std::cout << summary(model);
  model.fit(batches, epochs(3), validation(batches), backup_and_restore{folder / "backup"}, csv_logger{folder / "log.csv"},
            model_checkpoint{(folder / "{epoch}.safetensors").string()}, tensor_board{folder / "board"}, early_stopping{},
            stop_on_interrupt{});
  model.save_weights(folder / "weights.safetensors");
  data::save_position(batches, folder / "position");
  data::save_npy(folder / "x.npy", table.x);

  auto again = new_trainer();
  again.load_weights(folder / "weights.safetensors");
  const auto set = data::mapped_npy<float, shape{2}>(folder / "x.npy");
  std::cout << set.size() << ' ' << again.evaluate(batches) << '\n';
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename().string().find("tfevents") == std::string::npos)
      std::cout << fs::relative(entry.path(), folder).string() << '\n';
}
