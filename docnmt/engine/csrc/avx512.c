/* For processors with AVX-512 and its products of bytes (VNNI). */

#ifdef __x86_64__
#include <immintrin.h>
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
#endif

#define LEVEL avx512
#define TILES "tiles_avx512.h"
#include "kernels.h"

#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
