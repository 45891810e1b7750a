// The resolvers of torchrun, mpirun, Slurm, Kubernetes and TPU slices: environments as these programs set them, wrong ones, and
// ones that several launchers have set.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <strata/base/random.hpp>
#include <strata/resolvers/any_cluster.hpp>
#include <strata/resolvers/kubernetes.hpp>
#include <strata/resolvers/mpirun.hpp>
#include <strata/resolvers/slurm.hpp>
#include <strata/resolvers/torchrun.hpp>
#include <strata/resolvers/tpu_workers.hpp>

#include "error_of.hpp"

using namespace strata;
using namespace strata::core;
using strata::test::error_of;

namespace {

using settings = std::map<std::string, std::string>;

environment_reader reader(const settings& values) {
  return [=](const std::string& name) -> std::optional<std::string> {
    const auto at = values.find(name);
    return at == values.end() ? std::nullopt : std::optional(at->second);
  };
}
settings with(settings values, const settings& changes) {
  for (const auto& [name, value] : changes) values[name] = value;
  return values;
}
settings without(settings values, const std::string& name) {
  values.erase(name);
  return values;
}

template <class Resolver>
cluster resolved(Resolver resolver, const settings& values) {
  resolver.environment = reader(values);
  return resolver();
}
template <class Resolver>
std::string mistake(const Resolver& resolver, const settings& values) {
  return error_of([&] { resolved(resolver, values); });
}

const settings of_torchrun = {{"RANK", "2"},        {"WORLD_SIZE", "4"},      {"LOCAL_RANK", "0"},
                              {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}, {"LOCAL_WORLD_SIZE", "2"}};
const settings of_open_mpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                              {"OMPI_COMM_WORLD_SIZE", "4"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                              {"PMIX_RANK", "1"},
                              {"PMIX_NAMESPACE", "1092681729"}};
// The environment of the third task under srun -N 3 -n 5 in a batch job.
const settings of_slurm = {{"SLURM_JOB_ID", "200505"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_NTASKS", "5"},
                           {"SLURM_PROCID", "2"},
                           {"SLURM_LOCALID", "0"},
                           {"SLURM_JOB_NODELIST", "node[01-04]"},
                           {"SLURM_STEP_NODELIST", "node[01-02,04]"},
                           {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                           {"SLURM_TASKS_PER_NODE", "2(x4)"}};
const settings of_kubernetes = {{"HOSTNAME", "training-3"}, {"STRATA_SERVICE", "peers"}, {"STRATA_REPLICAS", "4"}};

bool is_safe_port(int port) { return port >= 1024 && port < 32'768; }

}  // namespace

TEST_CASE("numbered roles: workers first, then parameter servers, last the evaluator") {
  const numbered_roles roles{.chief = true, .ps = 2, .evaluator = true};
  const char* expected[] = {"chief 0", "worker 0", "worker 1", "ps 0", "ps 1", "evaluator 0"};
  for (int number = 0; number < 6; ++number) {
    const cluster c =
        resolved(torchrun{.roles = roles}, with(of_torchrun, {{"RANK", std::to_string(number)}, {"WORLD_SIZE", "6"}}));
    CHECK(to_string(c.task()) == expected[number]);
    CHECK(c.size() == 3);
    CHECK(to_string(c.spec()) == "chief a:29500, worker ? ?, ps ? ?, evaluator ?");
  }
  CHECK(mistake(torchrun{.roles = {.ps = 4}}, of_torchrun) ==
        "torchrun: of 4 processes, 4 parameter servers leave no process that trains");
  CHECK(mistake(torchrun{.roles = {.ps = 3, .evaluator = true}}, of_torchrun) ==
        "torchrun: of 4 processes, 3 parameter servers and the evaluator leave no process that trains");
  CHECK(mistake(torchrun{.roles = {.ps = -1}}, of_torchrun) == "torchrun: there cannot be -1 parameter servers");
}

TEST_CASE("tpu_workers: the hosts of a slice") {
  const settings of_slice = {{"TPU_WORKER_HOSTNAMES", "tpu-0.tpu,tpu-1.tpu,tpu-2.tpu"}, {"TPU_WORKER_ID", "2"}};
  const cluster c = resolved(tpu_workers{}, of_slice);
  CHECK((c.rank() == 2 && c.size() == 3));
  CHECK(to_string(c.spec()) == "worker tpu-0.tpu:8476 tpu-1.tpu:8476 tpu-2.tpu:8476");
  CHECK(to_string(c.coordinator()) == "tpu-0.tpu:8476");
  CHECK(to_string(resolved(tpu_workers{.port = 4000}, with(of_slice, {{"TPU_WORKER_HOSTNAMES", "a"}, {"TPU_WORKER_ID", "0"}}))
                      .spec()) == "worker a:4000");
  CHECK(mistake(tpu_workers{}, without(of_slice, "TPU_WORKER_HOSTNAMES")) ==
        "tpu_workers: TPU_WORKER_HOSTNAMES is not set: it lists the hosts of the slice, such as a,b");
  CHECK(mistake(tpu_workers{}, without(of_slice, "TPU_WORKER_ID")) ==
        "tpu_workers: TPU_WORKER_ID is not set: it is the number of this host");
  CHECK(mistake(tpu_workers{}, with(of_slice, {{"TPU_WORKER_HOSTNAMES", "a,,b"}})) ==
        "tpu_workers: TPU_WORKER_HOSTNAMES is 'a,,b', in which a name is empty");
  CHECK(error_of([&] { resolved(tpu_workers{}, with(of_slice, {{"TPU_WORKER_ID", "3"}})); }).starts_with("tpu_workers: "));
}

TEST_CASE("torchrun: the coordinator is known, the others at the rendezvous") {
  const cluster c = resolved(torchrun{}, of_torchrun);
  CHECK((c.rank() == 2 && c.size() == 4 && !c.is_chief() && c.generation() == 0));
  CHECK((c.local_rank() == 0 && c.local_size() == 2));
  CHECK(c.coordinator() == endpoint{"a", 29500});
  CHECK((c.address({role::worker, 0}) == c.coordinator() && !c.address(c.task()) && !c.knows_addresses()));
  CHECK(!resolved(torchrun{}, without(of_torchrun, "LOCAL_RANK")).local_rank());
}

TEST_CASE("torchrun: its own store has the port, a restart is a generation") {
  const settings agent =
      with(of_torchrun,
           {{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"TORCHELASTIC_RUN_ID", "7f"}, {"TORCHELASTIC_RESTART_COUNT", "2"}});
  const cluster c = resolved(torchrun{}, agent);
  CHECK(c.coordinator().port != 29500);
  CHECK(is_safe_port(c.coordinator().port));
  CHECK(c.generation() == 2);
  CHECK(c.coordinator() == resolved(torchrun{}, with(agent, {{"RANK", "0"}})).coordinator());
  CHECK(c.coordinator() != resolved(torchrun{}, with(agent, {{"TORCHELASTIC_RUN_ID", "80"}})).coordinator());
  CHECK(resolved(torchrun{.port = 20'000}, agent).coordinator().port == 20'000);
  CHECK(resolved(torchrun{}, with(agent, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})).coordinator().port == 29500);
  CHECK(c.run_id() != resolved(torchrun{}, with(agent, {{"TORCHELASTIC_RUN_ID", "80"}})).run_id());
}

TEST_CASE("torchrun: a variable that is missing or wrong is named") {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    const std::string expected =
        std::string("torchrun: ") + name +
        " is not set: start the program with torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT";
    CHECK(mistake(torchrun{}, without(of_torchrun, name)) == expected);
    CHECK(mistake(torchrun{}, with(of_torchrun, {{name, ""}})) == expected);
  }
  CHECK(mistake(torchrun{}, with(of_torchrun, {{"RANK", "4"}})) == "torchrun: RANK is '4', which is not a number from 0 to 3");
  CHECK(mistake(torchrun{}, with(of_torchrun, {{"RANK", "-1"}})) == "torchrun: RANK is '-1', which is not a number from 0 to 3");
  CHECK(mistake(torchrun{}, with(of_torchrun, {{"WORLD_SIZE", "4x"}})) ==
        "torchrun: WORLD_SIZE is '4x', which is not a number from 1 to 65536");
  CHECK(mistake(torchrun{}, with(of_torchrun, {{"WORLD_SIZE", "0"}})).find("is '0'") != std::string::npos);
  CHECK(mistake(torchrun{}, with(of_torchrun, {{"MASTER_PORT", "65536"}})) ==
        "torchrun: MASTER_PORT is '65536', which is not a number from 1 to 65535");
  CHECK(mistake(torchrun{}, with(of_torchrun, {{"LOCAL_RANK", "9"}})) ==
        "torchrun: LOCAL_RANK is '9', which is not a number from 0 to 3");
}

TEST_CASE("mpirun: Open MPI on one host needs no address") {
  const cluster c = resolved(mpirun{}, of_open_mpi);
  CHECK((c.rank() == 1 && c.size() == 4 && c.local_rank() == 1 && c.local_size() == 4));
  CHECK(c.coordinator().host == "127.0.0.1");
  CHECK(is_safe_port(c.coordinator().port));
  CHECK(c.run_id() == "1092681729");
  CHECK(c.coordinator() ==
        resolved(mpirun{}, with(of_open_mpi, {{"OMPI_COMM_WORLD_RANK", "3"}, {"PMIX_RANK", "3"}})).coordinator());
}

TEST_CASE("mpirun: several hosts need one") {
  const settings spread = with(of_open_mpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  CHECK(mistake(mpirun{}, spread) ==
        "mpirun: the address of process 0 is unknown: set STRATA_COORDINATOR to its host:port, for example with mpirun -x");
  CHECK(resolved(mpirun{}, with(spread, {{"STRATA_COORDINATOR", "n1:2222"}})).coordinator() == endpoint{"n1", 2222});
  CHECK(resolved(mpirun{.coordinator = "n2:2222"}, with(spread, {{"STRATA_COORDINATOR", "n1:2222"}})).coordinator().host == "n2");
  CHECK(mistake(mpirun{}, with(spread, {{"STRATA_COORDINATOR", "n1"}})) ==
        "mpirun: STRATA_COORDINATOR: 'n1' has no port: write host:port");
}

TEST_CASE("mpirun: MPICH and PMIx under Slurm") {
  const settings mpich = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
  CHECK(mistake(mpirun{}, mpich).find("set STRATA_COORDINATOR") != std::string::npos);
  const cluster c = resolved(mpirun{}, with(mpich, {{"STRATA_COORDINATOR", "n1:2222"}}));
  CHECK((c.rank() == 1 && c.size() == 2 && c.local_rank() == 1 && c.local_size() == 2));
  CHECK(resolved(mpirun{}, {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}).is_alone());

  const settings pmix = {{"PMIX_RANK", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "1"}, {"STRATA_COORDINATOR", "n1:2222"}};
  CHECK(resolved(mpirun{}, pmix).rank() == 3);
  CHECK(resolved(mpirun{}, pmix).local_rank() == 1);
  CHECK(mistake(mpirun{}, without(pmix, "SLURM_NTASKS")) ==
        "mpirun: SLURM_NTASKS is not set: mpirun sets it together with PMIX_RANK");
  CHECK(mistake(mpirun{}, {}) ==
        "mpirun: none of OMPI_COMM_WORLD_RANK, PMI_RANK and PMIX_RANK is set: start the program with mpirun");
  CHECK(mistake(mpirun{}, without(of_open_mpi, "OMPI_COMM_WORLD_SIZE")) ==
        "mpirun: OMPI_COMM_WORLD_SIZE is not set: mpirun sets it together with OMPI_COMM_WORLD_RANK");
}

TEST_CASE("slurm: host lists are expanded") {
  using list = std::vector<std::string>;
  const auto hosts = detail::expand_hosts;
  CHECK(hosts("node1") == list{"node1"});
  CHECK(hosts("node[01-03,07],gpu-[1-2]") == list{"node01", "node02", "node03", "node07", "gpu-1", "gpu-2"});
  CHECK(hosts("n[9-11]") == list{"n9", "n10", "n11"});
  CHECK(hosts("n[099-101]") == list{"n099", "n100", "n101"});
  CHECK(hosts("n[1-2]-ib.cluster,b") == list{"n1-ib.cluster", "n2-ib.cluster", "b"});
  CHECK(hosts("r[0-1]n[1-2]") == list{"r0n1", "r0n2", "r1n1", "r1n2"});
  CHECK(hosts("b,a,b[5,2]") == list{"b", "a", "b5", "b2"});
}

TEST_CASE("slurm: every list of hosts survives compression and expansion") {
  const philox random{3};
  for (std::uint64_t i = 0; i < 500; ++i) {
    std::vector<std::string> expected;
    std::string list;
    for (std::uint64_t group = 0; group <= random(i)[0] % 4; ++group) {
      const auto r = random(i, group + 1);
      const int width = 1 + int(r[0] % 4), ranges = 1 + int(r[1] % 3);
      const std::string prefix = std::string(1, char('a' + group)) + (r[2] % 2 ? "-" : "");
      list += (group > 0 ? "," : "") + prefix + '[';
      int next = 0;
      for (int range = 0; range < ranges; ++range) {
        const int first = next + int(r[3] >> (8 * range) & 15), last = first + int(r[2] >> (8 * range) & 7);
        const auto padded = [&](int n) { return detail::formatted("%0*d", width, n); };
        list += (range > 0 ? "," : "") + padded(first) + (last > first ? '-' + padded(last) : "");
        for (int n = first; n <= last; ++n) expected.push_back(prefix + padded(n));
        next = last + 2;
      }
      list += ']';
    }
    CAPTURE(list);
    CHECK(detail::expand_hosts(list) == expected);
  }
}

TEST_CASE("slurm: damaged host lists and counts are refused") {
  const auto why = [](const std::string& list) { return error_of([&] { detail::expand_hosts(list); }); };
  CHECK(why("n[1-2") == "the host list 'n[1-2': a '[' has no ']'");
  CHECK(why("n1]") == "the host list 'n1]': a ']' has no '['");
  CHECK(why("n[2-1]") == "the host list 'n[2-1]': '2-1' is not a range of numbers such as 01-03");
  CHECK(why("a,,b") == "the host list 'a,,b': a name is empty");
  CHECK(why("a,") == "the host list 'a,': a name is empty");
  CHECK(why("") == "the host list '': a name is empty");
  CHECK(why("n[0-9999999]") == "the host list 'n[0-9999999]': '0-9999999' has more than 65536 hosts");
  CHECK(why("n[1-40000,1-40000]") ==
        "the host list 'n[1-40000,1-40000]': '1-40000' has more than 65536 hosts with those before it");
  const std::string zeros(300, '0'), of_the_list = "the host list 'n[" + zeros + "]': ";
  CHECK(why("n[" + zeros + "]") == of_the_list + "a number has 300 digits");
  const std::string long_name(256, 'n');
  CHECK(why(long_name) == "the host list '" + long_name + "': a name has more than 255 characters");
  CHECK(why(long_name.substr(4) + "[1-9][10-99]") == "no error");
  CHECK(why("n[1-9]" + long_name) == "the host list 'n[1-9]" + long_name + "': a name has more than 255 characters");
  CHECK(why("n[0-999]x[0-999]") == "the host list 'n[0-999]x[0-999]': it has more than 65536 hosts");
  for (const char* ranges : {"", "-", "1-", "-1", "a", "1,", ",1", "1--2", "1-2-3", "[1]", "1 "})
    CHECK(why(std::string("n[") + ranges + ']') != "no error");

  CHECK(detail::expand_counts("2(x3),1") == std::vector{2, 2, 2, 1});
  CHECK(detail::expand_counts("16") == std::vector{16});
  for (const char* counts :
       {"", ",", "2,", "2(x3", "2(3)", "2(x)", "2(x0)", "(x3)", "two", "2(x3)1", "-1", "2(x99999)", "1(x-2)"})
    CHECK(error_of([&] { detail::expand_counts(counts); }).find("the task counts '" + std::string(counts) + "' are") == 0);
}

TEST_CASE("slurm: with tasks in blocks, all addresses are known") {
  const cluster c = resolved(slurm{}, of_slurm);
  CHECK((c.rank() == 2 && c.size() == 5 && c.local_rank() == 0 && c.local_size() == 2 && c.knows_addresses()));
  const int port = c.coordinator().port;
  CHECK(is_safe_port(port));
  const char* hosts[] = {"node01", "node01", "node02", "node02", "node04"};
  for (int i = 0; i < 5; ++i) CHECK(c.address({role::worker, i}) == endpoint{hosts[i], static_cast<std::uint16_t>(port + i % 2)});
  CHECK(c.run_id() == "200505.0");
  CHECK(resolved(slurm{.base_port = 4'000}, of_slurm).coordinator() == endpoint{"node01", 4'000});
}

TEST_CASE("slurm: parameter servers are the last tasks") {
  const cluster c = resolved(slurm{.roles = {.ps = 2}, .base_port = 4000}, with(of_slurm, {{"SLURM_PROCID", "4"}}));
  CHECK(to_string(c.task()) == "ps 1");
  CHECK(to_string(c.spec()) == "worker node01:4000 node01:4001 node02:4000, ps node02:4001 node04:4000");
}

TEST_CASE("slurm: other distributions know the coordinator alone") {
  for (const char* distribution : {"cyclic", "cyclic:block", "plane=2"}) {
    const cluster c = resolved(slurm{}, with(of_slurm, {{"SLURM_DISTRIBUTION", distribution}}));
    CHECK((!c.knows_addresses() && c.coordinator().host == "node01" && !c.address({role::worker, 1})));
  }
  CHECK(resolved(slurm{}, with(of_slurm, {{"SLURM_DISTRIBUTION", "block:cyclic"}})).knows_addresses());
  const settings arbitrary = with(of_slurm, {{"SLURM_DISTRIBUTION", "arbitrary"}});
  CHECK(mistake(slurm{}, arbitrary) ==
        "slurm: the distribution of tasks is arbitrary: set STRATA_COORDINATOR to the host:port where task 0 is to listen");
  CHECK(resolved(slurm{}, with(arbitrary, {{"STRATA_COORDINATOR", "node09:1"}})).coordinator() == endpoint{"node09", 1});
}

TEST_CASE("slurm: counts come from the step, the job or the option, and must fit") {
  const settings of_job = without(of_slurm, "SLURM_STEP_TASKS_PER_NODE");
  CHECK(!resolved(slurm{}, of_job).knows_addresses());  // "2(x4)" counts the tasks of four nodes: not this step's
  CHECK(resolved(slurm{}, with(of_job, {{"SLURM_TASKS_PER_NODE", "2,2,1"}})).knows_addresses());
  settings each = without(without(with(of_slurm, {{"SLURM_NTASKS", "6"}}), "SLURM_STEP_TASKS_PER_NODE"), "SLURM_TASKS_PER_NODE");
  CHECK(!resolved(slurm{}, each).knows_addresses());
  each["SLURM_NTASKS_PER_NODE"] = "2";
  CHECK(resolved(slurm{}, each).knows_addresses());
  CHECK(resolved(slurm{}, with(of_slurm, {{"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "5"}})).size() == 5);
  const settings one_host = {{"SLURM_NTASKS", "3"}, {"SLURM_PROCID", "1"}, {"SLURM_STEP_ID", "0"}, {"SLURM_JOB_NODELIST", "vm"}};
  CHECK(resolved(slurm{.base_port = 4000}, one_host).address({role::worker, 2}) == endpoint{"vm", 4002});
  CHECK(mistake(slurm{}, with(of_slurm, {{"SLURM_STEP_TASKS_PER_NODE", "2(x"}})) ==
        "slurm: the task counts '2(x' are not a list such as 2(x3),1");
  CHECK(mistake(slurm{.base_port = 4000}, with(of_slurm, {{"SLURM_STEP_TASKS_PER_NODE", "2000000000(x3)"}})) ==
        "slurm: 2000000000 tasks of one host need ports from 4000 on, which end at 65535");
  CHECK(mistake(slurm{.base_port = 65'535}, of_slurm) ==
        "slurm: 2 tasks of one host need ports from 65535 on, which end at 65535");
}

TEST_CASE("slurm: jobs that follow one another have ports of their own") {
  std::set<int> ports;
  for (int job = 4'000'000; job < 4'000'300; ++job) {
    const int port = resolved(slurm{}, with(of_slurm, {{"SLURM_JOB_ID", std::to_string(job)}})).coordinator().port;
    CHECK(is_safe_port(port + 63));
    for (int i = 0; i < 64; ++i) CHECK(ports.insert(port + i).second);
  }
  CHECK(resolved(slurm{}, with(of_slurm, {{"SLURM_STEP_ID", "1"}})).coordinator() != resolved(slurm{}, of_slurm).coordinator());
  CHECK(resolved(slurm{}, with(of_slurm, {{"SLURM_RESTART_COUNT", "1"}})).generation() == 1);
}

TEST_CASE("slurm: started in the wrong way") {
  CHECK(mistake(slurm{}, {}) == "slurm: SLURM_NTASKS is not set: start the program with srun");
  CHECK(mistake(slurm{}, without(of_slurm, "SLURM_PROCID")) == "slurm: SLURM_PROCID is not set: start the program with srun");
  CHECK(mistake(slurm{}, with(of_slurm, {{"SLURM_PROCID", "5"}})) ==
        "slurm: SLURM_PROCID is '5', which is not a number from 0 to 4");
  CHECK(mistake(slurm{}, without(of_slurm, "SLURM_STEP_ID")) ==
        "slurm: SLURM_STEP_ID is not set, so this is the batch script itself: start the program in it with srun");
  CHECK(mistake(slurm{}, with(of_slurm, {{"OMPI_COMM_WORLD_RANK", "3"}})) ==
        "slurm: this process is number 2 of 5 by SLURM_PROCID, but number 3 by OMPI_COMM_WORLD_RANK: use mpirun(), or unset the "
        "variable that is wrong");
  CHECK(mistake(slurm{}, without(without(of_slurm, "SLURM_STEP_NODELIST"), "SLURM_JOB_NODELIST")) ==
        "slurm: SLURM_STEP_NODELIST is not set: start the program with srun");
}

TEST_CASE("kubernetes: pods are found by name") {
  const cluster c = resolved(kubernetes{}, of_kubernetes);
  CHECK((c.rank() == 3 && c.size() == 4 && c.knows_addresses() && c.local_rank() == 0 && c.local_size() == 1));
  CHECK(c.coordinator() == endpoint{"training-0.peers", 2222});
  const cluster full = resolved(kubernetes{.service = "ring", .replicas = 12, .port = 80, .pod_namespace = "ml"},
                                with(of_kubernetes, {{"HOSTNAME", "my-set-11"}}));
  CHECK(full.address(full.task()) == endpoint{"my-set-11.ring.ml.svc", 80});
  const settings by_environment = with(of_kubernetes, {{"POD_NAMESPACE", "ml"}, {"STRATA_PORT", "3333"}});
  CHECK(resolved(kubernetes{}, by_environment).coordinator() == endpoint{"training-0.peers.ml.svc", 3333});
  const settings domain = with(of_kubernetes, {{"HOSTNAME", "training-3.peers.ml.svc.cluster.local"}});
  CHECK(resolved(kubernetes{}, domain).rank() == 3);
  CHECK(resolved(kubernetes{.roles = {.chief = true, .ps = 1}}, of_kubernetes).task() == cluster_task{role::ps, 0});
}

TEST_CASE("kubernetes: what is missing or wrong is named") {
  CHECK(mistake(kubernetes{}, without(of_kubernetes, "STRATA_REPLICAS")) ==
        "kubernetes: STRATA_REPLICAS is not set: set it to the number of pods, 'replicas' of the StatefulSet or 'completions' of "
        "the Job");
  CHECK(mistake(kubernetes{}, without(of_kubernetes, "STRATA_SERVICE")) ==
        "kubernetes: STRATA_SERVICE is not set: set it to the name of the headless Service of the pods");
  CHECK(mistake(kubernetes{.replicas = 3}, of_kubernetes) ==
        "kubernetes: this pod is training-3, but there are 3 from training-0 on: is STRATA_REPLICAS that of the StatefulSet or "
        "Job, and "
        "STRATA_FIRST_ORDINAL spec.ordinals.start of the StatefulSet?");
  CHECK(mistake(kubernetes{.replicas = -3}, of_kubernetes) == "kubernetes: replicas is -3, but a cluster has at least one pod");
  for (const char* name : {"", "training", "training-", "-3", "training-3a", "training-6b5f-x", "training-99999999999"})
    CHECK(mistake(kubernetes{}, with(of_kubernetes, {{"HOSTNAME", name}})) ==
          "kubernetes: HOSTNAME is '" + std::string(name) +
              "', which does not end in -N: the pod must belong to a StatefulSet, or to a Job with completionMode Indexed");
}

TEST_CASE("kubernetes: ordinals of a StatefulSet begin where it says") {
  const settings from_three = with(of_kubernetes, {{"STRATA_FIRST_ORDINAL", "3"}});
  const cluster first = resolved(kubernetes{}, from_three);
  CHECK((first.rank() == 0 && first.is_chief()));
  CHECK(to_string(first.spec()) ==
        "worker training-3.peers:2222 training-4.peers:2222 training-5.peers:2222 training-6.peers:2222");
  CHECK(resolved(kubernetes{.first_ordinal = 1}, from_three).rank() == 2);
  const auto mistake_of = [&](const char* pod) { return mistake(kubernetes{}, with(from_three, {{"HOSTNAME", pod}})); };
  for (const std::string number : {"2", "7"})
    CHECK(mistake_of(("training-" + number).c_str()) ==
          "kubernetes: this pod is training-" + number +
              ", but there are 4 from training-3 on: is STRATA_REPLICAS that of the StatefulSet or Job, and "
              "STRATA_FIRST_ORDINAL spec.ordinals.start of the StatefulSet?");
  CHECK(mistake(kubernetes{.first_ordinal = -1}, of_kubernetes) ==
        "kubernetes: first_ordinal is -1, but ordinals begin with 0 or more");
}

TEST_CASE("kubernetes: the index of a Job counts, and HOSTNAME may be that of a node") {
  CHECK(resolved(kubernetes{}, with(of_kubernetes, {{"JOB_COMPLETION_INDEX", "3"}})).rank() == 3);
  const settings node = with(of_kubernetes, {{"HOSTNAME", "ip-10-0-3-7"}, {"JOB_COMPLETION_INDEX", "1"}});
  const std::string why = "', as with hostNetwork, where it is the name of the node: set STRATA_JOB to the name of the Job";
  CHECK(mistake(kubernetes{}, node) == "kubernetes: JOB_COMPLETION_INDEX is 1, but HOSTNAME is 'ip-10-0-3-7" + why);
  CHECK(mistake(kubernetes{}, with(node, {{"HOSTNAME", "node"}})) ==
        "kubernetes: JOB_COMPLETION_INDEX is 1, but HOSTNAME is 'node" + why);
  const cluster c = resolved(kubernetes{}, with(node, {{"STRATA_JOB", "train"}}));
  CHECK((c.rank() == 1 && c.coordinator() == endpoint{"train-0.peers", 2222}));
  CHECK(resolved(kubernetes{.job = "ring"}, node).coordinator() == endpoint{"ring-0.peers", 2222});
  CHECK(mistake(kubernetes{.job = "train"}, without(node, "JOB_COMPLETION_INDEX")) ==
        "kubernetes: HOSTNAME is 'ip-10-0-3-7', but STRATA_JOB is train: set HOSTNAME to the name of the pod, train-N");
}

TEST_CASE("all resolvers: another launcher that has numbered the process itself is not overlooked") {
  const std::string end = ", or unset the variable that is wrong";
  const settings two_launchers = with(of_slurm, of_torchrun);  // srun torchrun: number 2 of 4 in task 2 of 5
  CHECK(resolved(torchrun{}, with(two_launchers, {{"RANK", "3"}})).rank() == 3);
  CHECK(mistake(slurm{}, two_launchers) ==
        "slurm: this process is number 2 of 5 by SLURM_PROCID, but number 2 of 4 by RANK: use torchrun()" + end);
  const settings mpich = {{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"STRATA_COORDINATOR", "n1:2222"}};
  CHECK(mistake(mpirun{}, with(mpich, of_torchrun)) ==
        "mpirun: this process is number 1 of 4 by PMI_RANK, but number 2 of 4 by RANK: use torchrun()" + end);
  CHECK(
      mistake(mpirun{}, with(with(mpich, {{"PMI_RANK", "0"}}), of_open_mpi)) ==
      "mpirun: this process is number 1 of 4 by OMPI_COMM_WORLD_RANK, but number 0 of 4 by PMI_RANK: unset the variable that is "
      "wrong");
  CHECK(mistake(kubernetes{}, with(of_kubernetes, of_torchrun)) ==
        "kubernetes: this process is number 3 of 4 by HOSTNAME, but number 2 of 4 by RANK: use torchrun()" + end);
  CHECK(resolved(slurm{}, with(of_slurm, {{"RANK", "2"}, {"WORLD_SIZE", "5"}, {"PMI_RANK", "2"}})).rank() == 2);
  CHECK(resolved(slurm{}, with(of_slurm, {{"RANK", "captain"}})).rank() == 2);
}

TEST_CASE("all resolvers: what the user has written is compared with a launcher that counts as many processes") {
  const auto written = [&](int members, int index) {
    std::string list = "\"a:1\"";
    for (int i = 1; i < members; ++i) list += ", \"a:" + std::to_string(i + 1) + '"';
    return settings{{"TF_CONFIG", R"({"cluster": {"worker": [)" + list + R"(]}, "task": {"type": "worker", "index": )" +
                                      std::to_string(index) + "}}"}};
  };
  CHECK(resolved(tf_config{}, with(of_slurm, written(5, 2))).rank() == 2);
  CHECK(resolved(tf_config{}, with(of_slurm, written(4, 0))).rank() == 0);  // examples/launch inside a task
  const std::string why =
      "this process is number 0 of 5 by TF_CONFIG, but number 2 of 5 by SLURM_PROCID: use slurm(), or unset the "
      "variable that is wrong";
  CHECK(mistake(tf_config{}, with(of_slurm, written(5, 0))) == "TF_CONFIG: " + why);  // the same in all tasks
  CHECK(mistake(any_cluster{}, with(of_slurm, written(5, 0))) == "TF_CONFIG: " + why);
  CHECK(resolved(tf_config{}, without(with(of_slurm, written(5, 0)), "SLURM_STEP_ID")).rank() == 0);  // in the batch script
  const settings ranks = with(of_torchrun, {{"WORLD_SIZE", "5"}, {"RANK", "0"}});
  CHECK(mistake(torchrun{}, with(of_slurm, ranks)) ==
        "torchrun: this process is number 0 of 5 by RANK, but number 2 of 5 by SLURM_PROCID: use slurm(), or unset the variable "
        "that "
        "is wrong");
  // torchrun numbers hosts in the order in which they arrive.
  CHECK(resolved(torchrun{}, with(with(of_slurm, ranks), {{"TORCHELASTIC_RUN_ID", "7f"}})).rank() == 0);
  CHECK(
      mistake(mpirun{}, {{"PMIX_RANK", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "1"}, {"SLURM_STEP_ID", "0"}}) ==
      "mpirun: this process is number 3 of 4 by PMIX_RANK, but number 1 of 4 by SLURM_PROCID: use slurm(), or unset the variable "
      "that is wrong");
}

TEST_CASE("any_cluster: the launcher that has started the process") {
  const std::string of_launch = R"({"cluster": {"chief": ["c:1"], "worker": ["a:1"], "ps": ["p:1"]}, "task": )";
  const auto task = [&](const char* type) {
    return settings{{"TF_CONFIG", of_launch + R"({"type": ")" + type + R"(", "index": 0}})"}};
  };
  const settings ranks = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "c"}, {"MASTER_PORT", "1"}};
  CHECK(to_string(resolved(any_cluster{}, with(ranks, task("worker"))).spec()) == "chief c:1, worker a:1, ps p:1");
  CHECK(to_string(resolved(any_cluster{}, task("ps")).task()) == "ps 0");
  CHECK(resolved(any_cluster{}, of_torchrun).coordinator() == endpoint{"a", 29500});
  CHECK(resolved(any_cluster{}, with(of_slurm, with(of_torchrun, {{"TORCHELASTIC_RUN_ID", "7f"}}))).size() == 4);
  CHECK(resolved(any_cluster{}, of_open_mpi).run_id() == "1092681729");
  CHECK(resolved(any_cluster{}, with(of_slurm, of_open_mpi)).size() == 4);  // daemons of mpirun are tasks of Slurm
  CHECK(resolved(any_cluster{}, of_slurm).run_id() == "200505.0");
  CHECK(resolved(any_cluster{}, with(of_slurm, {{"PMI_RANK", "2"}, {"PMI_SIZE", "5"}})).knows_addresses());
  CHECK(resolved(any_cluster{.roles = {.ps = 2}}, with(of_slurm, {{"SLURM_PROCID", "4"}})).task() == cluster_task{role::ps, 1});
  CHECK(resolved(any_cluster{}, of_kubernetes).coordinator() == endpoint{"training-0.peers", 2222});
}

TEST_CASE("any_cluster: launchers that contradict each other, or none") {
  CHECK(
      mistake(any_cluster{}, with(of_slurm, {{"PMI_RANK", "1"}, {"PMI_SIZE", "5"}})) ==
      "slurm: this process is number 2 of 5 by SLURM_PROCID, but number 1 of 5 by PMI_RANK: use mpirun(), or unset the variable "
      "that is wrong");
  CHECK(mistake(any_cluster{}, with(of_open_mpi, of_torchrun)) ==
        "torchrun: this process is number 2 of 4 by RANK, but number 1 of 4 by OMPI_COMM_WORLD_RANK: use mpirun(), or unset the "
        "variable that is wrong");
  CHECK(mistake(any_cluster{}, without(of_slurm, "SLURM_STEP_ID")).find("the batch script itself") != std::string::npos);
  CHECK(mistake(any_cluster{}, {}).starts_with("any_cluster: no launcher has started this process: none of TF_CONFIG, "));
}

TEST_CASE("all resolvers: STRATA_RUN_ID names the run") {
  const settings name = {{"STRATA_RUN_ID", "tuesday"}};
  CHECK(resolved(torchrun{}, with(of_torchrun, name)).run_id() == "tuesday");
  CHECK(resolved(mpirun{}, with(of_open_mpi, name)).run_id() == "tuesday");
  CHECK(resolved(slurm{}, with(of_slurm, name)).run_id() == "tuesday");
  CHECK(resolved(kubernetes{}, with(of_kubernetes, name)).run_id() == "tuesday");
}
