/* Matrices in the order in which products.h reads them. */

#pragma once

#include "accelerator.h"
#include "vectors.h"

#ifdef TILES
/* Of eight weights, none negative, the sums of 0, 1, 4, 5 and of 2, 3, 6, 7; what stands behind these two is smaller. */
static inline __m128i fours(__m128i eight) {
    __m128i pairs = _mm_maddubs_epi16(eight, _mm_set1_epi8(1));
    return _mm_add_epi16(pairs, _mm_srli_epi64(pairs, 32));
}

/* Of each row the largest sum of four weights of one sign among those that products.h adds in sixteen bits. */
void most_of_four(const int8_t *values, long rows, long inputs, int32_t *most) {
    for (long r = 0; r < rows; r++, values += inputs) {
        __m128i largest = _mm_setzero_si128();
        for (long i = 0; i < inputs; i += 8) {
            __m128i eight = _mm_loadl_epi64((const __m128i *)(values + i)), none = _mm_setzero_si128();
            largest = _mm_max_epi16(largest, fours(_mm_max_epi8(eight, none)));
            largest = _mm_max_epi16(largest, fours(_mm_sub_epi8(none, _mm_min_epi8(eight, none))));
        }
        int32_t first = _mm_extract_epi16(largest, 0), second = _mm_extract_epi16(largest, 1);
        most[r] = first > second ? first : second;
    }
}
#else
void most_of_four(const int8_t *values, long rows, long inputs, int32_t *most) {}
#endif

/* Some rows of a matrix, or all where `chosen` is null, as panels (see products.h), in cells of four bytes: a float, or four
   int8 weights, of which each row has a sum, too. What a row has no output for is zeros already. */
void pack_rows(const int32_t *cells, const int64_t *chosen, long rows, long across, int32_t *panels, int32_t *sums) {
    for (long r = 0; r < rows; r++) {
        const int32_t *row = cells + (chosen ? chosen[r] : r) * across;
        int32_t *to = panels + r / COLUMNS * COLUMNS * across + r % COLUMNS;
        for (long i = 0; i < across; i++) to[i * COLUMNS] = row[i];
        if (!sums) continue;
        const int8_t *weights = (const int8_t *)row;
        int32_t sum = 0;
        for (long i = 0; i < 4 * across; i++) sum += weights[i];
        sums[r] = sum;
    }
}
