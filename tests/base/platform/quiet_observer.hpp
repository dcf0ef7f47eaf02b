// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "edl/base/platform/platform.hpp"

/// Hears everything, and does nothing; tests see what they override.
struct quiet_observer : edl::platform::observer {
  void ended(edl::platform::ending const&, std::uint64_t) override {}
  void leaving(edl::process_id, std::string const&) override {}
  void found(edl::platform::findings const&) override {}
  std::string scale(edl::platform::size_request const&) override { return {}; }
  void failed(std::string const&) override {}
  void suspend() override {}
  void superseded(std::string const&) override {}
  std::vector<edl::process_id> left() override { return {}; }
};
