/* For processors with AVX2 and FMA. */

#ifdef __x86_64__
#include <immintrin.h>
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif

#define LEVEL avx2
#define TILES "tiles_avx2.h"
#include "kernels.h"

#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
