// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "edl/app/machine_check.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/random.hpp"

namespace edl::app {
namespace detail {

/// The product of a circulant matrix of small numbers with itself, whose rows all have one exactly known sum.
inline bool products_are_right() {
  constexpr std::size_t n = 128;
  std::vector<float> a(n * n), c(n * n, 0.0f);
  float sum = 0;
  for (std::size_t i = 0; i < n * n; ++i) a[i] = float((i / n + i % n) % n % 13);
  for (std::size_t k = 0; k < n; ++k) sum += a[k];
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * a[k * n + j];
  for (std::size_t i = 0; i < n; ++i) {
    float row = 0;
    for (std::size_t j = 0; j < n; ++j) row += c[i * n + j];
    if (row != sum * sum) return false;
  }
  return true;
}

inline bool memory_keeps(std::size_t size) {
  std::vector<std::uint64_t> block(size / sizeof(std::uint64_t));
  for (std::uint64_t const turned : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = mix(i, 1) ^ turned;
    asm volatile("" : : "r"(block.data()) : "memory");  // forces the compiler to read it back from memory
    for (std::size_t i = 0; i < block.size(); ++i)
      if (block[i] != (mix(i, 1) ^ turned)) return false;
  }
  return true;
}

}  // namespace detail

EDL_INLINE std::string machine_fault(std::size_t memory_bytes) {
  if (!detail::products_are_right()) return "products with a known answer come out wrong";
  if (!detail::memory_keeps(memory_bytes)) return "memory corrupts data";
  return {};
}

EDL_INLINE std::string memory_errors(std::string const& edac) {
  std::error_code none;
  for (std::filesystem::directory_iterator it(edac, none), end; !none && it != end; it.increment(none)) {
    std::uint64_t errors = 0;
    std::ifstream(it->path() / "ue_count") >> errors;
    if (errors > 0)
      return fmt::format("the system has counted {} uncorrected memory errors since its start ({})", errors,
                         it->path().filename().string());
  }
  return {};
}

EDL_INLINE void check_machine(bool other_machines, logger const& log, std::string const& edac) {
  std::string const fault = machine_fault(), past = memory_errors(edac);
  std::string const why = "this machine is not to be trusted: " + (fault.empty() ? past : fault);
  if (fault.empty() && past.empty()) return;
  if (other_machines) throw untrusted_machine(why);
  if (!fault.empty()) throw error(why + "; start the worker on another");
  log.warning(why + "; the worker takes part nevertheless, because the job has no other machine");
}

}  // namespace edl::app
