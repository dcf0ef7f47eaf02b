// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "edl/app/command.hpp"
#include "edl/app/cuda_trainer.hpp"
#include "edl/app/model_trainer.hpp"
#include "edl/app/model_traits.hpp"
#include "edl/app/prepare.hpp"
#include "edl/nn/explain.hpp"

namespace edl {
namespace app {

/// Does `gpu()`, or `processor(why)` where that is asked for or no GPU is to be had; `why` is empty unless
/// somebody may have expected one.
template <class Model, class Result, class Gpu, class Processor>
Result on_device(worker::device_kind on, Gpu gpu, Processor processor) {
  std::string why;
  if constexpr (nn::is_portable(Model::network.body, Model::network.input)) {
    if (on != worker::device_kind::cpu) try {
        return gpu();
      } catch (cuda_unavailable const& e) {
        if (on == worker::device_kind::cuda) throw;
        if (e.installed) why = e.what();
      }
  } else if (on == worker::device_kind::cuda) {
    throw error(
        "--device=cuda: the network has a layer that computes on the processor only; one that touches "
        "elements by operations of the device alone says `static constexpr bool portable = true`");
  }
  return processor(std::move(why));
}

/// What a binary knows of a model struct.
template <class Model>
program make_program() {
  check_model<Model>();
  using network = model<Model::network, cpu>;
  program p;
  p.layout = network::layout();
  p.outputs = network::output.size();
  p.rule = std::make_unique<typename model_traits<Model>::rule_type>(model_traits<Model>::make_rule());
  p.make_trainer = [](worker::trainer_options const& o) -> std::unique_ptr<worker::trainer> {
    return on_device<Model, std::unique_ptr<worker::trainer>>(
        o.on, [&] { return std::make_unique<cuda_trainer<Model>>(o); },
        [&](std::string why) { return std::make_unique<model_trainer<Model>>(o, std::move(why)); });
  };
  p.explain = [](std::ostream& to, worker::trainer_options const& o) {
    auto const on = [&](auto device) { nn::explain<Model::network>(to, device, {o.max_batch, o.keep}); };
    on_device<Model, void>(
        o.on, [&] { on(cuda(o.cuda)); }, [&](std::string) { on(cpu(o.device)); });
  };
  p.initialise = [](std::uint64_t seed, std::size_t first, std::span<float> values) {
    network::initialise(seed, first, values);
  };
  if constexpr (model_traits<Model>::prepares) p.prepare = prepare<Model>;
  p.metrics = [](view<double> totals) { return model_traits<Model>::metrics::values(totals); };
  if constexpr (model_traits<Model>::takes_predictions)
    p.on_predictions = [](int rows, view<float> outputs, int worker) {
      Model::on_predictions(network::output, rows, outputs, worker);
    };
  return p;
}

}  // namespace app

/// Makes a model struct a program: master, parameter server or worker of a job as EDL_ROLE says, or, without
/// it, the user's command (`train`, `evaluate`, `predict`, `data`; `--help` lists the flags). Returns the
/// exit code: 0 when everything that was asked for is done, 1 otherwise, with one line on standard error that
/// says why.
template <class Model>
int run(int argc, char** argv) {
  auto p = app::make_program<Model>();
  return app::run(p, argc, argv);
}

}  // namespace edl
