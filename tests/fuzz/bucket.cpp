// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "edl/base/bucket/list_page.hpp"
#include "edl/base/bucket/role.hpp"
#include "fuzz.hpp"

namespace bucket_fuzz {

/// What object stores, and services of credentials, reply.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace edl::bucket;
  std::string_view const said = fuzz::text(data, size);
  fuzz::takes([&] {
    list_page const page = read_page(said, "p/", "s3://box/p/");
    fuzz::require(page.objects.size() <= page.entries, "an object is an entry");
    for (object const& o : page.objects)
      fuzz::require(o.key.starts_with("p/") && !o.key.ends_with('/') && !o.etag.empty(),
                    "a list has the objects that were asked for");
  });
  fuzz::takes([&] {
    auto const found = role_in(said, "a test");
    fuzz::require(!found || (!found->who.key.empty() && !found->who.secret.empty()),
                  "credentials have a key and a secret");
  });
  return 0;
}

}  // namespace bucket_fuzz
