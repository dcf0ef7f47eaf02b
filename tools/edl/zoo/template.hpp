// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace edl::tool {

/// A file of template/, compiled into the tool. "{{name}}" stands for what only `edl zoo init` knows.
struct template_file {
  std::string_view path;  ///< within a zoo; "Dockerfile" lies beside it
  std::string_view content;
};

std::span<template_file const> zoo_template();

}  // namespace edl::tool
