// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/error.hpp>
#include <asio/system_error.hpp>
#include <exception>
#include <optional>
#include <utility>

#include "edl/base/net/carry.hpp"
#include "edl/base/net/status.hpp"
#include "edl/core/inline.hpp"

namespace edl::net {

EDL_INLINE bool carry(node& on, std::function<asio::awaitable<void>()> work,
                      std::function<void(std::string const& why)> failed) {
  return on.spawn([work = std::move(work), failed = std::move(failed)]() -> asio::awaitable<void> {
    std::optional<std::string> why;
    try {
      co_await work();
    } catch (asio::system_error const& e) {
      if (e.code() == asio::error::operation_aborted) throw;
      why = e.what();
    } catch (call_error const& e) {
      if (e.code() == status::cancelled) throw;
      why = e.what();
    } catch (std::exception const& e) {
      why = e.what();
    } catch (...) {
      why = "it threw something other than a std::exception";
    }
    if (why) failed(*why);
  });
}

}  // namespace edl::net
