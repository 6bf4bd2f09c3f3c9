#include "ranks/ranks.h"

#include <c10/util/Exception.h>
#include <c10/util/Logging.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "core/console.h"
#include "ranks/backend.h"
#include "ranks/rendezvous.h"
#include "ranks/store_text.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;
// What a rank leaves in the store under this name.
constexpr const char* end_key = "end";          // how many ranks have come to the end
constexpr const char* all_end_key = "all_end";  // rank 0 waits for no more

// How often a rank that waits asks whether another one noticed a failure.
constexpr std::chrono::seconds seconds_between_looks{1};

// A rank that failed by itself waits for the others to read why.
constexpr double seconds_to_report = 3 * seconds_of_silence;

// "config.train.batch is 8, and 16 on rank 0"; empty where all is the same.
std::string difference(const ordered_json& here, const ordered_json& first) {
  const ordered_json flat_here = here.flatten(), flat_first = first.flatten();
  for (const ordered_json* facts : {&flat_here, &flat_first}) {
    for (const auto& [pointer, value] : facts->items()) {
      const ordered_json mine = flat_here.value(pointer, ordered_json()),
                         other = flat_first.value(pointer, ordered_json());
      if (mine == other) continue;
      std::string key = pointer.substr(1);
      std::replace(key.begin(), key.end(), '/', '.');
      return fmt::format("{} is {}, and {} on rank 0", key, mine.dump(), other.dump());
    }
  }
  return "";
}

}  // namespace

struct Ranks::Connection {
  C10dStore store;
  C10dBackend backend;
  std::optional<Heartbeat> heartbeat;
  at::Device device = at::kCPU;  // where the backend takes tensors
  double timeout = 0;            // seconds
  std::int64_t step = 0;
  double exchange_seconds = 0;
  std::vector<std::weak_ptr<Begun::Work>> begun;  // that may be under way

  // Whether another rank noticed that one is gone. This one may be connected to those alone that wait, too. A store
  // that hangs is not asked again.
  [[nodiscard]] bool others_noticed() {
    if (!store_answers) return false;
    const auto noticed = within(seconds_of_silence, std::optional<bool>(), [store = store] {
      try {
        return std::optional<bool>(is_noticed(store) || store->check({failure_key}));
      } catch (const c10::Error&) {  // rank 0 had it
        return std::optional<bool>(true);
      }
    });
    store_answers = noticed.has_value();
    return noticed.value_or(false);
  }
  bool store_answers = true;

  // A tensor as the backend takes it.
  [[nodiscard]] at::Tensor given(const at::Tensor& tensor) const { return tensor.detach().contiguous().to(device); }
  // Operations do not return before they are done, as far as the host sees.
  [[nodiscard]] bool waits(const at::Tensor& tensor) const { return device.is_cpu() || tensor.is_cpu(); }
};

struct Ranks::Begun::Work {
  c10::intrusive_ptr<c10d::Work> work;
  at::Tensor given = {}, result = {};  // as the backend takes them
  at::Device device = at::kCPU;        // where the result is wanted

  void keep(const at::Tensor& what, const at::Tensor& into, at::Device wanted) {
    given = what;
    result = into;
    device = wanted;
  }
};

Ranks::Ranks() = default;
Ranks::~Ranks() = default;
Ranks::Ranks(Ranks&&) noexcept = default;
Ranks& Ranks::operator=(Ranks&&) noexcept = default;

const Ranks& Ranks::one() {
  static const Ranks ranks;
  return ranks;
}

