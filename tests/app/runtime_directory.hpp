// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <string>

/// XDG_RUNTIME_DIR for as long as it lives.
struct runtime_directory {
  runtime_directory() {
    REQUIRE(::mkdtemp(path.data()));
    if (char const* const old = ::getenv("XDG_RUNTIME_DIR")) before = old;
    ::setenv("XDG_RUNTIME_DIR", path.c_str(), 1);
  }
  ~runtime_directory() {
    before.empty() ? ::unsetenv("XDG_RUNTIME_DIR") : ::setenv("XDG_RUNTIME_DIR", before.c_str(), 1);
    std::filesystem::remove_all(path);
  }
  std::string path = "/tmp/edl-test-XXXXXX", before;
};
