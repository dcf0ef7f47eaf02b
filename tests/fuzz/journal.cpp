// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/journal.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include "fuzz.hpp"

namespace journal_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::memory_file const file;
  auto const read = [](std::string const& path) {
    fuzz::takes([&] {
      edl::master::journal journal(path, "run");
      journal.read();
    });
  };
  auto const bytes = fuzz::text(data, size);
  read(file.with(bytes));
  // The same record under a head with its checksum.
  auto const end = bytes.find('\n');
  auto const record = bytes.starts_with("edl-journal") && end != bytes.npos ? bytes.substr(end + 1) : bytes;
  auto const crc = ::crc32_z(0, reinterpret_cast<Bytef const*>(record.data()), record.size());
  read(file.with(fmt::format("edl-journal 2 {:08x}\n{}", std::uint32_t(crc), record)));
  return 0;
}

}  // namespace journal_fuzz
