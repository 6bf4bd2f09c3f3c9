// The processes that train one model together. A rank is one of them.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.h"
#include "launch/place.h"
#include "ranks/liveness.h"
#include "settings/ranks_options.h"

namespace headscope {

// All ranks throw this error at the same point; rank 0 says it.
struct AgreedError : Error {
  using Error::Error;
};

// Another rank failed, ended or hangs. One of the ranks that are left says it.
struct LostRank : Error {
  LostRank(const std::string& message, bool is_said_here, double seconds)
      : Error(Fault::runtime, message), said_here(is_said_here), patience(seconds) {}
  bool said_here;
  double patience;  // seconds that rank 0 keeps the store for ranks that are still at work
};

// What a rank computes on.
struct RankDevice {
  at::Device device = at::kCPU;
  std::string id = {};  // of a GPU: no other one has it, on this machine or elsewhere
};

class Ranks {
 public:
  // One process. Nothing is connected.
  Ranks();
  // Connects the ranks that a launcher started; one process where it started no other. One rank of a launcher connects,
  // too, where the options name a backend. Waits for the others. Throws Error(Fault::runtime) where they do not come,
  // Error(Fault::input) where the devices have no such backend. `device` is asked for when all have come; of what it
  // throws they are told. Rank 0 says once whom it waits for, when that takes long.
  Ranks(
      const RankPlace& place, const RanksOptions& options, const std::function<RankDevice()>& device,
      const std::function<void(const std::string&)>& say = [](const std::string&) {});
  // One process, for those that keep a reference.
  static const Ranks& one();
  ~Ranks();
  Ranks(Ranks&&) noexcept;
  Ranks& operator=(Ranks&&) noexcept;

  [[nodiscard]] int rank() const { return place_.rank; }
  [[nodiscard]] int size() const { return place_.size; }
  [[nodiscard]] bool first() const { return place_.first(); }
  [[nodiscard]] bool several() const { return place_.several(); }
  [[nodiscard]] bool connected() const { return connection_ != nullptr; }
  [[nodiscard]] std::string name() const { return place_.name(); }  // "rank 2 of 4"
  [[nodiscard]] const std::string& backend() const { return backend_; }
  // Whether gradients are added in the order of forward steps.
  [[nodiscard]] bool ordered() const { return ordered_; }

  // Operations on tensors of the GPU are queued there: the host does not wait for them.
  [[nodiscard]] bool queued() const;
  // How long this process has waited in the operations below. NCCL's own work on the GPU is not in it.
  [[nodiscard]] double exchange_seconds() const;
  // The update that is under way, for errors.
  void at_step(std::int64_t step) const;

  // Operations that every rank calls in the same order with tensors of the same shape. Each throws LostRank. With NCCL,
  // those on tensors of the GPU are queued there: wait_until() then sees whether they end.
  // [ranks, ...]: what each rank gave.
  [[nodiscard]] at::Tensor all_gather(const at::Tensor& own) const;
  // The same in place. rows: [ranks, ...]; the row of each rank becomes that which the rank has there.
  void all_gather_rows(const at::Tensor& rows) const;
  // On rank 0: visit(rank, own), of one rank after another, in memory of the host. own: [elements], as many as the rank
  // has. The memory of a GPU holds a piece of it at a time.
  void gather(const at::Tensor& own, const std::function<void(int, const at::Tensor&)>& visit) const;
  // The sum over ranks: the same on every rank, and exact where each element is 0 on all ranks but one.
  [[nodiscard]] at::Tensor all_reduce(const at::Tensor& own) const {
    return connected() ? all_gather(own).sum(0) : own;
  }

  // Operations that go on while this rank does something else. What they were given must stay as it is until finish(),
  // which returns what they give. Of connected ranks only.
  class Begun {
   public:
    explicit operator bool() const { return work_ != nullptr; }

   private:
    friend class Ranks;
    struct Work;
    std::shared_ptr<Work> work_;
  };
  // rows: [ranks, ...], one row for each rank. Gives [ranks, ...]: the row that each rank has for this one.
  [[nodiscard]] Begun begin_all_to_all(const at::Tensor& rows) const;
  // Gives the sum of these, in an order of the backend's own.
  [[nodiscard]] Begun begin_reduce_scatter(const at::Tensor& rows) const;
  [[nodiscard]] at::Tensor finish(Begun begun) const;

  // Returns when `done` does, of work that other ranks have a part in. Throws LostRank where that takes too long.
  void wait_until(const std::function<bool()>& done) const;

  // What rank 0 says under the name, which is used once.
  [[nodiscard]] std::string from_first(const std::string& name, const std::function<std::string()>& say) const;

  // Throws AgreedError(Fault::input) naming the first rank whose facts are not those of rank 0, and the fact.
  void compare(const nlohmann::ordered_json& facts) const;

  // Waits for all ranks, at the end: none closes its connections while another still reads from them. One that was
  // killed is not waited for: nothing is left to do. Throws LostRank where another rank failed on its way here.
  void last_barrier() const;

  // Returns body(). Of whatever it throws, one rank throws the message and the others an error without text, so that it
  // is printed once. Others that wait for this rank are told why it ends.
  template <class Body>
  auto live(Body&& body) const {
    if (!several()) return body();
    try {
      return body();
    } catch (const LostRank& error) {
      leave(error);
    } catch (const AgreedError& error) {
      leave(error);
    } catch (const Error& error) {
      leave(error);
    } catch (const std::exception& error) {
      leave(error);
    }
  }

 private:
  struct Connection;
  void connect(const RanksOptions& options, const RankDevice& own);
  void agree_on_backend(const std::string& gpu) const;
  template <class Function>
  [[nodiscard]] auto watched(Function function) const;
  template <class Function>
  auto ask_store(double seconds, Function function) const;
  [[noreturn]] void leave(const LostRank& error) const;
  [[noreturn]] void leave(const AgreedError& error) const;
  [[noreturn]] void leave(const Error& error) const;
  [[noreturn]] void leave(const std::exception& error) const;  // of a library
  template <class Operation>
  [[nodiscard]] Begun begin(const Operation& operation) const;
  void wait(const Begun& begun, bool on_host) const;
  [[noreturn]] void find_lost(const std::string& reason, Broken how) const;
  void disconnect() const;
  void tell(const std::string& key, const std::string& text) const;
  [[nodiscard]] std::string get(const std::string& key, int from) const;
  void depart(double patience) const;
  [[nodiscard]] std::string where() const;  // "rank 2 of 4, step 14", without the step where there was none

  RankPlace place_;
  std::string backend_;
  bool ordered_ = true;
  std::unique_ptr<Connection> connection_;  // null: one process
};

}  // namespace headscope
