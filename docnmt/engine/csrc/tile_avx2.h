/* A tile of a product in AVX2: four rows, which are a sentence's hypotheses, and one panel.

   The products of eight neighbouring inputs are added in pairs and fours in sixteen bits, which halves the work of
   widening them: native.py, in_16_bits, sees to it that no four weights can overflow there. */

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
