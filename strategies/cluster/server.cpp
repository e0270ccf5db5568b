// SPDX-License-Identifier: Apache-2.0
// Makes a network and a placement of a resolved cluster.
#include "strategies/cluster/server.hpp"

#include "actors/net/host_port.hpp"
#include "actors/net/remote_proxy.hpp"
#include "actors/training/agreement.hpp"
#include "actors/training/settings_check.hpp"
#include "actors/world/ask.hpp"
#include "kernels/tensor/crc32c.hpp"
#include "messages/cluster_message.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/errors/users_code.hpp"
#include "messages/text.hpp"
#include "strategies/cluster/launcher_notice.hpp"
#include "strategies/cluster/listening_card.hpp"

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <span>
#include <thread>

namespace troupe {

namespace {

// Messages to others that a leaving process still has to write.
constexpr std::chrono::seconds leave_timeout{5};

constexpr const char* settings_check_name = "settings check";

uint32_t count_of(const resolved_cluster& cluster, std::string_view type) {
  return static_cast<uint32_t>(std::ranges::count(cluster.tasks, type, &cluster_task::type));
}

cluster_layout layout_of(const resolved_cluster& cluster, const server_options& options) {
  auto replicas = options.replicas;
  cluster_layout layout{.has_chief = count_of(cluster, "chief") > 0,
                        .ps = count_of(cluster, "ps"),
                        .workers = count_of(cluster, "worker"),
                        .workers_meet = options.workers_meet,
                        .owners_meet = options.replicate_owners > 1};
  auto trainers = std::max(1U, layout.trainer_count());
  if (replicas % trainers != 0)
    throw_failure(errc::invalid_argument,
                  "{} replicas cannot be shared evenly by {} workers (a chief is one); give a "
                  "multiple of {}",
                  replicas, trainers, trainers);
  if (replicas > 0) layout.replicas_per_worker = replicas / trainers;
  value_or_throw(layout.validate());
  return layout;
}

// An evaluator takes no part in the training of others, so no process waits for it.
void check_task(const resolved_cluster& cluster) {
  cluster.require_sound();
  if (cluster.is_evaluator())
    throw_failure(errc::failed_precondition,
                  "an evaluator has no server, since it takes no part in the training: let it look "
                  "at the job's checkpoints with a sidecar_evaluator");
}

// The dialer of a node, if there is one: the one with the higher index dials.
std::optional<node_index> dialer_of(const socket_network_options& network, node_index node) {
  for (auto other = node + 1; other < network.nodes.size(); ++other)
    if (network.talk(node, other)) return other;
  return std::nullopt;
}

// Some launchers do not know the addresses of all.
void check_addresses(const socket_network_options& network) {
  for (node_index node = 0; node < network.nodes.size(); ++node) {
    auto dialer = network.nodes[node].address.empty() ? dialer_of(network, node) : std::nullopt;
    if (dialer)
      throw_failure(errc::invalid_argument,
                    "{} has no address, and {} has to connect to it; list the addresses of all "
                    "tasks with --cluster or --cluster-file",
                    network.nodes[node].name, network.nodes[*dialer].name);
  }
}

// A name may come some seconds after the process that goes by it, as that of a pod does.
expected<network_card> awaited_card(const resolved_cluster& cluster, const std::string& wanted,
                                    const machine_networks& machine,
                                    const server_options& options) {
  using clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds pause{1};
  const auto began = clock::now();
  auto card = listening_card(cluster, wanted, machine);
  for (auto has_warned = false; !card && card.error().code == errc::unavailable;
       has_warned = true) {
    if (options.stop.stop_requested() || clock::now() - began + pause > options.start_deadline)
      break;
    if (!has_warned) options.on_warning(card.error().message + "; it is looked for again");
    std::this_thread::sleep_for(pause);
    card = listening_card(cluster, wanted, machine);
  }
  return card;
}

// Which addresses there are here, and at which of them to listen, if others dial this process.
void choose_addresses(const resolved_cluster& cluster, const server_options& options,
                      socket_network_options& network) {
  using std::chrono::milliseconds;
  auto timeout = std::chrono::duration_cast<milliseconds>(options.start_deadline);
  auto machine = value_or_throw(own_networks(timeout, options.stop));
  for (const auto& card : machine.cards)
    network.own_addresses.push_back(card.address);
  if (!dialer_of(network, network.self)) return;
  auto wanted = wanted_card(cluster, options.interface, process_environment());
  auto card = value_or_throw(awaited_card(cluster, wanted, machine, options));
  network.listen_host = card.address;
  auto note = listening_note(cluster, wanted, card);
  if (!note.empty()) options.on_warning(note);
}

std::string node_name(const cluster_task& task) {
  return fmt::format("{}:{}", task.type, task.index);
}

std::vector<std::string> node_names(const resolved_cluster& cluster) {
  std::vector<std::string> names;
  for (const auto& task : cluster.tasks)
    if (task.type != "evaluator") names.push_back(node_name(task));
  return names;
}

// Refuses a name under which no actor can be published.
void check_name(const std::string& name) {
  if (!name.empty() && name.size() <= server::name_bytes_max) return;
  throw_failure(errc::invalid_argument, "'{}' is no name for an actor: give one of 1 to {} bytes",
                name, server::name_bytes_max);
}

socket_network_options network_of(const resolved_cluster& cluster, const cluster_layout& layout,
                                  server_options options) {
  socket_network_options network{.job = std::move(options.job),
                                 .self = static_cast<node_index>(*cluster.own),
                                 .tls = std::move(options.tls),
                                 .insecure_network = options.insecure_network,
                                 .window_bytes = options.window_bytes};
  network.spin = options.spin ? options.spin : value_or_throw(spin_of(process_environment()));
  if (network.job.empty()) network.job = job_name(cluster, process_environment());
  for (const auto& task : cluster.tasks)
    if (task.type != "evaluator") network.nodes.push_back({node_name(task), task.address});
  network.talk = [layout](node_index one, node_index other) { return layout.talk(one, other); };
  check_addresses(network);
  choose_addresses(cluster, options, network);
  network.messages = std::move(options.messages);
  network.on_warning = std::move(options.on_warning);
  return network;
}

} // namespace

server::server(world& world, const resolved_cluster& cluster, server_options options)
  : world_(world), start_deadline_(options.start_deadline),
    replicas_(std::max(1U, options.replicas)) {
  cluster.require_sound();
  options.on_warning = line_teller("on_warning of a server", std::move(options.on_warning));
  task_ = cluster.self();
  tasks_ = node_names(cluster);
  if (cluster.is_alone()) {
    alone_.emplace(world.system(), tasks_.front());
    begin_to_find(std::move(options.stop));
    return;
  }
  check_task(cluster);
  auto layout = layout_of(cluster, options);
  auto stop = options.stop;
  auto tell = options.on_warning;
  network_ = value_or_throw(
    socket_network::open(world.system(), network_of(cluster, layout, std::move(options))));
  replicas_ = layout.replica_count();
  is_chief_ = *cluster.own == layout.chief_node();
  placement_.emplace(layout, *network_, start_deadline_);
  placement_->on_waiting(std::move(tell));
  placement_->on_spared(
    [](const spared_tasks& spared) { tell_launcher(spared, process_environment()); });
  network_->on_loss(
    [chief = layout.chief_node(), end = end_](node_index node, const error& reason) {
      if (node != chief) return;
      auto on_purpose = reason.code == errc::cancelled;
      end(on_purpose ? expected<void>{} : tl::unexpected<error>(reason));
    });
  begin_to_find(std::move(stop));
}

// Last: a server that was not made leaves no actor behind.
void server::begin_to_find(std::stop_token stop) {
  finder_ = world_.system().spawn(finder, &nodes());
  on_stop_.emplace(std::move(stop), [this] {
    error reason{errc::cancelled, "asked to stop"};
    if (placement_) placement_->give_up(reason);
    end_(tl::unexpected<error>(reason));
    caf::anon_send(finder_, end_searches{reason});
  });
}

server::~server() {
  on_stop_.reset();
  // It looks at the network until it has ended.
  end_actor(world_, std::exchange(finder_, {}), caf::exit_reason::user_shutdown, world::for_ever);
  // It refers to the placement. Its answers are on their way when it has ended.
  end_actor(world_, std::exchange(settings_check_, {}), caf::exit_reason::user_shutdown,
            world::for_ever);
  if (!network_) return;
  network_->on_loss({});
  network_->leave(leave_timeout);
}

troupe::placement* server::placement() {
  return placement_ ? &*placement_ : nullptr;
}

void server::compare_settings(const std::string& agreement) {
  if (!placement_) return;
  value_or_throw(placement_->enter(settings_check_name));
  auto shortened = short_agreement(agreement);
  if (!is_chief_) return placement_->on_meeting([this, shortened] { return ask_chief(shortened); });
  settings_check_ = world_.system().spawn(
    settings_check,
    settings_check_config{.members = placement_->others(),
                          .agreement = shortened,
                          .on_refusal = [this](const error& why) { placement_->refuse(why); },
                          .why_not = [this] { return placement_->refusal(); }});
  world_.introduce(settings_check_.id(), settings_check_name);
  placement_->put(settings_check_name, settings_check_);
}

// A check that is gone refuses nothing: the search for the actor tells why the chief's process is
// gone.
expected<void> server::ask_chief(const std::string& agreement) {
  auto check = placement_->find<settings_check_actor>("server", settings_check_name);
  if (!check) return tl::unexpected<error>(check.error());
  entrance own{.member = placement_->here(), .agreement = agreement};
  auto answer = ask<msg<wire::JobBegins>>(world_, *check, make_enter_job(own));
  if (answer || answer.error().code == errc::unavailable) return {};
  return tl::unexpected<error>(answer.error());
}

std::vector<std::string> server::trainers() const {
  if (!placement_) return {node_name(task_)};
  std::vector<std::string> names;
  const auto& layout = placement_->layout();
  for (uint32_t rank = 0; rank < layout.trainer_count(); ++rank)
    names.push_back(tasks_[layout.trainer_node(rank)]); // indices may have gaps
  return names;
}

membership& server::nodes() {
  if (network_) return *network_;
  return *alone_;
}

void server::publish_actor(const std::string& name, const caf::strong_actor_ptr& actor) {
  check_name(name);
  if (!actor)
    throw_failure(errc::invalid_argument, "'{}' cannot be published: the handle is empty", name);
  if (original_of(actor))
    throw_failure(
      errc::invalid_argument,
      "'{}' cannot be published here: it is an actor of another process; publish it there", name);
  publish_for_finders(*nodes().here(), name, actor);
}

find_actor server::search_for(const std::string& task, const std::string& name,
                              std::optional<job_time> deadline) {
  check_name(name);
  auto found = std::ranges::find(tasks_, task == "chief" ? "chief:0" : task);
  if (found == tasks_.end())
    throw_failure(errc::not_found, "no task of the job is called {}; there are {}", task,
                  fmt::join(tasks_, ", "));
  auto at = static_cast<node_index>(found - tasks_.begin());
  auto here = nodes().here()->address().node;
  if (placement_ && at != here && !placement_->layout().talk(here, at))
    throw_failure(errc::failed_precondition,
                  "{} has no connection with {}; publish the actor at {}, which all can reach, or "
                  "let workers meet (server_options::workers_meet)",
                  tasks_[here], task, tasks_[placement_->layout().chief_node()]);
  return {at, name, deadline.value_or(start_deadline_)};
}

std::string server::target() const {
  return network_ ? network_->listening_at() : std::string{};
}

expected<void> server::join() {
  if (!network_ || is_chief_) return {};
  return placement_->await_chief(end_.known()).and_then([this] { return end_.wait(world_); });
}

std::string job_name(const resolved_cluster& cluster, const environment_reader& environment) {
  auto value_of = [&](const char* name) { return environment(name).value_or(""); };
  if (auto name = value_of("TROUPE_JOB_ID"); !name.empty()) return name;
  auto run = value_of("TORCHELASTIC_RUN_ID");
  if (!run.empty() && run != "none") return run; // torchrun's default is "none"
  // A step, and a call of mpirun, are a job only if the cluster is what they started: else each
  // task may have one of its own.
  auto slurm = value_of("SLURM_JOB_ID");
  auto step = value_of("SLURM_STEP_ID");
  if (cluster.source == "Slurm" && !step.empty()) return fmt::format("{}.{}", slurm, step);
  if (!slurm.empty()) return slurm;
  auto call = value_of("PMIX_NAMESPACE");
  if (cluster.source == "Open MPI" && !call.empty()) return call;
  std::string tasks;
  for (const auto& task : cluster.tasks)
    tasks += fmt::format("{}:{}={};", task.type, task.index, task.address);
  return fmt::format("cluster-{:08x}", cpu::crc32c(std::as_bytes(std::span{tasks})));
}

expected<std::optional<std::chrono::microseconds>> spin_of(const environment_reader& environment) {
  auto text = environment("TROUPE_SPIN_US");
  if (!text || text->empty()) return std::nullopt;
  if (auto number = number_of<uint32_t>(*text)) return std::chrono::microseconds{*number};
  return fail(
    errc::invalid_argument,
    fmt::format("TROUPE_SPIN_US is '{}'; give it a whole number of microseconds for which "
                "to look for messages before sleeping, 0 for none, or unset it",
                *text));
}

} // namespace troupe
