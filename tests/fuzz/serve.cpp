// SPDX-License-Identifier: Apache-2.0
#include "edl/job/serve/protocol.hpp"
#include "fuzz.hpp"

namespace serve_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace edl::serve;
  static model_face const face{
      .name = "m",
      .version = 1,
      .inputs = {{"x", edl::example::kind::floats, {2}},
                 {"n", edl::example::kind::integers, {}},
                 {"w", edl::example::kind::strings, {}}},
      .outputs = answers_of({{"a", edl::shape{2}, 0, edl::output_meaning::classes}, {"b", edl::shape{1}, 2}},
                            {"cat", "dog"}),
      .classes = {"cat", "dog"}};
  auto const bytes = fuzz::text(data, size);
  // The first byte says where JSON ends and tensors begin; 255: nowhere.
  std::optional<std::size_t> header;
  if (!bytes.empty() && std::uint8_t(bytes[0]) != 255) header = std::uint8_t(bytes[0]) * 2;
  auto const body = bytes.substr(std::min<std::size_t>(1, bytes.size()));
  std::vector<float> const outputs(3 * 8, 0.5f);
  auto const check = [&](question const& q) {
    fuzz::require(q.rows >= 1 && q.rows <= 8, "records are counted, and not too many");
    edl::example record;
    for (std::size_t row = 0; row < q.rows; ++row) {
      to_record(q.inputs, q.rows, row, record);
      fuzz::require(record.size() <= 3, "a record has features of the model");
    }
    return edl::view<float>(outputs).first(3 * q.rows);
  };
  fuzz::takes([&] {
    inference_head last;
    for (int again = 0; again < 2; ++again) {
      auto const q = read_inference(std::string(body), header, face, 8, last);
      write_inference(*q, face, check(*q));
    }
  });
  fuzz::takes([&] {
    auto const q = read_predict(body, face, 8);
    write_predict(*q, face, check(*q));
  });
  return 0;
}

}  // namespace serve_fuzz
