/* Eight floats at a time, with the vector types of GCC and Clang. */

#pragma once

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES 8

typedef float floats __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));
typedef int32_t ints_anywhere __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef float unaligned __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

static inline floats load(const float *at) { return *(const unaligned *)at; }
static inline void store(float *at, floats x) { *(unaligned *)at = x; }

static inline float sum_of(floats x) {
    return ((x[0] + x[4]) + (x[1] + x[5])) + ((x[2] + x[6]) + (x[3] + x[7]));
}

static inline floats larger(floats a, floats b) {
    ints first = a > b;
    return (floats)((first & (ints)a) | (~first & (ints)b));
}

static inline float largest_of(floats x) {
    float most = x[0];
    for (int i = 1; i < LANES; i++) most = x[i] > most ? x[i] : most;
    return most;
}

/* e^x for x <= 0, to the last bits of a float (the polynomial of the Cephes library). */
static inline floats exp_below(floats x) {
    x = larger(x, (floats){} - 87.0f);
    ints n = __builtin_convertvector(x * 1.44269504f - 0.5f, ints);
    floats whole = __builtin_convertvector(n, floats);
    floats r = x - whole * 0.693359375f + whole * 2.12194440e-4f;
    floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return p * (floats)((n + 127) << 23);
}

static inline floats sigmoid(floats x) {
    floats small = exp_below((floats){} - larger(x, -x));
    ints positive = x > 0;
    return (floats)((positive & (ints)((floats){} + 1)) | (~positive & (ints)small)) / (1 + small);
}
