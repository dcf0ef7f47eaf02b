// SPDX-License-Identifier: Apache-2.0
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/ledger_message.hpp"
#include "edl/base/wire/message.hpp"
#include "fuzz.hpp"

namespace ledger_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const bytes = fuzz::text(data, size);
  fuzz::takes([&] {
    auto const ledger = edl::wire::ledger_from_json(bytes, "a file");
    auto const written = edl::wire::to_json(ledger);
    fuzz::require(edl::wire::ledger_from_json(written, "again") == ledger,
                  "what is written is read as it was");
  });
  fuzz::takes([&] {
    auto const message = edl::wire::unpack<edl::wire::Ledger>(std::as_bytes(std::span(data, size)), "a peer");
    auto const ledger = edl::wire::from_message(message);
    edl::wire::Ledger back;
    edl::wire::to_message(ledger, back);
    fuzz::require(edl::wire::from_message(back) == ledger, "what is sent is received as it was");
  });
  return 0;
}

}  // namespace ledger_fuzz
