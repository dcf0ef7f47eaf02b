// SPDX-License-Identifier: Apache-2.0
#include "edl/base/checkpoint/safetensors.hpp"

#include "fuzz.hpp"

namespace safetensors_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::memory_file const file;
  auto const bytes = fuzz::text(data, size);
  auto const read = [](std::string const& path) {
    fuzz::takes([&] {
      edl::checkpoint::safetensors_file const f(path);
      std::vector<std::byte> content;
      std::uint64_t all = 0;
      for (auto const& t : f.tensors()) {
        fuzz::require(t.begin <= t.end && t.end <= f.size(), "a tensor lies in its file");
        fuzz::require(f.find(t.name) == &t, "a tensor is found by its name");
        content.resize(t.end - t.begin);
        f.read(t, 0, content);
        all += content.size();
        fuzz::require(
            !fuzz::takes([&] { f.read(t, content.size(), std::span(content.data(), 1)); }) || content.empty(),
            "nothing behind a tensor is read");
      }
      fuzz::require(all <= f.size(), "tensors do not overlap");
    });
  };
  read(file.with(bytes));
  // The same as a header whose length is right, before some data.
  std::string whole(8, '\0');
  fuzz::put_number(whole, 0, std::uint32_t(size));
  read(file.with(whole.append(bytes).append(16, 'x')));
  return 0;
}

}  // namespace safetensors_fuzz
