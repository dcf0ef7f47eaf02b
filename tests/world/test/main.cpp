// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "world/program.hpp"

int main(int argc, char** argv) {
  world::prepare(argc, argv);
  return doctest::Context(argc, argv).run();
}
