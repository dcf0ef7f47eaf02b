// SPDX-License-Identifier: Apache-2.0
#include "edl/job/serve/tensor.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

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
                   {"FP16", std::string("\0\x40", 2)},
                   {"BF16", std::string("\0\x40", 2)},
                   {"FP64", std::string("\0\0\0\0\0\0\0\x40", 8)},
                   {"INT64", std::string("\2\0\0\0\0\0\0\0", 8)},
                   {"UINT64", std::string("\2\0\0\0\0\0\0\0", 8)}};
  for (auto const& o : one) {
    CAPTURE(o.datatype);
    tensor t{"x", example::kind::floats}, n{"n", example::kind::integers}, w{"w", example::kind::strings};
    t.append(o.datatype, o.bytes, 1);
    CHECK(t.floats == std::vector<float>{2});
    if (std::string_view(o.datatype).find('F') != std::string_view::npos) {
      CHECK_THROWS_AS(n.append(o.datatype, o.bytes, 1), edl::http::failure);
    } else {
      n.append(o.datatype, o.bytes, 1);
      CHECK(n.integers == std::vector<std::int64_t>{2});
    }
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

TEST_CASE("whole numbers beyond 64 bits with a sign are refused, and do not wrap") {
  tensor n{"n", example::kind::integers};
  std::string const most("\xff\xff\xff\xff\xff\xff\xff\x7f", 8), beyond(8, '\xff');
  n.append("UINT64", most, 1);
  n.append(nlohmann::json::parse("9223372036854775807"));
  CHECK(n.integers == std::vector<std::int64_t>(2, std::int64_t(~std::uint64_t(0) >> 1)));
  CHECK_THROWS_WITH(n.append("UINT64", beyond, 1),
                    "input 'n' has 18446744073709551615, which does not fit 64 bits with a sign");
  CHECK_THROWS_WITH(n.append(nlohmann::json::parse("9223372036854775808")),
                    "input 'n' has 9223372036854775808, which does not fit 64 bits with a sign");
}

TEST_CASE("float32 is taken as its bytes are, wherever they begin") {
  float const values[] = {1, 2, 3, 4};
  std::string const bytes = "." + std::string(reinterpret_cast<char const*>(values), sizeof values);
  tensor t{"x", example::kind::floats};
  t.append("FP32", std::string_view(bytes).substr(1), 4);
  CHECK(t.size() == 4);
  example record;
  edl::serve::to_record({&t, 1}, 2, 1, record);
  CHECK(record.float_values("x")[0] == 3);
  CHECK(record.float_values("x")[1] == 4);
  CHECK_THROWS_AS(edl::serve::check_shares({&t, 1}, 3), edl::http::failure);
}

}  // namespace serve_tensor_test
