/* Products with int8 matrices, for processors whose level has a TILE: ROWS rows with PANELS panels of outputs.

   The input's rows are quantized one by one, to seven bits, so that a row's result does not depend on the rows beside it.
   A product's sums are whole numbers and exact, and what is made of them is computed output by output: so a product has
   the same bits at every level. */

#pragma once

#include "accelerator.h"
#include "vectors.h"

#ifdef TILE
#define DEPTH 8 /* inputs are a multiple of it */
#include TILE

int has_int8(void) { return 1; }

/* Of the quantized rows, ROWS more of them, for a last tile that is not full, and each row's scale and zero. */
long int8_room(long rows, long inputs) { return (rows + ROWS) * (inputs + sizeof(float) + sizeof(int32_t)); }

/* x = scale * (q - zero), 0 <= q <= 127. Of a row that is not all numbers, what comes of it is not a number either. */
static void quantize_row(const float *x, long inputs, uint8_t *q, float *scale, int32_t *zero) {
    floats low = {}, high = {}, strange = {};
    for (long i = 0; i < inputs; i += LANES) {
        floats here = load(x + i);
        low = -larger(-low, -here);
        high = larger(high, here);
        strange += here * 0;
    }
    if (sum_of(strange) != 0) { /* which NaN is, too */
        memset(q, 0, inputs);
        *scale = NAN, *zero = 0;
        return;
    }
    float least = -largest_of(-low), most = largest_of(high);
    *scale = most - least > 127 * FLT_MIN ? (most - least) / 127 : 1; /* or nothing but zeros */
    float by = 1 / *scale;
    *zero = (int32_t)(-least * by + 0.5f);
    __m256 times = _mm256_set1_ps(by);
    __m256i add = _mm256_set1_epi32(*zero), order = _mm256_setr_epi32(0, 4, 0, 0, 0, 0, 0, 0);
    for (long i = 0; i < inputs; i += LANES) {
        __m256i n = _mm256_add_epi32(_mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i), times)), add);
        n = _mm256_min_epi32(_mm256_max_epi32(n, _mm256_setzero_si256()), _mm256_set1_epi32(127));
        n = _mm256_packus_epi16(_mm256_packus_epi32(n, n), n); /* each half's four bytes */
        _mm_storel_epi64((__m128i *)(q + i), _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(n, order)));
    }
}

static __attribute__((noinline)) void store_some(float *to, floats x, long count) {
    for (long i = 0; i < count; i++) to[i] = x[i];
}

/* Eight sums of a row, as what they stand for. */
static inline floats finished(const matrix *by, ints sums, long column, float scale, int32_t zero, long how) {
    ints shift = zero * *(const ints_anywhere *)(by->sums + column);
    floats y = __builtin_convertvector(sums - shift, floats) * (scale * load(by->scales + column));
    y += load(by->bias + column);
    if (how == SET_POSITIVE) return larger(y, (floats){});
    if (how == SET_SWISH) return y * sigmoid(y);
    return y;
}

/* The outputs of a tile: some rows, columns from `at`. */
static void finish(const matrix *by, const int32_t *sums, long rows, long at, const float *scales, const int32_t *zeros,
                   long how, float *out) {
    for (long r = 0; r < rows; r++, sums += PANELS * COLUMNS, out += by->outputs)
        for (long column = at; column < at + PANELS * COLUMNS && column < by->outputs; column += LANES) {
            floats y = finished(by, *(const ints_anywhere *)(sums + column - at), column, scales[r], zeros[r], how);
            float *to = out + column;
            if (column + LANES > by->outputs)
                store_some(to, y, by->outputs - column); /* to ADD, outputs are a multiple of LANES */
            else
                store(to, how == ADD ? load(to) + y : y);
        }
}

/* panels: the weights in panels of COLUMNS outputs, [panels, inputs / 4, COLUMNS, 4], zeros where there are no more;
   scales, bias, sums of an output's weights: [panels x COLUMNS].
   out [rows, outputs] = x by^T + bias; or what is negative of it as zero, if SET_POSITIVE; or it times sigmoid(it), if
   SET_SWISH; or, if ADD, added to what out was. x: rows of `stride` numbers; bytes: int8_room for the quantized x. */
void int8_product(const matrix *by, const float *x, long stride, long rows, long how, uint8_t *bytes, float *out) {
    long inputs = by->inputs, outputs = by->outputs;
    float *scales = (float *)(bytes + (rows + ROWS) * inputs);
    int32_t *zeros = (int32_t *)(scales + rows), sums[ROWS * PANELS * COLUMNS] __attribute__((aligned(64)));
    for (long r = 0; r < rows; r++) quantize_row(x + r * stride, inputs, bytes + r * inputs, scales + r, zeros + r);
    for (long at = 0; at < outputs; at += PANELS * COLUMNS)
        for (long r = 0; r < rows; r += ROWS) {
            long some = rows - r < ROWS ? rows - r : ROWS;
            tile(bytes + r * inputs, by->panels + at * inputs, inputs, (outputs - at + COLUMNS - 1) / COLUMNS, sums);
            finish(by, sums, some, at, scales + r, zeros + r, how, out + r * outputs);
        }
}
#else
int has_int8(void) { return 0; }
long int8_room(long rows, long inputs) { return 0; }
void int8_product(const matrix *by, const float *x, long stride, long rows, long how, uint8_t *bytes, float *out) {}
#endif
