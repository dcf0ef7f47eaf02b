// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <new>

// Every way to the heap in this program goes through these, and is counted: for one file of a program. A
// sanitizer has its own.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define EDL_TEST_COUNTS_ALLOCATIONS

static thread_local long allocations = 0;

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t n) { return ++allocations, __libc_malloc(n); }
void* calloc(std::size_t n, std::size_t m) { return ++allocations, __libc_calloc(n, m); }
void* realloc(void* p, std::size_t n) { return ++allocations, __libc_realloc(p, n); }
void* memalign(std::size_t a, std::size_t n) { return ++allocations, __libc_memalign(a, n); }
void* aligned_alloc(std::size_t a, std::size_t n) { return ++allocations, __libc_memalign(a, n); }
int posix_memalign(void** p, std::size_t a, std::size_t n) {
  *p = (++allocations, __libc_memalign(a, n));
  return *p ? 0 : 12;
}
}
#endif
