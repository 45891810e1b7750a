// resolve RESOLVER [ps=N] [chief] [evaluator]: prints the cluster that a resolver finds in the environment, one fact per line.
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <strata/resolvers/any_cluster.hpp>
#include <strata/resolvers/kubernetes.hpp>
#include <strata/resolvers/mpirun.hpp>
#include <strata/resolvers/slurm.hpp>
#include <strata/resolvers/tf_config.hpp>
#include <strata/resolvers/torchrun.hpp>
using namespace strata;
using namespace strata::core;

namespace {

cluster resolve(const std::string& name, const numbered_roles& roles) {
  if (name == "any_cluster") return any_cluster{.roles = roles}();
  if (name == "tf_config") return tf_config()();
  if (name == "torchrun") return torchrun{.roles = roles}();
  if (name == "mpirun") return mpirun{.roles = roles}();
  if (name == "slurm") return slurm{.roles = roles}();
  if (name == "kubernetes") return kubernetes{.roles = roles}();
  throw strata_error("there is no resolver '" + name + "'");
}

void print(const cluster& c) {
  std::cout << "task " << to_string(c.task()) << "\nsize " << c.size() << "\nis_chief " << c.is_chief() << '\n';
  if (c.trains()) std::cout << "rank " << c.rank() << '\n';
  if (c.local_rank()) std::cout << "local_rank " << *c.local_rank() << '\n';
  if (c.local_size()) std::cout << "local_size " << *c.local_size() << '\n';
  if (!c.is_alone()) std::cout << "coordinator " << to_string(c.coordinator()) << '\n';
  std::cout << "run_id " << c.run_id() << "\ngeneration " << c.generation() << "\nmembers " << to_string(c.spec()) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  try {
    numbered_roles roles;
    for (int i = 2; i < argc; ++i) {
      const std::string option = argv[i];
      if (option == "chief") roles.chief = true;
      if (option == "evaluator") roles.evaluator = true;
      if (option.starts_with("ps=")) roles.ps = std::stoi(option.substr(3));
    }
    print(resolve(argc > 1 ? argv[1] : "", roles));
  } catch (const strata_error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
