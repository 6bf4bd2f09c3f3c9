#include "ranks/ranks.h"

#include <c10/util/Exception.h>
#include <c10/util/Logging.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <vector>

#include "core/interrupt.h"
#include "ranks/connection.h"
#include "ranks/ending.h"
#include "ranks/rendezvous.h"

namespace headscope {
namespace {

// How often a rank that waits asks whether another one noticed a failure.
constexpr std::chrono::seconds seconds_between_looks{1};

Milliseconds milliseconds_of(double seconds) {
  return Milliseconds(std::max<std::int64_t>(1, static_cast<std::int64_t>(seconds * 1000)));
}

}  // namespace

Ranks::Ranks() = default;
Ranks::~Ranks() = default;
Ranks::Ranks(Ranks&&) noexcept = default;
Ranks& Ranks::operator=(Ranks&&) noexcept = default;

const Ranks& Ranks::one() {
  static const Ranks ranks;
  return ranks;
}

Ranks::Ranks(const RankPlace& place, const RanksOptions& options, const std::function<RankDevice()>& device,
             const std::function<void(const std::string&)>& say)
    : place_(place) {
  if (!several() && (place_.said_by.empty() || options.backend == RanksBackend::by_device)) return;
  // c10d prints pages where a connection is not made, or breaks; the error says it.
  ::setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*replace=*/0);
  ::setenv("TORCH_FR_BUFFER_SIZE", "0", /*replace=*/0);  // no record of operations: nobody reads it
  // By default a watchdog of NCCL ends the process when another rank hangs, and writes what was under way to a file.
  // wait_until() notices it before, and says it.
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", /*replace=*/0);
  ::setenv("TORCH_NCCL_DUMP_ON_TIMEOUT", "0", /*replace=*/0);
  c10::initLogging();
  // Calls of the store wait without a limit for a server that does not answer.
  std::optional<Deadline> deadline;
  if (place_.owns_process)
    deadline.emplace(3 * options.timeout + seconds_to_end,
                     place_.speaks_for_machine()
                         ? fmt::format("{}: could not be connected to the others through {}:{}, which does not answer",
                                       name(), place_.host, place_.port)
                         : "");
  connection_ = std::make_unique<Connection>();
  connection_->timeout = options.timeout;
  connection_->store = rendezvous(place_, options.timeout, say);
  connection_->store->setTimeout(milliseconds_of(options.timeout));
  try {
    // With a connection of its own: a call that waits keeps others of the same one waiting.
    connection_->heartbeat.emplace(connection_->store->clone(), rank());
  } catch (const std::exception& error) {
    end_rendezvous(connection_->store, place_,
                   Error(Fault::runtime, fmt::format("{}: cannot connect to the others: {}", name(), said(error))));
  }
  live([&] { connect(options, device()); });
}

