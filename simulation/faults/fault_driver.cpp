// SPDX-License-Identifier: Apache-2.0
// Planned and drawn faults, and the nodes that are given up because of them.
#include "simulation/faults/fault_driver.hpp"

#include "simulation/network/end_of_time.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

constexpr job_time for_good = job_time::max();

double product(const std::vector<double>& factors) {
  return std::accumulate(factors.begin(), factors.end(), 1.0, std::multiplies<>{});
}

void remove_one(std::vector<double>& factors, double factor) {
  factors.erase(std::ranges::find(factors, factor));
}

} // namespace

fault_driver::fault_driver(simulated_network& network, fault_plan plan, uint32_t replicas,
                           uint64_t seed)
  : network_(network), nodes_(network.nodes()), events_(network.events()), plan_(std::move(plan)),
    replicas_(replicas), seed_(seed), freezes_(replicas), freezes_drawn_(replicas, job_time{0}) {
  network_.silence().on_give_up = [this](node_index by, node_index lost) { on_give_up(by, lost); };
  for (const auto& fault : plan_.faults)
    plan_fault(fault);
  for (uint32_t replica = 0; replica < replicas_; ++replica) {
    if (plan_.rates.crash_mean > job_time{0}) draw_crash(replica);
    draw_freezes(replica, job_time{1});
  }
  if (plan_.rates.wave_mean > job_time{0}) draw_wave();
  if (plan_.rates.swizzle_mean > job_time{0}) draw_swizzle();
}

// ---- planned faults ----

void fault_driver::plan_fault(const fault& fault) {
  if (fault.kind != fault_kind::freeze)
    return events_.at(fault.at, [this, fault] { begin(fault); });
  auto end = fault.lasts > job_time{0} ? fault.at + fault.lasts : for_good;
  for (auto node : nodes_of(fault.who))
    freeze_between(nodes_.name_of(node), node, {fault.at, end});
}

void fault_driver::begin(const fault& fault) {
  auto nodes = nodes_of(fault.who);
  switch (fault.kind) {
  case fault_kind::crash:
    for (auto node : nodes)
      crash(node, fault.lasts, "crash");
    return;
  case fault_kind::crash_with_token:
    for (auto node : nodes)
      armed_[node] = fault.lasts;
    return;
  case fault_kind::freeze:
    return; // was planned with its end
  case fault_kind::partition:
    return cut_off(fault);
  case fault_kind::slow:
    return slow_down(fault);
  case fault_kind::messages:
    return put_at_risk(fault);
  case fault_kind::corrupt:
    for (auto node : nodes)
      corrupt_[node - nodes_.replica_node(0)] = fault.how;
    return;
  case fault_kind::skew:
    return skew(fault);
  case fault_kind::swizzle:
    return swizzle(nodes, fault.lasts);
  }
}

void fault_driver::crash(node_index node, job_time lasts, const char* event) {
  if (!nodes_.is_up(node)) return;
  tell(event, nodes_.name_of(node));
  auto is_replica = nodes_.is_replica(node);
  network_.crash(node, is_replica && lasts == job_time{0});
  auto is_back = lasts > job_time{0} || takes_back(node);
  if (!is_replica && is_back) job_restarts_ = events_.now() + lasts;
  if (!is_replica && !is_back) never_restarts_ = true;
  if (lasts > job_time{0} && (is_replica || takes_back(node)))
    events_.at(events_.now() + lasts, [this, node] { come_back(node); });
}

// Where owners are replicated, a job goes on without one of them. The loss of a second one ends the
// job, which begins again at once.
bool fault_driver::takes_back(node_index node) const {
  return node != nodes_.chief_node() && network_.placement().takes_owners_back();
}

void fault_driver::come_back(node_index node) {
  tell("restart", nodes_.name_of(node));
  network_.restart(node);
}

