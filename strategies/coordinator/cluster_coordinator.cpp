// SPDX-License-Identifier: Apache-2.0
// One coordinator for each strategy, and inputs for its workers.
#include "strategies/coordinator/cluster_coordinator.hpp"

#include "messages/errors/throw_failure.hpp"

namespace troupe {

cluster_coordinator::cluster_coordinator(troupe::strategy& strategy, coordinator_options options)
  : service_(strategy.coordinated_by_.lock()) {
  if (service_) return;
  if (dynamic_cast<parameter_server_strategy*>(&strategy) == nullptr)
    throw_failure(errc::invalid_argument,
                  "a coordinator needs a parameter_server_strategy, not a {} strategy",
                  strategy.layout().name);
  service_ = std::make_shared<closure_service>(strategy, std::move(options));
  strategy.coordinated_by_ = service_;
}

per_worker_dataset cluster_coordinator::create_per_worker_dataset(
  const std::function<dataset(const input_context&)>& make) {
  check_given("create_per_worker_dataset", make);
  auto iterate = [make](const input_context& context, uint32_t pass) {
    return std::make_shared<dataset_iterator>(make(context).iterate(pass));
  };
  auto number = service_->registry().add({iterate, &typeid(dataset_iterator)});
  return {service_, number};
}

per_worker_dataset cluster_coordinator::create_per_worker_dataset(const dataset& source) {
  return create_per_worker_dataset([source](const input_context&) { return source; });
}

void worker_part::check_one_for_each(size_t values) const {
  if (values != of->workers())
    throw_failure(errc::invalid_argument, "there are {} values for {} workers; give one for each",
                  values, of->workers());
}

per_worker_iterator per_worker_dataset::iterator() const {
  auto service = of_.lock();
  if (!service)
    throw_failure(
      errc::failed_precondition,
      "iterator was called on a dataset whose coordinator has ended; keep the coordinator");
  service->check_call("iterator");
  return {service.get(), service->new_instance(resource_, (*next_pass_)++)};
}

void per_worker_iterator::next() const {
  throw_failure(
    errc::unimplemented,
    "next was called on the iterators of all workers; give them to a function that takes a "
    "dataset_iterator&, and schedule it");
}

} // namespace troupe
