// Which of several processes this is, as the launcher's variables say it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace headscope {

// More than there are on any cluster; counts of what they exchange fit in 64 bits.
constexpr std::int64_t most_ranks = 1 << 20;

struct RankPlace {
  int rank = 0, size = 1;
  int local_rank = 0;  // among those of this machine; the rank itself where the launcher does not say it
  bool knows_local_rank = true;
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;           // of the store, on the host of rank 0
  std::string run = {};             // tells this start of the processes from others, as far as the launcher does
  bool launcher_has_store = false;  // torchrun serves it; otherwise rank 0 does
  int listening = -1;               // a socket that listens on the port, which rank 0 takes over; -1: there is none
  std::string said_by = {};         // the variable that gave the size
  bool owns_process = false;        // nothing else is in it, so that it may be ended
  bool launched_here = false;       // by --ranks, which passes signals on, and says what no rank does

  [[nodiscard]] bool first() const { return rank == 0; }
  [[nodiscard]] bool several() const { return size > 1; }
  // Whether it says what every rank of a machine meets.
  [[nodiscard]] bool speaks_for_machine() const { return local_rank == 0 || !knows_local_rank; }
  [[nodiscard]] bool serves_store() const { return first() && !launcher_has_store; }
  // The rank that says the error when no rank can reach the store.
  [[nodiscard]] bool speaks_without_store() const { return rank == (launcher_has_store ? 0 : 1); }
  [[nodiscard]] std::string name() const;  // "rank 2 of 4"
};

// Variables that --ranks sets for the processes that it starts, beside torchrun's.
inline constexpr const char* launched_variable = "HEADSCOPE_RANKS";
inline constexpr const char* listening_variable = "HEADSCOPE_STORE_SOCKET";  // of rank 0

// The value of a variable, null where it is not set.
using Variable = std::function<const char*(const char* name)>;

// Of torchrun (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), Open MPI, PMI or Slurm, the first of them that
// is there; one rank where none of their variables are set. SLURM_PTY_PORT: this is a shell at a terminal, and no task.
// Throws Error(Fault::input) naming the variable that makes no sense.
RankPlace rank_place(const Variable& variable);
RankPlace rank_place();

// The same for processes that work side by side and do not connect: variables that make no sense are ignored.
RankPlace place_among_tasks(const Variable& variable);
RankPlace place_among_tasks();

// This process is one of several that a launcher or an array of Slurm started side by side.
bool is_one_of_several_tasks(const Variable& variable);
bool is_one_of_several_tasks();

}  // namespace headscope
