/* Tiles of products in AVX-512. In int8: four rows, which are a sentence's hypotheses, and up to four panels. Four products are
   added to a sum at once, in thirty-two bits (VNNI). The sums are the same whole numbers as those of AVX2.
   In floats: six rows and two panels. */

#pragma once

#define ROWS 4
#define PANELS 4

/* With a number of panels that the compiler knows, all sums stay in registers. */
static inline __attribute__((always_inline)) void tile_of(int panels, const uint8_t *a, const int8_t *panel, long inputs,
                                                          int32_t *sums) {
    __m512i sum[ROWS][PANELS];
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 4
        for (int p = 0; p < panels; p++) sum[r][p] = _mm512_setzero_si512();
    for (long i = 0; i < inputs; i += 4) {
        __m512i w[PANELS];
#pragma GCC unroll 4
        for (int p = 0; p < panels; p++) w[p] = _mm512_loadu_si512(panel + (p * inputs + i) * COLUMNS);
#pragma GCC unroll 4
        for (int r = 0; r < ROWS; r++) {
            int32_t bytes;
            memcpy(&bytes, a + r * inputs + i, 4);
            __m512i four = _mm512_set1_epi32(bytes);
#pragma GCC unroll 4
            for (int p = 0; p < panels; p++) sum[r][p] = _mm512_dpbusd_epi32(sum[r][p], four, w[p]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 4
        for (int p = 0; p < panels; p++) _mm512_storeu_si512(sums + (r * PANELS + p) * COLUMNS, sum[r][p]);
}

static __attribute__((noinline)) void tile(const uint8_t *a, const int8_t *panel, long inputs, long panels, int32_t *sums) {
    switch (panels) {
    case 1: tile_of(1, a, panel, inputs, sums); break;
    case 2: tile_of(2, a, panel, inputs, sums); break;
    case 3: tile_of(3, a, panel, inputs, sums); break;
    default: tile_of(4, a, panel, inputs, sums);
    }
}

#define FLOAT_ROWS 6
#define FLOAT_PANELS 2

/* [FLOAT_ROWS, FLOAT_PANELS, COLUMNS] */
static __attribute__((noinline)) void float_tile(const float *const *x, const float *panel, long inputs, float *sums) {
    __m512 low[FLOAT_ROWS], high[FLOAT_ROWS];
    const float *beside = panel + inputs * COLUMNS;
#pragma GCC unroll 6
    for (int r = 0; r < FLOAT_ROWS; r++) low[r] = high[r] = _mm512_setzero_ps();
    for (long i = 0; i < inputs; i++) {
        __m512 w = _mm512_loadu_ps(panel + i * COLUMNS), v = _mm512_loadu_ps(beside + i * COLUMNS);
#pragma GCC unroll 6
        for (int r = 0; r < FLOAT_ROWS; r++) {
            __m512 a = _mm512_set1_ps(x[r][i]);
            low[r] = _mm512_fmadd_ps(a, w, low[r]);
            high[r] = _mm512_fmadd_ps(a, v, high[r]);
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < FLOAT_ROWS; r++) {
        _mm512_storeu_ps(sums + 2 * r * COLUMNS, low[r]);
        _mm512_storeu_ps(sums + (2 * r + 1) * COLUMNS, high[r]);
    }
}