void fault_driver::on_delivery(const delivery& delivery) {
  if (armed_.empty() || std::string_view{delivery.kind} != "Token") return;
  auto found = armed_.find(delivery.to);
  if (found == armed_.end()) return;
  auto [node, lasts] = *found;
  armed_.erase(found);
  events_.at(events_.now(),
             [this, node = node, lasts = lasts] { crash(node, lasts, "crash_with_token"); });
}

void fault_driver::freeze_between(const std::string& name, node_index node, window freeze) {
  if (nodes_.is_replica(node)) {
    auto& windows = freezes_[node - nodes_.replica_node(0)];
    windows.insert(std::ranges::upper_bound(windows, freeze.begin, {}, &window::begin), freeze);
  }
  events_.at(freeze.begin, [this, node, name, end = freeze.end] {
    tell("freeze", name);
    silence(node, end);
    network_.freeze(node);
  });
  if (freeze.end == for_good) return;
  events_.at(freeze.end, [this, node, name] {
    tell("thaw", name);
    network_.thaw(node);
  });
}

// Work stops while its node is frozen, and goes on when it has thawed; freezes may overlap.
job_time fault_driver::with_freezes(uint32_t replica, job_time time) {
  auto begin = events_.now();
  auto end = begin + time;
  auto thawed = begin;
  draw_freezes(replica, end);
  for (size_t i = 0; i < freezes_[replica].size(); ++i) { // drawing adds later ones
    auto freeze = freezes_[replica][i];
    if (freeze.end <= thawed || freeze.begin >= end) continue;
    if (freeze.end == for_good) return for_good / 4; // it never ends
    end += freeze.end - std::max(freeze.begin, thawed);
    thawed = freeze.end;
    draw_freezes(replica, end);
  }
  return end - begin;
}

void fault_driver::cut_off(const fault& fault) {
  auto set_of = [this](const std::vector<std::string>& names) {
    auto nodes = nodes_of(names);
    return std::set<node_index>{nodes.begin(), nodes.end()};
  };
  auto nodes = set_of(fault.who);
  auto others = fault.other.empty() ? std::set<node_index>{} : set_of(fault.other);
  std::function<bool(node_index)> here = [nodes](node_index node) { return nodes.contains(node); };
  std::function<bool(node_index)> there = [nodes, others](node_index node) {
    return others.empty() ? !nodes.contains(node) : others.contains(node);
  };
  tell("partition");
  auto end = end_of(fault);
  for (const auto* side : {&nodes, &others})
    for (auto node : *side)
      silence(node, end);
  std::vector<uint64_t> cuts{network_.sever({here, there})};
  if (!fault.one_way) cuts.push_back(network_.sever({there, here}));
  if (end == for_good) return;
  events_.at(end, [this, cuts] {
    tell("heal");
    for (auto number : cuts)
      network_.heal(number);
  });
}

void fault_driver::skew(const fault& fault) {
  tell("skew");
  auto nodes = nodes_of(fault.who);
  for (auto node : nodes) {
    rates_[node].push_back(fault.rate);
    network_.clocks().set(node, fault.ahead, product(rates_[node]));
  }
  if (fault.lasts == job_time{0}) return;
  events_.at(end_of(fault), [this, nodes, rate = fault.rate] {
    for (auto node : nodes) {
      remove_one(rates_[node], rate);
      network_.clocks().set(node, job_time{0}, product(rates_[node]));
    }
  });
}

job_time fault_driver::on_its_clock(uint32_t replica, job_time time) const {
  return network_.clocks().error_of(nodes_.replica_node(replica)).counted_in(time);
}

// ---- nodes that are given up ----

void fault_driver::silence(node_index node, job_time until) {
  auto& end = silent_until_[node];
  end = std::max(end, until);
}

