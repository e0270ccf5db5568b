// SPDX-License-Identifier: Apache-2.0
// The rules for clusters: each adds its finding, and mends the cluster for the example.
#include "strategies/cluster/cluster_check.hpp"

#include "actors/net/host_port.hpp"
#include "messages/text.hpp"
#include "strategies/cluster/task_types.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>
#include <utility>

namespace troupe {

namespace {

constexpr uint16_t example_port = 2222;

/// The rules, in the order in which they mend: jobs are renamed before tasks are counted.
class checker {
public:
  explicit checker(declared_cluster cluster) { checked_.mended = std::move(cluster); }

  void check_tasks() {
    if (spec().empty()) return;
    check_job_names();
    check_any_task();
    if (spec().empty()) return; // nothing is left that could be meant
    check_at_most_one("chief");
    check_at_most_one("evaluator");
    check_own_type();
    check_own_index();
  }

  void check_addresses() {
    if (spec().empty()) return;
    check_chief();
    for (const auto& job : spec().jobs()) {
      auto tasks = spec().tasks(job);
      for (auto& [index, address] : tasks)
        check_address(job, index, address);
      spec().set_job(job, std::move(tasks));
    }
    check_loopback();
  }

  checked_cluster take() {
    if (is_unclear_ && !checked_.has_problem()) {
      checked_.clearer = checked_.mended;
      if (spec().task_count("chief") == 0) call_worker_0_chief(*checked_.clearer);
    }
    return std::move(checked_);
  }

private:
  cluster_spec& spec() { return checked_.mended.spec; }

  template <class... Arguments>
  void add(cluster_finding::severity weight, fmt::format_string<Arguments...> format,
           Arguments&&... arguments) {
    checked_.findings.push_back(
      {weight,
       {errc::invalid_argument, fmt::format(format, std::forward<Arguments>(arguments)...)}});
  }

  template <class... Arguments>
  void problem(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    add(cluster_finding::severity::problem, format, std::forward<Arguments>(arguments)...);
  }

  template <class... Arguments>
  void note(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    add(cluster_finding::severity::note, format, std::forward<Arguments>(arguments)...);
  }

  // ---- jobs ----

  void check_job_names() {
    auto before = std::move(spec());
    spec() = {};
    for (const auto& job : before.jobs()) {
      auto meant = is_task_type(job) ? job : check_job_name(job, before);
      if (meant.empty()) continue;
      append(meant, before.tasks(job), before.has_job(meant) && meant != job);
      if (checked_.mended.task_type == job) checked_.mended.task_type = meant;
    }
  }

  // Reports a name that is no task type. @returns The type that was meant; empty: none.
  std::string check_job_name(const std::string& job, const cluster_spec& before) {
    auto meant = meant_task_type(job);
    if (job == "master" && !before.has_job("chief")) {
      note("'master' is taken for 'chief', as old Estimators called it");
      is_unclear_ = true;
    } else if (meant.empty()) {
      problem("'{}' is no task type: there are chief, ps, worker and evaluator", job);
      if (before.jobs().size() == 1) meant = "worker";
    } else {
      problem("'{}' is no task type; it is called '{}'", job, meant);
    }
    return meant;
  }

  // Jobs without a task may be listed beside others.
  void check_any_task() {
    if (spec().task_count() > 0) return;
    if (!checked_.has_problem()) problem("no job has a task");
    spec() = {};
  }

  // Two spellings of the same job become one; tasks that are there keep their index.
  void append(const std::string& job, const task_addresses& tasks, bool is_second) {
    if (!is_second && !spec().has_job(job)) {
      spec().set_job(job, tasks);
      return;
    }
    auto all = spec().has_job(job) ? spec().tasks(job) : task_addresses{};
    for (const auto& [index, address] : tasks)
      all.emplace(all.contains(index) ? all.rbegin()->first + 1 : index, address);
    spec().set_job(job, all);
  }

  void check_at_most_one(const std::string& job) {
    if (spec().task_count(job) <= 1) return;
    problem("there must be at most one '{}', not {}", job, spec().task_count(job));
    auto tasks = spec().tasks(job);
    spec().set_job(job, std::vector<std::string>{tasks.begin()->second});
    tasks.erase(tasks.begin());
    if (job == "chief") append("worker", tasks, true);
  }

  // ---- the own task ----

