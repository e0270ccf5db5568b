// SPDX-License-Identifier: Apache-2.0
// Lends a module the variables' memory, and takes the gradients that libtorch's autograd leaves.
#include "strategies/torch/lent_module.hpp"

#include "messages/errors/throw_failure.hpp"
#include "strategies/torch/torch_draws.hpp"
#include "strategies/torch/torch_products.hpp"
#include "strategies/torch/torch_tensors.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>
#include <utility>

namespace troupe {

namespace {

using torch::autograd::variable_list;

// `function()`; what libtorch throws becomes a failure of one line.
template <class Function>
auto in_our_words(const Function& function) {
  try {
    return function();
  } catch (const c10::Error& failed) {
    std::string text = failed.what_without_backtrace();
    throw_failure(errc::user_code, "libtorch: {}", text.substr(0, text.find('\n')));
  }
}

struct named_parameter {
  std::string name;
  at::Tensor value;
};

std::vector<named_parameter> parameters_of(const torch::nn::Module& module) {
  std::vector<named_parameter> all;
  for (const auto& parameter : module.named_parameters())
    if (parameter.value().defined()) all.push_back({parameter.key(), parameter.value()});
  require(!all.empty(), "a module has no parameters; there is nothing to train");
  return all;
}

parameter_form form_of(const named_parameter& parameter) {
  const auto& [name, value] = parameter;
  auto described = from_torch(value);
  if (described.type() == dtype::f16 || described.type() == dtype::bf16)
    throw_failure(errc::type_mismatch, "it is {}; variables are f32, f64, i32 or i64",
                  to_string(described.type()));
  require(value.is_leaf(), "it is computed from another tensor; register its detach()");
  require(value.is_contiguous(), "its elements have gaps between them; make it contiguous()");
  return {name, described.type(), described.extents(), value.requires_grad()};
}

std::vector<parameter_form> forms_of(const std::vector<named_parameter>& parameters) {
  std::vector<parameter_form> forms;
  for (const auto& parameter : parameters)
    try {
      forms.push_back(form_of(parameter));
    } catch (const failure& refused) {
      throw_failure(refused.reason().code, "parameter '{}': {}", parameter.name,
                    refused.reason().message);
    }
  return forms;
}

// A variable has elements of its own, so what is one array for the module would become two.
void check_apart(const std::vector<named_parameter>& parameters) {
  for (size_t i = 0; i < parameters.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (parameters[i].value.storage().is_alias_of(parameters[j].value.storage()))
        throw_failure(
          errc::invalid_argument,
          "parameters '{}' and '{}' share their elements; register one of them and use it in "
          "both places, as by torch::linear(x, embedding->weight)",
          parameters[j].name, parameters[i].name);
}

// Tells of a parameter's gradient, after autograd has added up all of it.
class gradient_hook : public torch::autograd::FunctionPostHook {
public:
  using taker = std::function<void()>;

  explicit gradient_hook(std::shared_ptr<const taker> ready) : ready_(std::move(ready)) {}

  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    if (*ready_) (*ready_)();
    return outputs;
  }

private:
  std::shared_ptr<const taker> ready_;
};

void check_values(std::span<const tensor> values, const std::vector<parameter_form>& forms) {
  if (values.size() != forms.size())
    throw_failure(errc::invalid_argument, "{} values for a module of {} parameters", values.size(),
                  forms.size());
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].type() != forms[i].type || values[i].extents() != forms[i].extents)
      throw_failure(errc::invalid_argument, "the value of parameter '{}' is {} {}, not {} {}",
                    forms[i].name, to_string(values[i].type()), to_string(values[i].extents()),
                    to_string(forms[i].type), to_string(forms[i].extents));
}

void check_loss(const at::Tensor& loss) {
  require(loss.defined(), "the loss of a module is an undefined tensor");
  if (loss.dim() != 0)
    throw_failure(
      errc::invalid_argument,
      "the loss of a module has shape {}, but must be a scalar: return its mean() or sum()",
      to_string(shape{loss.sizes().vec()}));
  require(loss.requires_grad(), "the loss of a module does not depend on any of its parameters");
}

void check_wanted(const std::stop_token& stop) {
  if (stop.stop_requested()) throw_failure(errc::cancelled, "the computation was told to stop");
}

} // namespace

struct lent_module::parts {
  std::shared_ptr<torch::nn::Module> module;
  std::vector<named_parameter> parameters;
  std::vector<parameter_form> forms;
  std::vector<at::Tensor> placeholders; ///< Memory that parameters refer to between computations.
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulating; ///< By trained parameter.
  std::vector<std::shared_ptr<gradient_hook::taker>> on_gradient;   ///< By parameter.
  std::vector<std::pair<at::Tensor, uint32_t>> buffers; ///< And how often they were written.
  std::vector<std::string> buffer_names;

