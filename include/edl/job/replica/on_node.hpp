// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <future>
#include <type_traits>

#include "edl/base/net/node.hpp"
#include "edl/core/error.hpp"

namespace edl::replica {

/// Runs `work` on a node's thread, which must not be this one, and returns its result, or throws its
/// exception. Throws error if the node has stopped. Thread safety: safe.
template <class F>
auto on_node(net::node& node, F const& work) {
  using result = std::invoke_result_t<F>;
  std::promise<result> done;
  auto const run = [&] {
    try {
      if constexpr (std::is_void_v<result>)
        work(), done.set_value();
      else
        done.set_value(work());
    } catch (...) {
      done.set_exception(std::current_exception());
    }
  };
  if (!node.post(run)) throw error("this process is ending");
  return done.get_future().get();
}

}  // namespace edl::replica