  void check_own_type() {
    auto& type = checked_.mended.task_type;
    if (!type) {
      problem("it does not say which of the tasks this process is");
      type = some_job();
      checked_.mended.task_id = checked_.mended.task_id.value_or(0);
    } else if (!is_task_type(*type)) {
      auto meant = meant_task_type(*type);
      if (meant.empty() || spec().task_count(meant) == 0) meant = some_job();
      problem("this process cannot be a '{}': there are {}", *type,
              fmt::join(jobs_with_tasks(), ", "));
      type = meant;
    } else if (spec().task_count(*type) == 0 && *type != "evaluator") {
      problem("this process is said to be a '{}', but the cluster has only {}", *type,
              fmt::join(jobs_with_tasks(), ", "));
      type = some_job();
      checked_.mended.task_id = 0;
    }
  }

  [[nodiscard]] std::string some_job() {
    return spec().task_count("worker") > 0 ? "worker" : jobs_with_tasks().front();
  }

  [[nodiscard]] std::vector<std::string> jobs_with_tasks() {
    auto jobs = spec().jobs();
    std::erase_if(jobs, [this](const auto& job) { return spec().task_count(job) == 0; });
    return jobs;
  }

  void check_own_index() {
    const auto& type = *checked_.mended.task_type;
    auto& id = checked_.mended.task_id;
    if (!id) {
      problem("it does not say which {} this process is", type);
      id = 0;
    }
    if (*id < 0) {
      problem("{} {} cannot be: tasks are counted from 0", type, *id);
      id = 0;
    }
    if (!spec().has_job(type) || spec().tasks(type).empty()) return;
    const auto& tasks = spec().tasks(type);
    if (tasks.contains(static_cast<uint64_t>(*id))) return;
    auto last = tasks.rbegin()->first;
    if (static_cast<uint64_t>(*id) > last) {
      problem("The `task_id` {} exceeds the maximum id of {}: it has {}, counted from 0", *id, type,
              tasks.size());
    } else {
      problem("{} {} is not in the cluster, only {}", type, *id,
              fmt::join(spec().task_indices(type), ", "));
    }
    id = static_cast<int64_t>(last);
  }

  // ---- addresses ----

  void check_chief() {
    if (spec().task_count("chief") > 0) return;
    const auto workers = spec().has_job("worker") ? spec().tasks("worker") : task_addresses{};
    if (workers.contains(0)) {
      if (spec().task_count() == 1 || checked_.mended.syntax == cluster_syntax::launcher) return;
      note("no chief is listed, so worker 0 is the chief");
      is_unclear_ = true;
      return;
    }
    problem("there is neither a chief nor a worker 0 that could be it");
    cluster_spec with_chief{{"chief", std::vector<std::string>{"chief-host:2222"}}};
    for (const auto& job : spec().jobs())
      if (job != "chief") with_chief.set_job(job, spec().tasks(job));
    spec() = with_chief;
  }

  // The other workers keep their order, and are counted from 0.
  static void call_worker_0_chief(declared_cluster& cluster) {
    auto workers = cluster.spec.tasks("worker");
    auto is_worker = cluster.task_type == "worker";
    if (is_worker && cluster.task_id == 0) cluster.task_type = "chief";
    std::vector<std::string> others;
    for (const auto& [index, address] : workers) {
      if (is_worker && index > 0 && cluster.task_id == static_cast<int64_t>(index))
        cluster.task_id = static_cast<int64_t>(others.size());
      if (index > 0) others.push_back(address);
    }
    cluster_spec with_chief{{"chief", std::vector<std::string>{workers.at(0)}}};
    for (const auto& job : cluster.spec.jobs())
      if (job != "chief" && job != "worker") with_chief.set_job(job, cluster.spec.tasks(job));
    if (!others.empty()) with_chief.set_job("worker", others);
    cluster.spec = with_chief;
  }

  void check_address(const std::string& job, uint64_t index, std::string& text) {
    if (text.empty() && checked_.mended.addresses_may_be_empty)
      return check_unknown_address(job, index);
    auto address = parse_host_port(text);
    auto has_problem = !address;
    auto has_host = true; // that notes may name
    if (!address) {
      problem("{} {}: {}", job, index, address.error().message);
      auto mended = mended_address(text);
      has_host = mended.has_value();
      address = mended.value_or(host_port{"host", example_port});
    }
    address->host = ip_address_of(address->host).value_or(address->host);
    if (is_any_host(address->host)) {
      if (!std::exchange(has_problem, true))
        problem("{} {}: no task can connect to '{}'; it must be an address that the others reach",
                job, index, text);
      address->host = "this-host";
      has_host = false;
    }
    while (auto other = task_at(*address)) {
      if (!std::exchange(has_problem, true))
        problem("{} and {} {} are both at {}; each task needs an address of its own", *other, job,
                index, text);
      address->port = address->port == UINT16_MAX ? example_port : address->port + 1;
    }
    text = to_string(*address);
    taken_.emplace(place_of(*address), fmt::format("{} {}", job, index));
    if (has_host) hosts_.emplace(address->host, fmt::format("{} {}", job, index));
  }

