// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/tokens/tokenizer.hpp"

#include "fuzz.hpp"

namespace tokenizer_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace edl::tokens;
  fuzz::takes([&] {
    auto const by = tokenizer::from_content(fuzz::text(data, size), "tokenizer");
    encoder from(by);
    for (std::string_view const text :
         {"Hello,  w\xc3\xb6rld 123\n a<|end|> ab", "e\xcc\x81\xff\xe4\xbd don't"})
      fuzz::takes([&] {
        auto const ids = from.encode(text, true);
        std::string parts;
        decoder one(by);
        for (token_id const id : ids) {
          fuzz::require(id < by.vocabulary(), "ids are of the vocabulary");
          parts += one.add(id);
        }
        fuzz::require(parts + one.finish() == by.decode(ids), "tokens give the same text one at a time");
        fuzz::require(from.encode(text, true) == ids, "a text has the same tokens each time");
      });
  });
  return 0;
}

}  // namespace tokenizer_fuzz
