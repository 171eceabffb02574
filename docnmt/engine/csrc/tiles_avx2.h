/* Tiles of products in AVX2. In int8: four rows, which are a sentence's hypotheses, and one panel. The products of eight neighbouring inputs are added in pairs and fours in sixteen bits, which halves the work of
   widening them: native.py, in_16_bits, sees to it that no four weights can overflow there. In floats: six rows, whose sums
   fill the registers. */

#pragma once

#define ROWS 4
#define PANELS 1

static inline __m256i four(const uint8_t *at) {
    int32_t bytes;
    memcpy(&bytes, at, 4);
    return _mm256_set1_epi32(bytes);
}

/* sums += the products of eight inputs with eight weights of each of eight outputs */
static inline __m256i add_products(__m256i sums, __m256i a0, __m256i a1, __m256i w0, __m256i w1) {
    __m256i fours = _mm256_add_epi16(_mm256_maddubs_epi16(a0, w0), _mm256_maddubs_epi16(a1, w1));
    return _mm256_add_epi32(sums, _mm256_madd_epi16(fours, _mm256_set1_epi16(1)));
}

/* A row of a tile: its next eight inputs meet those weights of all outputs of the panel. */
#define ADD_ROW(n)                                                               \
    do {                                                                         \
        __m256i a0 = four(a + n * inputs), a1 = four(a + n * inputs + 4);        \
        low##n = add_products(low##n, a0, a1, w[0], w[2]);                       \
        high##n = add_products(high##n, a0, a1, w[1], w[3]);                     \
    } while (0)

/* A tile's sums, [ROWS, COLUMNS]: ROWS quantized rows with a panel. Each sum has a name, so that all of them stay in
   registers. */
static __attribute__((noinline)) void tile(const uint8_t *a, const int8_t *panel, long inputs, long panels, int32_t *sums) {
    __m256i low0 = {}, high0 = {}, low1 = {}, high1 = {}, low2 = {}, high2 = {}, low3 = {}, high3 = {};
    for (const uint8_t *end = a + inputs; a < end; a += DEPTH, panel += DEPTH * COLUMNS) {
        __m256i w[4];
        for (int j = 0; j < 4; j++) w[j] = _mm256_loadu_si256((const __m256i *)panel + j);
        ADD_ROW(0);
        ADD_ROW(1);
        ADD_ROW(2);
        ADD_ROW(3);
    }
    __m256i *to = (__m256i *)sums;
    to[0] = low0, to[1] = high0, to[2] = low1, to[3] = high1;
    to[4] = low2, to[5] = high2, to[6] = low3, to[7] = high3;
}

#define FLOAT_ROWS 6
#define FLOAT_PANELS 1

#define ADD_FLOATS(n)                                                            \
    do {                                                                         \
        floats a = (floats)_mm256_broadcast_ss(x##n + i);                        \
        low##n += a * low, high##n += a * high;                                  \
    } while (0)

/* [FLOAT_ROWS, COLUMNS] */
static __attribute__((noinline)) void float_tile(const float *const *x, const float *panel, long inputs, float *sums) {
    const float *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3], *x4 = x[4], *x5 = x[5];
    floats low0 = {}, high0 = {}, low1 = {}, high1 = {}, low2 = {}, high2 = {};
    floats low3 = {}, high3 = {}, low4 = {}, high4 = {}, low5 = {}, high5 = {};
    for (long i = 0; i < inputs; i++, panel += COLUMNS) {
        floats low = load(panel), high = load(panel + LANES);
        ADD_FLOATS(0);
        ADD_FLOATS(1);
        ADD_FLOATS(2);
        ADD_FLOATS(3);
        ADD_FLOATS(4);
        ADD_FLOATS(5);
    }
    floats *to = (floats *)sums;
    to[0] = low0, to[1] = high0, to[2] = low1, to[3] = high1, to[4] = low2, to[5] = high2;
    to[6] = low3, to[7] = high3, to[8] = low4, to[9] = high4, to[10] = low5, to[11] = high5;
}
