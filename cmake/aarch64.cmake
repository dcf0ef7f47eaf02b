# SPDX-License-Identifier: Apache-2.0
# For `cmake --toolchain`: builds for 64-bit ARM on another Debian machine, and runs what it has built by qemu. docs/install.md
# says which packages that needs.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)  # else pkg-config names this machine's
set(EDL_CUDA OFF CACHE BOOL "")
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
# Headers alone, which Debian has for the machine at hand only.
file(GLOB xtensor_DIR /usr/lib/*/cmake/xtensor)
