// SPDX-License-Identifier: Apache-2.0
// A mode of libtorch's dispatcher that names a generator wherever the caller has named none.
#include "strategies/torch/torch_draws.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>
#include <utility>

namespace troupe {

namespace {

// The key of libtorch for modes of this kind. Operations look at it on threads that include it.
constexpr auto mode = c10::DispatchKey::TESTING_ONLY_GenericMode;

// The generator of the innermost `torch_draws` of this thread.
thread_local at::Generator current;

bool is_generator(const c10::Argument& argument) {
  const auto& type = argument.type();
  return type->kind() == c10::TypeKind::OptionalType
         && type->containedTypes().front()->kind() == c10::TypeKind::GeneratorType;
}

void draw_from_current(const c10::OperatorHandle& operation, c10::DispatchKeySet keys,
                       torch::jit::Stack* stack) {
  const auto& arguments = operation.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i)
    if (auto& value = torch::jit::peek(*stack, i, arguments.size());
        is_generator(arguments[i]) && value.isNone())
      value = current;
  auto below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, mode);
  operation.redispatchBoxed(below, stack);
}

} // namespace

// All operations pass the mode by, but those of libtorch that may be given a generator.
TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, all) {
  all.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, TESTING_ONLY_GenericMode, operations) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    auto found = dispatcher.findSchema(name);
    if (!found || name.getNamespace() != "aten") continue;
    for (const auto& argument : found->schema().arguments())
      if (is_generator(argument)) {
        operations.impl(c10::toString(name).c_str(),
                        torch::CppFunction::makeFromBoxedFunction<&draw_from_current>());
        break;
      }
  }
}

struct torch_draws::diversion {
  at::Generator before;
  c10::impl::IncludeDispatchKeyGuard included{mode};
};

torch_draws::torch_draws(const random_key& key) : diversion_(std::make_unique<diversion>()) {
  auto seed = random_stream{key}.next_u64();
  diversion_->before = std::exchange(current, at::detail::createCPUGenerator(seed));
}

torch_draws::~torch_draws() {
  current = std::move(diversion_->before);
}

} // namespace troupe
