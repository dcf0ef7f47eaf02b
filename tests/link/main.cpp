// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

std::size_t parameters();
int main() { return parameters() == 4 * 4 * 2 + 2 ? 0 : 1; }
