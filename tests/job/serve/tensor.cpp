// SPDX-License-Identifier: Apache-2.0
#include "edl/job/serve/tensor.hpp"

#include <doctest/doctest.h>

#include "edl/job/http/message.hpp"

namespace serve_tensor_test {

using edl::example;
using edl::serve::tensor;

TEST_CASE("values of each datatype become those that the model asks for") {
  struct {
    char const* datatype;
    std::string bytes;
  } const one[] = {{"INT8", "\2"},
                   {"UINT8", "\2"},
                   {"BOOL", "\2"},
                   {"INT16", std::string("\2\0", 2)},
                   {"UINT16", std::string("\2\0", 2)},
                   {"INT32", std::string("\2\0\0\0", 4)},
                   {"UINT32", std::string("\2\0\0\0", 4)},
                   {"INT64", std::string("\2\0\0\0\0\0\0\0", 8)},
                   {"UINT64", std::string("\2\0\0\0\0\0\0\0", 8)}};
  for (auto const& o : one) {
    CAPTURE(o.datatype);
    tensor t{"x", example::kind::floats}, n{"n", example::kind::integers}, w{"w", example::kind::strings};
    t.append(o.datatype, o.bytes, 1);
    n.append(o.datatype, o.bytes, 1);
    CHECK(t.floats == std::vector<float>{2});
    CHECK(n.integers == std::vector<std::int64_t>{2});
    CHECK_THROWS_AS(w.append(o.datatype, o.bytes, 1), edl::http::failure);
    CHECK_THROWS_AS(t.append(o.datatype, o.bytes, 2), edl::http::failure);
  }
  tensor n{"n", example::kind::integers};
  CHECK_THROWS_AS(n.append("FP32", std::string(4, '\0'), 1), edl::http::failure);
  CHECK_THROWS_AS(n.append("FP16", std::string(2, '\0'), 1), edl::http::failure);
  CHECK_THROWS_AS(n.append("BYTES", std::string(4, '\0'), 1), edl::http::failure);
  tensor w{"w", example::kind::strings};
  CHECK_THROWS_AS(w.append("BYTES", std::string("\xff\xff\xff\xff", 4), 1), edl::http::failure);
}

}  // namespace serve_tensor_test