// A node that has lost the chief, or is lost by it, has no part in the job any more; nor has a
// replica that has lost an owner without a mirror, or is lost by it.
void fault_driver::on_give_up(node_index by, node_index lost) {
  auto chief = nodes_.chief_node();
  auto [other, node] = std::minmax(by, lost);
  auto is_replica = nodes_.is_replica(node);
  auto loses_owner
    = is_replica && !nodes_.is_replica(other) && !network_.placement().takes_owners_back();
  if (other != chief && !loses_owner) return;
  auto until = std::max(events_.now(), silent_until_[node]);
  if (other != chief) until = std::max(until, silent_until_[other]);
  tell("given up", nodes_.name_of(node));
  auto replica = node - nodes_.replica_node(0);
  if (!is_replica) {
    until = std::max(until, silent_until_[chief]);
    if (until < for_good) job_restarts_ = until;
    return;
  }
  auto back = until + draw_return(replica);
  network_.crash(node, until == for_good);
  if (until < for_good) events_.at(back, [this, node] { come_back(node); });
}

void fault_driver::slow_down(const fault& fault) {
  auto nodes = nodes_of(fault.who);
  tell("slow");
  for (auto node : nodes) {
    factors_[node].push_back(fault.factor);
    network_.transport().slow_down(node, product(factors_[node]));
  }
  if (fault.lasts == job_time{0}) return;
  events_.at(end_of(fault), [this, nodes, factor = fault.factor] {
    tell("fast");
    for (auto node : nodes) {
      remove_one(factors_[node], factor);
      network_.transport().slow_down(node, product(factors_[node]));
    }
  });
}

void fault_driver::put_at_risk(const fault& fault) {
  tell("messages");
  std::set<node_index> nodes;
  if (!fault.who.empty())
    for (auto node : nodes_of(fault.who))
      nodes.insert(node);
  auto number = network_.injector().begin({fault.message, std::move(nodes), fault.probabilities});
  if (fault.lasts > job_time{0})
    events_.at(end_of(fault), [this, number] { network_.injector().end(number); });
}

// A node that is cut off later may be back earlier: orders that no single fault would bring about.
// Source: FoundationDB's swizzled clogging.
void fault_driver::swizzle(const std::vector<node_index>& nodes, job_time lasts) {
  auto draws = stream("swizzle", 0);
  std::vector<node_index> chosen;
  for (auto node : nodes)
    if (draws.uniform() < 0.5) chosen.push_back(node);
  for (auto node : chosen) {
    auto half = static_cast<double>(lasts.count()) / 2;
    job_time begin{static_cast<int64_t>(half * draws.uniform())};
    job_time end{static_cast<int64_t>(half + half * draws.uniform())};
    events_.at(events_.now() + begin, [this, node, time = end - begin] {
      tell("clog", nodes_.name_of(node));
      silence(node, events_.now() + time);
      auto is_it = [node](node_index other) { return other == node; };
      auto out = network_.sever({is_it, {}});
      auto in = network_.sever({{}, is_it});
      events_.at(events_.now() + time, [this, node, out, in] {
        tell("unclog", nodes_.name_of(node));
        network_.heal(out);
        network_.heal(in);
      });
    });
  }
}

// ---- drawn faults ----

random_stream fault_driver::stream(const char* purpose, uint32_t index) {
  return random_stream{random_key{seed_, purpose, index, draws_[{purpose, index}]++}};
}

job_time fault_driver::exponential(const char* purpose, uint32_t index, job_time mean) {
  return scaled(mean, stream(purpose, index).exponential());
}

job_time fault_driver::draw_return(uint32_t replica) {
  auto mean = plan_.rates.return_mean;
  if (mean == job_time{0}) return mean;
  auto share = plan_.rates.permanent;
  if (share > 0 && stream("permanent", replica).uniform() < share) return job_time{0};
  return std::max(job_time{1}, exponential("return", replica, mean));
}

