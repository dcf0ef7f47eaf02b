// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "edl/compute/data/format/array_file.hpp"
#include "edl/compute/data/format/example.hpp"
#include "fuzz.hpp"

namespace npz_fuzz {

namespace {

/// An archive is known by its name.
std::string path_of_archive() {
  static struct folder {
    std::string path = (std::filesystem::temp_directory_path() / "edl-fuzz-XXXXXX").string();
    folder() { fuzz::require(::mkdtemp(path.data()) != nullptr, "the system has a temporary directory"); }
    ~folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  } const here;
  return here.path + "/a.npz";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static std::string const path = path_of_archive();
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<char const*>(data), std::streamsize(size));
  fuzz::takes([&] {
    edl::data::numpy_source const source({path});
    auto const reader = source.open();
    edl::example record;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(source.shards()[0].records, 100); ++i)
      fuzz::takes([&] { reader->read(0, i, record); });
  });
  return 0;
}

}  // namespace npz_fuzz
