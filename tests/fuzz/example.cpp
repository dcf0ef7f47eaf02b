// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/example.hpp"

#include "fuzz.hpp"

namespace example_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static edl::example record, again;
  if (!fuzz::takes([&] { record.parse(fuzz::text(data, size)); })) {
    fuzz::require(record.size() == 0, "a malformed record leaves an empty one");
    return 0;
  }
  for (std::string_view const name : record.names()) {
    std::size_t const count = record.count(name);
    std::size_t read = 0, integers = 0;
    fuzz::takes([&] { read += record.float_values(name).size(); });
    fuzz::takes([&] { integers += record.integer_values(name).size(); });
    fuzz::require(integers == 0 || integers == read, "integers can be read as floats, too");
    for (std::size_t i = 0; i < count; ++i)
      if (!fuzz::takes([&] { read += record.bytes(name, i).size() < size; })) break;
    fuzz::require(read == count || count == 0, "all values of a feature can be read, in one way");
    fuzz::takes([&] { record.floating(name); });
    fuzz::takes([&] { record.integer(name); });
  }
  std::string written, rewritten;
  edl::encode(record, written);
  again.parse(written);
  edl::encode(again, rewritten);
  fuzz::require(written == rewritten, "what is written is read as it was");
  return 0;
}

}  // namespace example_fuzz
