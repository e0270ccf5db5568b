// SPDX-License-Identifier: Apache-2.0
// This process as a part of its job: what tf.distribute calls a server.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/net/cluster_placement.hpp"
#include "actors/net/lone_node.hpp"
#include "actors/net/maker.hpp"
#include "actors/net/sockets/byte_stream.hpp"
#include "actors/net/sockets/socket_network.hpp"
#include "actors/world/completion.hpp"
#include "actors/world/world.hpp"
#include "strategies/cluster/environment.hpp"
#include "strategies/cluster/finding.hpp"
#include "strategies/cluster/resolved_cluster.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace troupe {

/// How a process takes part in its job. Processes of one job are given the same, but for files.
struct server_options {
  uint32_t replicas = 0; ///< The job's, shared evenly among its workers; 0: one for each worker.
  std::string job{};     ///< A name that other jobs do not have; empty: `job_name`.
  bool workers_meet = false;     ///< Whether they combine arrays without parameter servers.
  uint32_t replicate_owners = 1; ///< As in `parameter_server_options`.
  /// The network card to listen on, as `wanted_card` and `listening_card` take it.
  std::string interface {};
  std::optional<tls_files> tls{};
  bool insecure_network = false; ///< Whether to listen beyond this machine without TLS.
  uint64_t window_bytes = usual_window_bytes(); ///< As in `socket_network_options`.
  /// As in `socket_network_options`; without: what the environment says (TROUPE_SPIN_US).
  std::optional<std::chrono::microseconds> spin{};
  job_time start_deadline = std::chrono::seconds{60}; ///< How long others are waited for.

  /// Messages of schemas of one's own that travel between processes: `.messages = known`, the same
  /// in every process.
  std::shared_ptr<const network_messages> messages{};

  /// Told what is wrong but can go on, and what is waited for, in one line; empty: the lines go to
  /// standard error, as what it throws does. Thread: any.
  std::function<void(const std::string&)> on_warning{};

  /// Asked to stop, the server waits for no process: calls that wait throw `failure`, `cancelled`,
  /// or return that error.
  std::stop_token stop{};
};

/// A job's processes are started by themselves, one by one, by whatever starts processes. A server
/// joins this one to the others: it listens, dials, and gives a strategy the `placement` that its
/// cluster asks for. It leaves when it is destroyed, which is to be after the strategy.
///
/// A process that is alone has a server too: it listens nowhere, and its placement is null.
///
/// Thread: the one that made the world.
/// Source: tf.distribute.Server; what differs is in docs/strategies.md.
class server {
public:
  /// Begins to listen. @param world Outlives the server.
  /// Errors: throws `failure`: invalid_argument for a cluster with a problem, replicas that cannot
  /// be shared evenly, or no address for a task that others dial; as `listening_card` and
  /// `socket_network::open`.
  server(world& world, const resolved_cluster& cluster, server_options options = {});

  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  /// Names of actors have no more bytes, and at least one.
  static constexpr size_t name_bytes_max = 256;

  /// The placement to give to a strategy; null if the process is alone.
  [[nodiscard]] troupe::placement* placement();

  /// Has settings compared when this process first looks for an actor of the chief's, so before a
  /// strategy has variables. A process that differs is refused: what looks for the actor throws
  /// `failure`, failed_precondition, naming the first line that differs. A job that has not begun
  /// ends with that where the chief stands, and refuses each process that comes meanwhile; one that
  /// has begun goes on. To be called before the placement is used, in all processes or in none.
  /// @param agreement Lines that all processes must have alike, as `training_options::agreement`,
  /// which is compared when training begins.
  /// Cost: one round trip at the start.
  void compare_settings(const std::string& agreement);

  /// The number of replicas in the whole job.
  [[nodiscard]] uint32_t replicas() const { return replicas_; }

  [[nodiscard]] bool is_chief() const { return is_chief_; }

  /// The processes with replicas, by rank, the chief first: "worker:2".
  [[nodiscard]] std::vector<std::string> trainers() const;

  /// `server_options::start_deadline`.
  [[nodiscard]] job_time start_deadline() const { return start_deadline_; }

  /// This process: "worker 1".
  [[nodiscard]] const cluster_task& task() const { return task_; }

  /// "127.0.0.1:2222", where it listens; empty if it is not dialed.
  [[nodiscard]] std::string target() const;

