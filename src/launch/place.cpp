#include "launch/place.h"

#include <fcntl.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/config.h"
#include "core/error.h"
#include "core/regular_file.h"

namespace headscope {
namespace {

// The names that a launcher uses. Null: it does not say. `local_size`: processes of this machine. `job`: tells its
// start of the processes from others.
struct Launcher {
  const char *rank, *size, *local_rank, *local_size, *job;
};

// In this order: torchrun may be started by any of the others, and mpirun starts its own helpers by srun, whose
// variables its processes inherit. Slurm's number of tasks is that of the step: SLURM_NTASKS may be that of the job.
constexpr std::array<Launcher, 5> launchers = {{
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"},  // torchrun, and what --ranks sets
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "PMIX_NAMESPACE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_JOBID"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr, nullptr},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, nullptr},
}};

constexpr int usual_port = 29500;  // torchrun's

class Reader {
 public:
  explicit Reader(const Variable& variable) : variable_(variable) {}

  // A variable without a text is one that is not set.
  [[nodiscard]] bool has(const char* name) const {
    const char* text = name == nullptr ? nullptr : variable_(name);
    return text != nullptr && *text != '\0';
  }

  [[nodiscard]] std::string text(const char* name, const std::string& otherwise) const {
    return has(name) ? variable_(name) : otherwise;
  }

  // because: why there is no more, "; WORLD_SIZE is 4".
  [[nodiscard]] int number(const char* name, int least, int most, int otherwise,
                           const std::string& because = {}) const {
    if (!has(name)) return otherwise;
    const std::string given = variable_(name);
    int value = 0;
    if (!parse_value(given, value) || value < least || value > most)
      fail_input("{} is '{}'; expected a whole number from {} to {}{}; --ranks 1 trains in one process", name,
                 excerpt(given), least, most, because);
    return value;
  }

 private:
  const Variable& variable_;
};

bool is_slurm(const Launcher& launcher) {
  return std::string_view(launcher.rank) == "SLURM_PROCID";
}

// Tasks are what srun starts, and those have a step. In a batch script Slurm sets the variables of its tasks, too. So
// it does in a shell that srun or salloc gives a terminal: what is started there by hand is one process.
bool is_task(const Reader& reader, const Launcher& launcher) {
  if (!is_slurm(launcher)) return true;
  if (reader.has("SLURM_PTY_PORT")) return false;
  return !reader.has("SLURM_JOB_ID") || reader.has("SLURM_STEP_ID") || reader.has("SLURM_STEPID");
}

bool is_one_machine(const Reader& reader, const Launcher& launcher, int size) {
  if (reader.number("SLURM_STEP_NUM_NODES", 1, most_ranks, 1) > 1) return false;
  return reader.number(launcher.local_size, 1, most_ranks, size) >= size;
}

// Empty where the launcher does not say.
std::string job_of(const Reader& reader, const Launcher& launcher) {
  std::string job = reader.text(launcher.job, "");
  if (job.empty() && reader.has("SLURM_JOB_ID"))
    job = reader.text("SLURM_JOB_ID", "") + (is_slurm(launcher) ? "." + reader.text("SLURM_STEP_ID", "") : "");
  return job;
}

// Jobs of one machine should not meet at one port. These are below those that Linux gives to connections.
int port_of(const std::string& job) {
  if (job.empty()) return usual_port;
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (const unsigned char c : job) hash = (hash ^ c) * 16777619u;
  return static_cast<int>(20000 + hash % 9000);
}

// connects: to the other ranks, which meet at MASTER_ADDR.
RankPlace place_by(const Reader& reader, const Launcher& launcher, bool connects) {
  RankPlace place;
  place.said_by = launcher.size;
  place.owns_process = true;
  place.size = reader.number(launcher.size, 1, most_ranks, 1);
  place.rank =
      reader.number(launcher.rank, 0, place.size - 1, 0, fmt::format(", as {} is {}", launcher.size, place.size));
  place.local_rank = reader.number(launcher.local_rank, 0, most_ranks, place.rank);
  place.knows_local_rank = reader.has(launcher.local_rank);
  if (connects && !reader.has("MASTER_ADDR") && place.several() && !is_one_machine(reader, launcher, place.size))
    fail_input(
        "{} is {} on several machines and MASTER_ADDR is not set; set it to the host of rank 0{}", launcher.size,
        place.size,
        is_slurm(launcher) ? R"(: MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1))" : "");
  place.host = reader.text("MASTER_ADDR", place.host);
  const std::string job = job_of(reader, launcher);
  place.port = static_cast<std::uint16_t>(reader.number("MASTER_PORT", 1, 65535, port_of(job)));
  place.launcher_has_store = reader.text("TORCHELASTIC_USE_AGENT_STORE", "") == "True";
  place.run = job + "/" + reader.text("TORCHELASTIC_RESTART_COUNT", "0");
  place.launched_here = reader.has(launched_variable);
  if (place.launched_here) place.listening = reader.number(listening_variable, 0, 1 << 20, -1);
  return place;
}

bool has_terminal() {
  return Descriptor(::open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY)).open();
}

RankPlace place_of(const Variable& variable, bool connects) {
  const Reader reader(variable);
  const Launcher* half = nullptr;  // the first one that says a rank, and of how many it does not, or the reverse
  for (const Launcher& launcher : launchers) {
    if (reader.has(launcher.rank) && reader.has(launcher.size)) {
      if (is_task(reader, launcher)) return place_by(reader, launcher, connects);
    } else if (half == nullptr && !is_slurm(launcher) && (reader.has(launcher.rank) || reader.has(launcher.size))) {
      half = &launcher;
    }
  }
  if (half == nullptr) return {};
  const bool has_rank = reader.has(half->rank);
  fail_input("{} is set and {} is not; a launcher sets both; --ranks 1 trains in one process",
             has_rank ? half->rank : half->size, has_rank ? half->size : half->rank);
}

const char* own_variable(const char* name) {
  // Tasks that srun starts from such a shell inherit this, but have no terminal.
  if (std::strcmp(name, "SLURM_PTY_PORT") == 0 && !has_terminal()) return nullptr;
  return std::getenv(name);
}

}  // namespace

std::string RankPlace::name() const {
  return fmt::format("rank {} of {}", rank, size);
}

RankPlace rank_place(const Variable& variable) {
  return place_of(variable, /*connects=*/true);
}

RankPlace rank_place() {
  return rank_place(own_variable);
}

RankPlace place_among_tasks(const Variable& variable) {
  try {
    return place_of(variable, /*connects=*/false);
  } catch (const Error&) {
    return {};
  }
}

RankPlace place_among_tasks() {
  return place_among_tasks(own_variable);
}

bool is_one_of_several_tasks(const Variable& variable) {
  return variable("SLURM_ARRAY_TASK_ID") != nullptr || place_among_tasks(variable).several();
}

bool is_one_of_several_tasks() {
  return is_one_of_several_tasks(own_variable);
}

}  // namespace headscope
