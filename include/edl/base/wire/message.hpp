// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "edl/core/error.hpp"
#include "edl/core/span.hpp"

namespace edl::wire {

/// A protobuf message's bytes.
template <class Message>
std::string pack(Message const& m) {
  return m.SerializeAsString();
}

/// Parses the message in these bytes. Throws error, which names `from`, if they are invalid.
template <class Message>
Message unpack(bytes serialised, std::string_view from) {
  Message m;
  if (!m.ParseFromArray(serialised.data(), int(serialised.size())))
    throw error("a malformed " + m.GetTypeName() + " came from " + std::string(from));
  return m;
}

template <class Message>
Message unpack(std::string const& serialised, std::string_view from) {
  return unpack<Message>(std::as_bytes(std::span(serialised)), from);
}

}  // namespace edl::wire
