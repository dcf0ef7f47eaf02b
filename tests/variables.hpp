// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

namespace test {

/// Sets variables of the environment, and puts them back.
class variables {
 public:
  explicit variables(std::map<std::string, std::string> const& all) {
    for (auto const& [name, value] : all) {
      char const* const old = std::getenv(name.c_str());
      before_[name] = old ? std::optional<std::string>(old) : std::nullopt;
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  variables(variables const&) = delete;
  variables& operator=(variables const&) = delete;
  ~variables() {
    for (auto const& [name, value] : before_)
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace test