  /// Lets actors of all processes of the job find an actor of this one by a name, until it ends. An
  /// actor that had the name before has it no more. Thread: any.
  /// Errors: throws `failure` with invalid_argument for a name that is empty or has more than 256
  /// bytes, for an empty handle, and for an actor of another process.
  template <class Handle>
  void publish(const std::string& name, const Handle& actor) {
    publish_actor(name, caf::actor_cast<caf::strong_actor_ptr>(actor));
  }

  /// Looks for an actor that a process of the job has published, or will: `co_await` what
  /// `finding::by` gives, or `wait`. Its requests are answered with an error when its process is
  /// gone, and a monitor is told.
  /// @param Handle As which the actor was published. @param task As `trainers` names it, or "ps:1";
  /// may be this process.
  /// @param deadline How long it is waited for; without, `server_options::start_deadline`.
  /// Errors: throws `failure`: as `publish`; not_found if the job has no such task;
  /// failed_precondition if this process has no connection with it.
  template <class Handle>
  [[nodiscard]] finding<Handle> find(const std::string& task, const std::string& name,
                                     std::optional<job_time> deadline = {}) {
    return {world_, finder_, search_for(task, name, deadline)};
  }

  /// Lets other processes have actors made here: see `spawn_group`.
  /// @param Start The message that an actor begins with, of a schema in `server_options::messages`.
  /// @param make `Handle make(const msg<Start>&)`, called in an actor; what it refers to outlives
  /// the world. The asker is told what it throws.
  /// @returns The offer's life: when it goes, so do the actors that were made. To be kept until
  /// this process has no more to do.
  /// Errors: throws `failure`, as `publish`.
  template <class Start, class Make>
  [[nodiscard]] actor_offer offer(const std::string& kind, Make make) {
    auto making = world_.system().spawn(maker<Start, Make>, nodes().here(), std::move(make));
    actor_offer life{caf::actor_cast<caf::strong_actor_ptr>(making)};
    publish(name_of_maker(kind), making);
    return life;
  }

  /// The name under which `offer` publishes the maker of a kind of actors.
  [[nodiscard]] static std::string name_of_maker(const std::string& kind) {
    return "maker of " + kind;
  }

  /// Waits until the chief's process has come, `start_deadline` at most, and then until it has
  /// left: for processes with nothing else to do. Returns at once in the chief's process, and in
  /// one that is alone. `exit_code_of_join` gives an exit code to each error. Thread: the one that
  /// made the world.
  /// Errors: deadline_exceeded if the chief's process has not come; failed_precondition if this
  /// one dials it, and they refuse each other; where it dials, deadline_exceeded says so;
  /// unavailable, naming it, if it is gone without having said so; cancelled once
  /// `server_options::stop` is asked to stop.
  [[nodiscard]] expected<void> join();

private:
  void begin_to_find(std::stop_token stop);
  void publish_actor(const std::string& name, const caf::strong_actor_ptr& actor);
  [[nodiscard]] find_actor search_for(const std::string& task, const std::string& name,
                                      std::optional<job_time> deadline);
  [[nodiscard]] expected<void> ask_chief(const std::string& agreement);
  [[nodiscard]] membership& nodes();

  world& world_;
  job_time start_deadline_;
  std::vector<std::string> tasks_; ///< The names of the job's nodes: "worker:2".
  finder_actor finder_;
  uint32_t replicas_ = 0;
  bool is_chief_ = true;
  cluster_task task_;
  std::unique_ptr<socket_network> network_; ///< Null if alone.
  std::optional<lone_node> alone_;          ///< Else.
  std::optional<cluster_placement> placement_;
  settings_check_actor settings_check_; ///< Where the chief stands, if settings are compared.
  completion<void> end_; ///< Told when the chief's process is gone, or this one is to stop.
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

/// The name of a job that was given none: what its launcher calls it (TROUPE_JOB_ID,
/// TORCHELASTIC_RUN_ID, SLURM_JOB_ID, with SLURM_STEP_ID where Slurm says what the cluster is, and
/// PMIX_NAMESPACE where Open MPI says it), else one made of its tasks' addresses.
[[nodiscard]] std::string job_name(const resolved_cluster& cluster,
                                   const environment_reader& environment);

/// The `spin` of a process that was given none: TROUPE_SPIN_US, in microseconds; none if that is
/// not set, or empty.
/// Errors: invalid_argument if it is no number of microseconds.
[[nodiscard]] expected<std::optional<std::chrono::microseconds>>
spin_of(const environment_reader& environment);

} // namespace troupe