  explicit parts(std::shared_ptr<torch::nn::Module> made)
    : module(std::move(made)), parameters(parameters_of(*module)), forms(forms_of(parameters)) {
    check_apart(parameters);
    for (const auto& [name, value] : parameters) {
      placeholders.push_back(
        at::zeros({}, value.options().requires_grad(false)).expand(value.sizes()));
      on_gradient.push_back(std::make_shared<gradient_hook::taker>());
      if (!value.requires_grad()) continue;
      // Autograd forgets the node that adds up a parameter's gradient unless it is kept.
      accumulating.push_back(torch::autograd::impl::grad_accumulator(value));
      accumulating.back()->add_post_hook(std::make_unique<gradient_hook>(on_gradient.back()));
    }
    for (const auto& buffer : module->named_buffers()) {
      if (!buffer.value().defined()) continue;
      buffers.emplace_back(buffer.value(), buffer.value()._version());
      buffer_names.push_back(buffer.key());
    }
  }

  void refer_to(size_t parameter, const at::Tensor& elements) {
    auto& value = parameters[parameter].value;
    value.mutable_grad().reset();
    value.set_data(elements);
  }

  void check_buffers() const {
    for (size_t i = 0; i < buffers.size(); ++i)
      if (buffers[i].first._version() != buffers[i].second)
        throw_failure(
          errc::unimplemented,
          "a module has written into its buffer '{}', which replicas would not share: turn "
          "off what it tracks (track_running_stats(false)), or normalise by groups or layers",
          buffer_names[i]);
  }
};

namespace {

// A module's parameters refer to these values as long as one of these lives.
template <class Parts>
class loan {
public:
  loan(Parts& to, std::span<const tensor> values) : to_(to) {
    TROUPE_ASSERT(values.size() == to.parameters.size(), values.size(), to.parameters.size());
    for (size_t i = 0; i < values.size(); ++i) {
      to.refer_to(i, to_torch(values[i]));
      written_.push_back(to.parameters[i].value._version());
    }
  }

  ~loan() {
    for (size_t i = 0; i < written_.size(); ++i) {
      to_.refer_to(i, to_.placeholders[i]);
      *to_.on_gradient[i] = {};
    }
  }

  loan(const loan&) = delete;
  loan& operator=(const loan&) = delete;

  void check_unwritten() const {
    for (size_t i = 0; i < written_.size(); ++i)
      if (to_.parameters[i].value._version() != written_[i])
        throw_failure(
          errc::failed_precondition,
          "a module has written into its parameter '{}', which only the optimizer may change",
          to_.parameters[i].name);
  }

private:
  Parts& to_;
  std::vector<uint32_t> written_; ///< How often each was, before.
};

} // namespace

lent_module::lent_module(const torch_modules::module_maker& make, const random_key& key) {
  require(make != nullptr, "the function that makes modules is empty");
  detail::use_one_thread();
  torch_draws draws{key};
  auto made = in_our_words(make);
  require(made != nullptr, "the function that makes modules has made none");
  parts_ = std::make_shared<parts>(std::move(made));
}

const std::vector<parameter_form>& lent_module::forms() const {
  return parts_->forms;
}

std::vector<tensor> lent_module::give_initial_values() {
  std::vector<tensor> values;
  for (size_t i = 0; i < parts_->parameters.size(); ++i) {
    values.push_back(from_torch(parts_->parameters[i].value));
    parts_->refer_to(i, parts_->placeholders[i]);
  }
  return values;
}

double lent_module::differentiate(std::span<const tensor> values, const module_loss& loss,
                                  const random_key& batch, const random_key& draws,
                                  const gradient_ready& ready, const std::stop_token& stop) {
  detail::use_one_thread();
  torch_draws drawing{draws};
  auto& own = *parts_;
  loan<parts> lent{own, values};
  std::vector<bool> is_there(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    *own.on_gradient[i] = [&, i] {
      check_wanted(stop);
      is_there[i] = true;
      ready(i, gradient_from_torch(std::exchange(own.parameters[i].value.mutable_grad(), {})));
    };
  return in_our_words([&] {
    at::AutoGradMode differentiating{true};
    auto result = loss(*own.module, batch);
    check_loss(result);
    check_wanted(stop);
    result.backward();
    for (size_t i = 0; i < values.size(); ++i)
      if (own.forms[i].trained && !is_there[i])
        ready(i, zeros(own.forms[i].extents, own.forms[i].type));
    lent.check_unwritten();
    own.check_buffers();
    return result.item().toDouble();
  });
}

double lent_module::evaluate(std::span<const tensor> values, const random_key& draws,
                             const std::function<double(torch::nn::Module&)>& measure) {
  check_values(values, parts_->forms);
  detail::use_one_thread();
  torch_draws drawing{draws};
  loan<parts> lent{*parts_, values};
  return in_our_words([&] {
    at::NoGradGuard undifferentiated;
    parts_->module->eval();
    return measure(*parts_->module);
  });
}

} // namespace troupe
