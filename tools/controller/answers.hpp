// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace edl::tool {

/// What a process says of itself over HTTP: /healthz, /readyz (200 or 503, with the reason) and /metrics.
/// Nothing else is answered, and no body is read. Thread safety: safe.
class answers {
 public:
  struct sources {
    std::function<std::string()> healthy, ready;  ///< empty, or why not
    std::function<std::string()> metrics;
  };

  /// Listens on "HOST:PORT"; port 0: any. Throws usage_error when it cannot.
  answers(std::string const& address, sources from);
  answers(answers const&) = delete;
  ~answers();

  std::uint16_t port() const;

 private:
  struct implementation;
  std::unique_ptr<implementation> self_;
};

}  // namespace edl::tool
