// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <ostream>

#include "edl/compute/nn/explain.hpp"
#include "edl/core/inline.hpp"

namespace edl::nn::detail {

inline std::string text_of(shape s) { return fmt::format("{}x{}x{}", s.height, s.width, s.channels); }

inline std::string megabytes(std::size_t bytes) { return fmt::format("{:.2f}", double(bytes) / 1e6); }

EDL_INLINE void write_head(std::ostream& to) {
  to << fmt::format("{:<34} {:>12} {:>12} {:>11} {:>9}  {}\n", "step (layers)", "in", "out", "parameters",
                    "MB", "kernels");
}

EDL_INLINE void write_line(std::ostream& to, step_line const& l) {
  std::string const name = fmt::format("{:{}}{}{}", "", 2 * l.depth, l.name,
                                       l.layers > 1 ? fmt::format(" ({} layers)", l.layers) : "");
  to << fmt::format("{:<34} {:>12} {:>12} {:>11} {:>9}  {}\n", name, text_of(l.in), text_of(l.out),
                    l.parameters, megabytes(l.bytes), l.kernel);
}

EDL_INLINE void write_memory(std::ostream& to, model_memory const& m) {
  to << fmt::format("memory, MB: variables {}{}, gradients {}, activations {}, scratch {}, in all {}\n",
                    megabytes(m.variables), m.frozen > 0 ? " and frozen " + megabytes(m.frozen) : "",
                    megabytes(m.gradients), megabytes(m.activations), megabytes(m.scratch),
                    megabytes(m.total()));
}

}  // namespace edl::nn::detail