Ranks::Ranks(const RankPlace& place, const RanksOptions& options, const std::function<at::Device()>& device,
             const std::function<void(const std::string&)>& say)
    : place_(place) {
  if (!several() && (place_.said_by.empty() || options.backend == RanksBackend::by_device)) return;
  // c10d prints pages where a connection is not made, or breaks; the error says it.
  ::setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*replace=*/0);
  c10::initLogging();
  bool nccl = options.backend == RanksBackend::nccl;
  at::Device own_device = at::kCPU;
  try {
    own_device = device();
    if (nccl && !own_device.is_cuda()) fail_input("ranks.backend=nccl is for GPUs; use ranks.backend=gloo");
  } catch (const Error& error) {  // of this machine: its first rank says it
    throw Error(error.fault(), place_.local_rank == 0 ? error.what() : "");
  }
  nccl = nccl || (options.backend == RanksBackend::by_device && own_device.is_cuda());
  backend_ = nccl ? "nccl" : "gloo";
  ordered_ = options.reduce == RanksReduce::ordered || (options.reduce == RanksReduce::by_backend && !nccl);
  connection_ = std::make_unique<Connection>();
  if (nccl) connection_->device = own_device;
  connection_->timeout = options.timeout;
  const Milliseconds timeout(std::max<std::int64_t>(1, static_cast<std::int64_t>(options.timeout * 1000)));
  connection_->store = rendezvous(place_, options.timeout, say);
  connection_->store->setTimeout(timeout);
  try {
    // With a connection of its own: a call that waits keeps others of the same one waiting. It begins before the ranks
    // connect, which one of them may take longer for: none is silent then.
    connection_->heartbeat.emplace(connection_->store->clone(), rank());
    connection_->backend =
        nccl ? connect_nccl(connection_->store, place_, timeout) : connect_gloo(connection_->store, place_, timeout);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    end_rendezvous(connection_->store, place_,
                   Error(Fault::runtime, fmt::format("{}: cannot connect to the others: {}", name(), said(error))));
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
  if (on_host && queued()) wait_until([&] { return work->isCompleted(); });
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
      last_look = Clock::now();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

// Ranks that wait for this one notice, too. Operations that are under way may wait for others for long: nobody waits
// for them.
void Ranks::disconnect() const {
  if (!connection_->backend) return;
  for (const auto& begun : connection_->begun)
    if (const auto operation = begun.lock()) operation->work.reset();  // it would keep the connections open
  if (queued()) connection_->backend->abort();
  left_alone([backend = std::move(connection_->backend)]() mutable {
    backend.reset();
    return true;
  });
}

// After an operation that failed: finds out which rank is missing.
void Ranks::find_lost(const std::string& reason, Broken how) const {
  disconnect();
  Answers answers = ask_all(connection_->store, place_, how);
  if (!answers.store) {  // rank 0 has it
    answers.missing = {0};
    answers.speaks = place_.speaks_without_store();
  }
  // Ranks that are still at work will notice it, and ask the store why.
  const double patience = how == Broken::closed ? connection_->timeout : seconds_to_report;
  if (!answers.failure.empty()) throw LostRank(answers.failure, /*is_said_here=*/false, patience);
  const std::string who = answers.missing.empty() ? "the connection between ranks broke"
                                                  : fmt::format("rank {} of {} does not answer: it ended or hangs",
                                                                fmt::join(answers.missing, ", rank "), size());
  throw LostRank(fmt::format("step {}: {} ({} noticed it: {}); the run goes on from its last checkpoint with --resume",
                             connection_->step, who, name(), reason),
                 answers.speaks, patience);
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

std::string Ranks::from_first(const std::string& name, const std::function<std::string()>& say) const {
  if (!connection_) return say();
  const std::string key = "said/" + name;
  if (!first()) return get(key, 0);
  std::string text = say();
  tell(key, text);
  return text;
}

void Ranks::tell(const std::string& key, const std::string& text) const {
  try {
    connection_->store->set(key, bytes_of(text));
  } catch (const c10::Error& error) {
    throw LostRank(
        fmt::format("rank 0 of {} does not answer: it ended or hangs ({} noticed it: {})", size(), name(), said(error)),
        place_.speaks_without_store(), seconds_to_report);
  }
}

// What another rank set, or will set.
std::string Ranks::get(const std::string& key, int from) const {
  const C10dStore& store = connection_->store;
  bool speaks = place_.speaks_without_store();
  std::string reason;
  try {
    const auto start = Clock::now();
    auto heard = start, looked = start;
    for (std::int64_t beats = -1; reason.empty(); std::this_thread::sleep_for(between_polls(size()))) {
      if (store->check({key})) return text_of(store->get(key));
      if (store->check({failure_key}) || is_noticed(store)) find_lost("another rank noticed it", Broken::closed);
      if (const std::int64_t now = heartbeats_of(store, from); now != beats) {
        beats = now;
        heard = Clock::now();
      }
      if (seconds_since(looked) > seconds_of_silence) heard = Clock::now();  // this process was stopped itself
      looked = Clock::now();
      if (seconds_since(heard) > 2 * seconds_of_silence) reason = "it is silent";
      if (seconds_since(start) > connection_->timeout)
        reason = fmt::format("nothing came within {:g} s", connection_->timeout);
    }
    speaks = is_first_to_notice(store, place_);
  } catch (const c10::Error& error) {
    reason = said(error);
  }
  throw LostRank(
      fmt::format("rank {} of {} does not answer: it ended or hangs ({} noticed it: {})", from, size(), name(), reason),
      speaks, seconds_to_report);
}

void Ranks::compare(const ordered_json& facts) const {
  if (!connection_) return;
  const auto key = [](int rank) { return fmt::format("facts/{}", rank); };
  tell(key(rank()), facts.dump());
  const std::string verdict = from_first("verdict", [&]() -> std::string {
    for (int rank = 1; rank < size(); ++rank) {
      const std::string found = difference(ordered_json::parse(get(key(rank), rank)), facts);
      if (!found.empty())
        return fmt::format("rank {} of {}: {}; start all ranks with the same version, configuration and data", rank,
                           size(), found);
    }
    return "";
  });
  if (!verdict.empty()) throw AgreedError(Fault::input, verdict);
}

namespace {

// Whether rank 0 waits for no more: all ranks that are not silent have come to the end.
class EveryoneAtTheEnd {
 public:
  EveryoneAtTheEnd(const C10dStore& store, const RankPlace& place)
      : store_(store), place_(place), ranks_(static_cast<std::size_t>(place.first() ? place.size : 1)) {}

  bool operator()() {
    if (!place_.first()) return store_->check({all_end_key}) || is_silent(0);
    std::int64_t silent = 0;
    for (int rank = 1; rank < place_.size; ++rank) silent += is_silent(rank) ? 1 : 0;
    if (store_->add(end_key, 0) + silent < place_.size) return false;
    store_->set(all_end_key, bytes_of("yes"));
    return true;
  }

 private:
  struct Heard {
    std::int64_t beats = -1;
    Clock::time_point last = Clock::now();
  };

  bool is_silent(int rank) {
    Heard& heard = ranks_[static_cast<std::size_t>(rank)];
    if (const std::int64_t now = heartbeats_of(store_, rank); now != heard.beats) heard = {now};
    return seconds_since(heard.last) > 2 * seconds_of_silence;
  }

  const C10dStore& store_;
  const RankPlace& place_;
  std::vector<Heard> ranks_;
};

}  // namespace

void Ranks::last_barrier() const {
  if (!connection_) return;
  const bool has_failed = within(connection_->timeout, false, [store = connection_->store, place = place_] {
    store->add(end_key, 1);
    for (EveryoneAtTheEnd all(store, place); !all(); std::this_thread::sleep_for(between_polls(place.size)))
      if (store->check({failure_key}) || is_noticed(store)) return true;
    return false;
  });
  if (has_failed) find_lost("another rank noticed it", Broken::closed);
}

void Ranks::leave(const LostRank& error) const {
  depart(error.patience);
  throw Error(error.fault(), error.said_here ? error.what() : "");
}

void Ranks::leave(const AgreedError& error) const {
  try {
    last_barrier();
  } catch (const LostRank& lost) {
    leave(lost);
  }
  throw Error(error.fault(), first() ? error.what() : "");
}

void Ranks::leave(const Error& error) const {
  const std::string text = fmt::format("{}: {}", where(), error.what());
  // Where several ranks fail at once, the first one says it.
  const bool said_here = within(seconds_of_silence, true,
                                [store = connection_->store, text] { return set_first(store, failure_key, text); });
  depart(connection_->timeout);
  throw Error(error.fault(), said_here ? text : "");
}

void Ranks::leave(const std::exception& error) const {
  leave(Error(Fault::runtime, said(error)));
}

void Ranks::depart(double patience) const {
  disconnect();  // now the others notice
  connection_->heartbeat->stop();
  wait_until_gone(connection_->store, place_, patience);
}

}  // namespace headscope
