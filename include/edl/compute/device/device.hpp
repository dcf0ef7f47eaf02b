// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <memory>

#include "edl/compute/device/backend.hpp"

namespace edl {

/// The device for which a model is compiled: it opens the backend that the model computes on.
template <class D>
concept device = requires(typename D::options const& o) {
  typename D::scalar;
  typename D::backend;  // basic_backend<scalar>, or derived from it
  { D::open(o) } -> std::convertible_to<std::shared_ptr<basic_backend<typename D::scalar>>>;
};

}  // namespace edl
