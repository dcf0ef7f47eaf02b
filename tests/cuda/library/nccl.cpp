// SPDX-License-Identifier: Apache-2.0
// What the library declares of NCCL for itself, beside NCCL's own header where there is one.
#include "edl/compute/device/cuda/library/nccl.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>

#if __has_include(<nccl.h>)
#include <nccl.h>

using edl::cuda_library::nccl;

static_assert(int(ncclSuccess) == nccl::success && int(ncclInProgress) == nccl::in_progress);
static_assert(int(ncclFloat32) == nccl::float32 && int(ncclSum) == nccl::sum);
static_assert(sizeof(ncclUniqueId) == sizeof(nccl::unique_id));
static_assert(offsetof(ncclConfig_t, size) == offsetof(nccl::config, size) &&
              offsetof(ncclConfig_t, magic) == offsetof(nccl::config, magic) &&
              offsetof(ncclConfig_t, version) == offsetof(nccl::config, version) &&
              offsetof(ncclConfig_t, blocking) == offsetof(nccl::config, blocking));

TEST_CASE("a configuration begins as NCCL's own does") {
  ncclConfig_t const theirs = NCCL_CONFIG_INITIALIZER;
  nccl::config const ours;
  CHECK(ours.magic == theirs.magic);
  CHECK(ours.version <= theirs.version);
  CHECK(ours.size <= theirs.size);
}
#endif

TEST_CASE("NCCL is there, and of a version that will do, or it is said why not") {
  std::string why;
  auto const* const it = edl::cuda_library::nccl::open(why);
  CHECK((it == nullptr) == !why.empty());
  if (!it) {
    MESSAGE("skipped: " << why);
    return;
  }
  int version = 0;
  CHECK(it->version(&version) == edl::cuda_library::nccl::success);
  CHECK(version >= edl::cuda_library::nccl::least_version);
}