void fault_driver::draw_crash(uint32_t replica) {
  auto time = std::max(events_.now(), plan_.rates.warm_up)
              + exponential("crash", replica, plan_.rates.crash_mean);
  events_.at(time, [this, replica] {
    auto absence = draw_return(replica);
    auto is_allowed = may_crash();
    if (is_allowed) crash(nodes_.replica_node(replica), absence, "crash");
    if (!is_allowed || absence > job_time{0})
      events_.at(events_.now() + absence, [this, replica] { draw_crash(replica); });
  });
}

void fault_driver::draw_wave() {
  auto begin = std::max(events_.now(), plan_.rates.warm_up);
  events_.at(begin + exponential("wave", 0, plan_.rates.wave_mean), [this] {
    auto draws = stream("wave members", 0);
    std::vector<uint32_t> replicas(replicas_);
    std::iota(replicas.begin(), replicas.end(), 0U);
    for (uint32_t i = 0; i < plan_.rates.wave_size; ++i) {
      auto rest = static_cast<double>(replicas_ - i);
      std::swap(replicas[i], replicas[i + static_cast<uint32_t>(rest * draws.uniform())]);
      auto absence = draw_return(replicas[i]);
      if (may_crash()) crash(nodes_.replica_node(replicas[i]), absence, "crash");
    }
    draw_wave();
  });
}

void fault_driver::draw_swizzle() {
  events_.at(events_.now() + exponential("swizzles", 0, plan_.rates.swizzle_mean), [this] {
    swizzle(nodes_of({}), plan_.rates.swizzle_lasts);
    draw_swizzle();
  });
}

void fault_driver::draw_freezes(uint32_t replica, job_time until) {
  const auto& rates = plan_.rates;
  if (rates.freeze_mean == job_time{0}) return;
  auto& drawn = freezes_drawn_[replica];
  auto node = nodes_.replica_node(replica);
  while (drawn <= until) {
    window next{drawn + exponential("freeze", replica, rates.freeze_mean), job_time{0}};
    next.end = drawn = next.begin + exponential("thaw", replica, rates.thaw_mean) + job_time{1};
    freeze_between(nodes_.name_of(node), node, next);
    events_.at(next.end, [this, replica, end = next.end] { draw_freezes(replica, end); });
  }
}

// ---- queries ----

corruption fault_driver::next_corruption(uint32_t replica) {
  auto found = corrupt_.find(replica);
  if (found == corrupt_.end()) return corruption::none;
  auto kind = found->second;
  corrupt_.erase(found);
  tell("corrupt", fmt::format("replica {}", replica));
  return kind;
}

std::optional<job_time> fault_driver::restart_time() {
  auto time = std::exchange(job_restarts_, std::nullopt);
  return never_restarts_ ? std::nullopt : time;
}

std::vector<node_index> fault_driver::nodes_of(const std::vector<std::string>& names) const {
  std::vector<node_index> nodes;
  for (node_index node = 0; node < nodes_.node_count(); ++node) {
    auto is_chosen = names.empty() ? nodes_.is_replica(node)
                                   : std::ranges::count(names, nodes_.name_of(node)) > 0;
    if (is_chosen) nodes.push_back(node);
  }
  return nodes;
}

bool fault_driver::may_crash() const {
  if (plan_.rates.down_max == 0) return true;
  uint32_t down = 0;
  for (uint32_t replica = 0; replica < replicas_; ++replica)
    down += nodes_.is_up(nodes_.replica_node(replica)) ? 0 : 1;
  return down < plan_.rates.down_max;
}

// The end of a fault that begins now.
job_time fault_driver::end_of(const fault& fault) const {
  return fault.lasts > job_time{0} ? events_.now() + fault.lasts : for_good;
}

void fault_driver::tell(const char* event, const std::string& node) {
  ++counts_[fmt::format("fault {}", event)];
  if (on_fault)
    on_fault(
      {events_.now(), node.empty() ? std::string{event} : fmt::format("{} {}", event, node)});
}

} // namespace troupe
