// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "edl/compute/device/backend.hpp"
#include "edl/job/train/trainers/learner.hpp"
#include "edl/job/worker/trainer.hpp"

namespace edl::train {

/// Binds a model to the memory of what will compute it.
using make_learner = std::function<std::unique_ptr<learner>(std::shared_ptr<backend> on)>;

/// A model's trainer on what `o.on` says: a GPU, where it is not to be the processor and one is to be had.
/// `portable`: the network can be computed on one. Throws error where a GPU is asked for and cannot be had.
std::unique_ptr<worker::trainer> make_trainer(worker::trainer_options const& o, bool portable,
                                              make_learner const& make);

/// What would compute then.
std::shared_ptr<backend> open_device(worker::trainer_options const& o, bool portable);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/trainers/trainers.ipp"
#endif