  // Launchers give tasks out in the order of the types' names, so workers come last.
  void check_unknown_address(const std::string& job, uint64_t index) {
    if (index == 0 && job == (spec().task_count("chief") > 0 ? "chief" : "worker"))
      problem("{} 0 is the chief, but its address is not known: make process 0 the chief", job);
    if (job != "ps" || spec().task_count("worker") == 0) return;
    problem("ps {} is to be dialed by workers, but {} says only where the processes of the first "
            "machine are: start at least {} there, or list all addresses with --cluster or "
            "--cluster-file",
            index, checked_.mended.source, spec().task_count() - spec().task_count("worker"));
  }

  static bool is_any_host(std::string_view host) { return host == "0.0.0.0" || host == "::"; }

  // Returns the host of an address without a scheme, a path or a wrong port, at a free port;
  // nothing if it has none.
  [[nodiscard]] static std::optional<host_port> mended_address(std::string text) {
    if (auto scheme = text.find("://"); scheme != std::string::npos) text = text.substr(scheme + 3);
    if (auto sound = parse_host_port(text)) return *sound;
    auto colons = std::ranges::count(text, ':');
    if (auto port = text.rfind(':'); colons > 1 && !ip_address_of(text)) {
      auto in_brackets = fmt::format("[{}]{}", text.substr(0, port), text.substr(port));
      if (auto sound = parse_host_port(in_brackets)) return *sound;
    }
    host_port mended{colons > 1 ? text : text.substr(0, text.find(':')), example_port};
    if (!parse_host_port(to_string(mended))) return std::nullopt;
    return mended;
  }

  // As the system reads and writes it; empty for a name.
  static std::optional<std::string> ip_address_of(const std::string& host) {
    std::array<char, INET6_ADDRSTRLEN> written{};
    in6_addr v6{};
    if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1)
      return ::inet_ntop(AF_INET6, &v6, written.data(), written.size());
    in_addr v4{};
    if (::inet_aton(host.c_str(), &v4) != 0)
      return ::inet_ntop(AF_INET, &v4, written.data(), written.size());
    return std::nullopt;
  }

  // One text for all that are the same address everywhere.
  static std::string place_of(host_port address) {
    auto& host = address.host;
    host = lower_case(host);
    if (host.ends_with('.')) host.pop_back();
    if (host == "localhost") host = "127.0.0.1";
    return to_string(address);
  }

  [[nodiscard]] std::optional<std::string> task_at(const host_port& address) const {
    auto found = taken_.find(place_of(address));
    if (found == taken_.end()) return std::nullopt;
    return found->second;
  }

  // Right on one machine, and the usual slip on several.
  void check_loopback() {
    auto is_here = [](const auto& host) { return is_loopback(host.first); };
    auto here = std::ranges::find_if(hosts_, is_here);
    auto elsewhere = std::ranges::find_if_not(hosts_, is_here);
    if (here == hosts_.end() || elsewhere == hosts_.end()) return;
    note("{} is at {}, which every machine takes for itself, but {} is at {}", here->second,
         here->first, elsewhere->second, elsewhere->first);
  }

  checked_cluster checked_;
  bool is_unclear_ = false;
  std::map<std::string, std::string> taken_; // place -> task
  std::map<std::string, std::string> hosts_; // host -> one of its tasks
};

} // namespace

bool checked_cluster::has_problem() const {
  return std::ranges::any_of(findings, &cluster_finding::is_problem);
}

checked_cluster check_tasks(declared_cluster cluster) {
  checker checker{std::move(cluster)};
  checker.check_tasks();
  return checker.take();
}

checked_cluster check_cluster(declared_cluster cluster) {
  checker checker{std::move(cluster)};
  checker.check_tasks();
  checker.check_addresses();
  return checker.take();
}

std::string problem_line(const std::string& source, const std::vector<cluster_finding>& findings,
                         const std::string& example) {
  std::vector<std::string_view> sentences;
  for (const auto& finding : findings)
    if (finding.is_problem()) sentences.push_back(finding.reason.message);
  if (sentences.empty()) return {};
  auto line = fmt::format("{}: {}", source, fmt::join(sentences, "; "));
  if (example.empty()) return line;
  auto mended = example;
  if (auto end = mended.find('\n'); end != std::string::npos) mended.replace(end, 1, " and ");
  return fmt::format("{}; mended: {}", line, mended);
}

} // namespace troupe
