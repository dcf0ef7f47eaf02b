// SPDX-License-Identifier: Apache-2.0
#include "edl/base/platform/cloud_notice.hpp"
#include "edl/core/printable.hpp"
#include "fuzz.hpp"

namespace notice_fuzz {

/// What clouds' metadata services say, and what comes of it.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace edl::platform;
  std::string_view const said = fuzz::text(data, size);
  for (std::string const& notice : {read_aws_action(said), read_aws_rebalance(said), read_gcp_preempted(said),
                                    read_gcp_maintenance(said), read_azure_events(said, "vm_1")}) {
    fuzz::require(notice.size() < 1000, "a notice is short");
    fuzz::require(edl::printable(notice, 1000) == notice, "a notice is printable");
  }
  return 0;
}

}  // namespace notice_fuzz
