// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cuda/open.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/train/trainers/accelerator_trainer.hpp"
#include "edl/job/train/trainers/cpu_trainer.hpp"
#include "edl/job/train/trainers/trainers.hpp"

namespace edl::train {

namespace detail {

/// Opens a GPU; null if there is none. `why` then explains that if the user may have expected one.
EDL_INLINE std::shared_ptr<accelerator> open_gpu(worker::trainer_options const& o, bool portable,
                                                 std::string& why) {
  using worker::device_kind;
  if (o.on == device_kind::cpu || o.device.precision == precision::int8) return {};
  if (!portable) {
    if (o.on == device_kind::any) return {};
    throw error(
        "--device=cuda: the network has a layer, or a named input of ids, for the processor only; a layer "
        "that accesses elements only by operations of the device declares `static constexpr bool portable = "
        "true`");
  }
  try {
    return open_cuda(o.cuda);
  } catch (cuda_unavailable const& e) {
    if (o.on == device_kind::cuda) throw;
    if (e.installed) why = e.what();
    return {};
  }
}

}  // namespace detail

EDL_INLINE std::unique_ptr<worker::trainer> make_trainer(worker::trainer_options const& o, bool portable,
                                                         make_learner const& make) {
  std::string why;
  if (auto const gpu = detail::open_gpu(o, portable, why))
    return std::make_unique<accelerator_trainer>(make(gpu), gpu, o);
  auto const processor = std::make_shared<cpu>(o.device);
  return std::make_unique<cpu_trainer>(make(processor), processor, o, why);
}

EDL_INLINE std::shared_ptr<backend> open_device(worker::trainer_options const& o, bool portable) {
  std::string why;
  if (auto const gpu = detail::open_gpu(o, portable, why)) return gpu;
  return std::make_shared<cpu>(o.device);
}

}  // namespace edl::train
