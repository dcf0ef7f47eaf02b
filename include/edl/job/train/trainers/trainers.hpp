// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "edl/compute/device/backend.hpp"
#include "edl/job/train/trainers/learner.hpp"
#include "edl/job/worker/trainer.hpp"

namespace edl::train {

/// Binds a model to the memory of a device.
using make_learner = std::function<std::unique_ptr<learner>(std::shared_ptr<backend> on)>;

/// A model's trainer on the device of `o.on`: a GPU if one is available, unless the processor is requested.
/// `portable`: the network can run on a GPU. Throws error if a requested GPU is not available.
std::unique_ptr<worker::trainer> make_trainer(worker::trainer_options const& o, bool portable,
                                              make_learner const& make);

/// The device that it would use.
std::shared_ptr<backend> open_device(worker::trainer_options const& o, bool portable);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/trainers/trainers.ipp"
#endif