// Runs what may wait for other ranks without a limit in a thread of its own. Throws LostRank where one is gone.
template <class Function>
auto Ranks::watched(Function function) const {
  auto result = left_alone(std::move(function));
  wait_until([&] {
    if (interrupt_requested()) throw Error(Fault::interrupted, "interrupted before the ranks were connected");
    return result.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  return result.get();
}

void Ranks::connect(const RanksOptions& options, const RankDevice& own) {
  const bool nccl =
      options.backend == RanksBackend::nccl || (options.backend == RanksBackend::by_device && own.device.is_cuda());
  if (nccl && !own.device.is_cuda()) fail_input("ranks.backend=nccl is for GPUs; use ranks.backend=gloo");
  backend_ = nccl ? "nccl" : "gloo";
  ordered_ = options.reduce == RanksReduce::ordered || (options.reduce == RanksReduce::by_backend && !nccl);
  agree_on_backend(own.id);
  if (nccl) connection_->device = own.device;
  // Each of these waits for the other ranks, and does not look whether they are alive. It asks the store through a
  // connection of its own, so that this thread can ask, too.
  try {
    connection_->backend = watched([nccl, store = connection_->store->clone(), place = place_, own = own.device,
                                    timeout = milliseconds_of(options.timeout)] {
      return nccl ? connect_nccl(store, place, own, timeout) : connect_gloo(store, place, timeout);
    });
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail_runtime("cannot connect to the others: {}", said(error));
  }
}

std::string Ranks::where() const {
  return connection_->step == 0 ? name() : fmt::format("{}, step {}", name(), connection_->step);
}

bool Ranks::queued() const {
  return connection_ && !connection_->device.is_cpu();
}

double Ranks::exchange_seconds() const {
  return connection_ ? connection_->exchange_seconds : 0;
}

void Ranks::at_step(std::int64_t step) const {
  if (connection_) connection_->step = step;
}

template <class Operation>
Ranks::Begun Ranks::begin(const Operation& operation) const {
  const auto start = Clock::now();
  Begun begun;
  try {
    begun.work_ = std::make_shared<Begun::Work>(Begun::Work{.work = operation()});
    std::erase_if(connection_->begun, [](const auto& earlier) { return earlier.expired(); });
    connection_->begun.push_back(begun.work_);
  } catch (const c10::OutOfMemoryError&) {  // of this rank alone
    throw;
  } catch (const std::exception& error) {
    find_lost(said(error), Broken::closed);
  }
  connection_->exchange_seconds += seconds_since(start);
  return begun;
}

// on_host: until it is done. Otherwise what this rank queues from here on waits for it.
void Ranks::wait(const Begun& begun, bool on_host) const {
  constexpr double almost = 0.95;  // of the timeout: clocks differ
  const auto start = Clock::now();
  c10::intrusive_ptr<c10d::Work>& work = begun.work_->work;
  std::string failure;
  for (bool is_over = false; !is_over && failure.empty();) {
    const bool has_ended = work->isCompleted();  // what it throws then is its own failure, and not that a second passed
    try {
      work->wait(queued() ? kNoTimeout : seconds_between_looks);
      is_over = true;
    } catch (const std::exception& error) {
      if (queued() || has_ended)
        failure = said(error);
      else if (!work->isCompleted() && connection_->others_noticed())
        failure = "another rank noticed it";
    }
  }
  if (!failure.empty()) {
    const bool is_late = seconds_since(start) > almost * connection_->timeout;
    find_lost(failure, is_late ? Broken::timeout : Broken::closed);
  }
  if (on_host && queued()) {
    wait_until([&] { return work->isCompleted(); });  // one that failed counts as completed
    if (const std::exception_ptr failed = work->exception()) find_lost(said(failed), Broken::closed);
  }
  connection_->exchange_seconds += seconds_since(start);
}

void Ranks::wait_until(const std::function<bool()>& done) const {
  const auto start = Clock::now();
  auto last_look = start;
  while (!done()) {
    if (seconds_since(start) > connection_->timeout)
      find_lost(fmt::format("nothing within {:g} s", connection_->timeout), Broken::timeout);
    if (Clock::now() - last_look > seconds_between_looks) {
      if (connection_->others_noticed()) find_lost("another rank noticed it", Broken::closed);
      if (several() && connection_->next_is_silent((rank() + 1) % size())) find_lost("it is silent", Broken::closed);
      last_look = Clock::now();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

at::Tensor Ranks::all_gather(const at::Tensor& own) const {
  if (!connection_) return own.unsqueeze(0);
  at::Tensor given = connection_->given(own.unsqueeze(0));
  std::vector<std::int64_t> shape = given.sizes().vec();
  shape[0] = size();
  at::Tensor all = at::empty(shape, given.options());
  wait(begin([&] { return connection_->backend->_allgather_base(all, given); }), connection_->waits(own));
  return all.to(own.device());
}

void Ranks::all_gather_rows(const at::Tensor& rows) const {
  if (!connection_) return;
  at::Tensor all = connection_->given(rows), own = all.narrow(0, rank(), 1).clone();
  wait(begin([&] { return connection_->backend->_allgather_base(all, own); }), connection_->waits(rows));
  if (all.const_data_ptr() != rows.const_data_ptr()) rows.copy_(all);
}

// Each rank broadcasts what it has, although rank 0 alone reads it: an operation that gathers would pad all to one
// size.
void Ranks::gather(const at::Tensor& own, const std::function<void(int, const at::Tensor&)>& visit) const {
  constexpr std::int64_t piece = std::int64_t{1} << 24;  // elements: 64 MiB
  if (first()) visit(0, own.cpu());
  const at::Tensor elements = all_gather(at::full({}, own.numel(), at::kLong));
  for (int from = 1; from < size(); ++from) {
    const auto count = elements[from].item<std::int64_t>();
    const at::Tensor all = first() ? at::empty({count}, own.options().device(at::kCPU)) : at::Tensor();
    for (std::int64_t begun = 0; begun < count; begun += piece) {
      const std::int64_t length = std::min(piece, count - begun);
      std::vector<at::Tensor> part = {rank() == from ? connection_->given(own.narrow(0, begun, length))
                                                     : at::empty({length}, own.options().device(connection_->device))};
      c10d::BroadcastOptions options;
      options.rootRank = from;
      wait(begin([&] { return connection_->backend->broadcast(part, options); }), /*on_host=*/true);
      if (first()) all.narrow(0, begun, length).copy_(part[0]);
    }
    if (first()) visit(from, all);
  }
}

Ranks::Begun Ranks::begin_all_to_all(const at::Tensor& rows) const {
  HEADSCOPE_CHECK(connection_ != nullptr, "one process exchanges nothing");
  at::Tensor given = connection_->given(rows), received = at::empty_like(given);
  std::vector<std::int64_t> equal_parts;
  Begun begun = begin([&] { return connection_->backend->alltoall_base(received, given, equal_parts, equal_parts); });
  begun.work_->keep(given, received, rows.device());
  return begun;
}

Ranks::Begun Ranks::begin_reduce_scatter(const at::Tensor& rows) const {
  HEADSCOPE_CHECK(connection_ != nullptr, "one process exchanges nothing");
  at::Tensor given = connection_->given(rows.flatten());
  at::Tensor sum = at::empty({given.numel() / size()}, given.options());
  Begun begun = begin([&] { return connection_->backend->_reduce_scatter_base(sum, given); });
  begun.work_->keep(given, sum.view(rows[0].sizes()), rows.device());
  return begun;
}

at::Tensor Ranks::finish(Begun begun) const {
  const Begun::Work& work = *begun.work_;
  wait(begun, work.device.is_cpu() || connection_->device.is_cpu());
  return work.result.to(work.device);
}

}  // namespace headscope
