// Variables as launchers set them. Each set was printed by a process of the launcher: torchrun of torch 2.11, Open MPI
// 4.1.4, MPICH 4.0.2 and Slurm 22.05.8.
#include "launch/place.h"

#include <map>

#include "support/expect_error.h"

namespace headscope {
namespace {

using test::expect_error;
using Variables = std::map<std::string, std::string>;

RankPlace place_of(const Variables& variables) {
  return rank_place([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

void expect_rank(const Variables& variables, int rank, int size, const std::string& run = "/0") {
  const RankPlace place = place_of(variables);
  EXPECT_EQ(place.rank, rank);
  EXPECT_EQ(place.size, size);
  EXPECT_EQ(place.run, run);
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

// A batch script of 4 tasks.
const Variables batch = {
    {"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_NNODES", "1"}};
// The third of 4 tasks of srun in it.
const Variables task = with(batch, {{"SLURM_STEP_ID", "0"},
                                    {"SLURM_STEP_NUM_TASKS", "4"},
                                    {"SLURM_STEP_NUM_NODES", "1"},
                                    {"SLURM_PROCID", "2"},
                                    {"SLURM_LOCALID", "2"}});
const Variables torchrun = {{"RANK", "1"},
                            {"WORLD_SIZE", "2"},
                            {"LOCAL_RANK", "1"},
                            {"LOCAL_WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "127.0.0.1"},
                            {"MASTER_PORT", "41231"},
                            {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                            {"TORCHELASTIC_RUN_ID", "id"},
                            {"TORCHELASTIC_RESTART_COUNT", "3"}};
const Variables open_mpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"PMIX_NAMESPACE", "1934491649"}};
const Variables hydra = {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "3"}, {"MPI_LOCALNRANKS", "4"}};

// Tasks of a study on several machines do not connect: they need no MASTER_ADDR.
TEST(Place, TasksThatShareAStudyNeedNoHost) {
  const Variables elsewhere = with(task, {{"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_LOCALID", "1"}});
  expect_error(Fault::input, "MASTER_ADDR is not set", [&] { static_cast<void>(place_of(elsewhere)); });
  const RankPlace place = place_among_tasks([&](const char* name) -> const char* {
    const auto found = elsewhere.find(name);
    return found == elsewhere.end() ? nullptr : found->second.c_str();
  });
  EXPECT_TRUE(place.several());
  EXPECT_EQ(place.rank, 2);
  EXPECT_EQ(place.local_rank, 1);
}

TEST(Place, EachLauncherIsUnderstood) {
  expect_rank({}, 0, 1, "");
  expect_rank(torchrun, 1, 2, "id/3");
  expect_rank(open_mpi, 1, 2, "1934491649/0");
  expect_rank(hydra, 3, 4);
  expect_rank(task, 2, 4, "7.0/0");
  EXPECT_TRUE(place_of(torchrun).launcher_has_store);
  EXPECT_EQ(place_of(torchrun).port, 41231);
  EXPECT_EQ(place_of(hydra).port, 29500);
}

TEST(Place, WithoutSrunASlurmJobIsOneProcess) {
  EXPECT_FALSE(place_of(batch).several());
  Variables allocation = batch;  // a shell of salloc
  allocation.erase("SLURM_PROCID");
  EXPECT_FALSE(place_of(allocation).several());
  EXPECT_FALSE(place_of(with(batch, {{"SLURM_ARRAY_TASK_ID", "1"}})).several());
}

TEST(Place, AShellOfSlurmAtATerminalIsOneProcess) {
  Variables shell = with(task, {{"SLURM_PROCID", "0"}, {"SLURM_PTY_PORT", "38033"}});  // srun -n 4 --pty bash
  EXPECT_FALSE(place_of(shell).several());
  shell["SLURM_STEP_ID"] = "4294967290";  // salloc -n 4, where LaunchParameters has use_interactive_step
  shell["SLURM_STEP_NUM_TASKS"] = "1";
  EXPECT_FALSE(place_of(shell).several());
  shell.erase("SLURM_PTY_PORT");
  EXPECT_FALSE(place_of(shell).several());
}

TEST(Place, AStepHasItsOwnNumberOfTasks) {
  expect_rank(with(task, {{"SLURM_STEP_NUM_TASKS", "3"}}), 2, 3, "7.0/0");
}

TEST(Place, TheInnerLauncherCounts) {
  expect_rank(with(task, torchrun), 1, 2, "id/3");
  expect_rank(with(open_mpi, torchrun), 1, 2, "id/3");
  expect_rank(with(batch, open_mpi), 1, 2, "1934491649/0");
  // mpiexec of MPICH starts its helper with srun: each process sees that one's task.
  expect_rank(with(with(task, {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}), hydra), 3, 4, "7/0");
  expect_rank(with(task, {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"PMI_JOBID", "7.0"}}), 2, 4, "7.0/0");
}

TEST(Place, RunsOfOneMachineHavePortsOfTheirOwn) {
  std::map<int, int> runs;
  for (int job = 1; job <= 100; ++job) {
    const int port = place_of(with(task, {{"SLURM_JOB_ID", std::to_string(job)}})).port;
    EXPECT_GE(port, 20000);
    EXPECT_LT(port, 32768);  // where Linux begins to give ports to connections
    ++runs[port];
  }
  EXPECT_GE(runs.size(), 98u);
  EXPECT_NE(place_of(task).port, place_of(with(task, {{"SLURM_STEP_ID", "1"}})).port);
  EXPECT_EQ(place_of(task).port, place_of(with(task, {{"SLURM_PROCID", "3"}})).port);
  EXPECT_NE(place_of(open_mpi).port, 29500);
}

TEST(Place, SeveralMachinesNeedTheHostOfRank0) {
  const char* said =
      "SLURM_STEP_NUM_TASKS is 4 on several machines and MASTER_ADDR is not set; set it to the host of rank 0: "
      "MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)";
  const Variables two = with(task, {{"SLURM_STEP_NUM_NODES", "2"}});
  expect_error(Fault::input, said, [&] { static_cast<void>(place_of(two)); });
  EXPECT_EQ(place_of(with(two, {{"MASTER_ADDR", "node1"}})).host, "node1");
  expect_error(Fault::input, "PMI_SIZE is 4 on several machines and MASTER_ADDR is not set", [] {
    static_cast<void>(place_of(with(hydra, {{"MPI_LOCALNRANKS", "2"}})));
  });
}

TEST(Place, VariablesThatMakeNoSenseAreNamed) {
  expect_error(Fault::input, "RANK is set and WORLD_SIZE is not", [] { static_cast<void>(place_of({{"RANK", "0"}})); });
  expect_error(Fault::input, "OMPI_COMM_WORLD_RANK is set and OMPI_COMM_WORLD_SIZE is not", [] {
    static_cast<void>(place_of({{"OMPI_COMM_WORLD_RANK", "0"}}));
  });
  expect_error(Fault::input, "PMI_SIZE is set and PMI_RANK is not", [] {
    static_cast<void>(place_of({{"PMI_SIZE", "2"}}));
  });
  EXPECT_EQ(place_of({{"RANK", ""}, {"WORLD_SIZE", ""}}).size, 1);
  expect_error(Fault::input, "SLURM_PROCID is '4'; expected a whole number from 0 to 3, as SLURM_STEP_NUM_TASKS is 4",
               [] {
                 static_cast<void>(place_of(with(task, {{"SLURM_PROCID", "4"}})));
               });
}

}  // namespace
}  // namespace headscope
