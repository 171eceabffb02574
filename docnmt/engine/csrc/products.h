/* Products with packed matrices, for processors whose level has TILES: some rows with some panels of outputs.

   A row's result does not depend on the rows beside it. With int8 matrices the input's rows are quantized one by one, to
   seven bits; sums are whole numbers and exact. With float matrices each output is summed up in the order of its inputs.
   What is made of the sums is computed output by output: so a product has the same bits at every level. */

#pragma once

#include "accelerator.h"
#include "vectors.h"

#ifdef TILES
#define DEPTH 8 /* inputs are a multiple of it */
#include TILES

int has_products(void) { return 1; }

/* Of the quantized rows, ROWS more of them, for a last tile that is not full, and each row's scale and zero. */
long product_room(long rows, long inputs) { return (rows + ROWS) * (inputs + sizeof(float) + sizeof(int32_t)); }

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

/* Eight outputs of a row, from `column`. */
static inline void finish(const matrix *by, floats y, long column, long how, float *row) {
    long left = by->outputs - column;
    y += load(by->bias + column);
    if (how == SET_POSITIVE) y = larger(y, (floats){});
    if (how == SET_SWISH) y *= sigmoid(y);
    if (left < LANES)
        store_some(row + column, y, left); /* to ADD, outputs are a multiple of LANES */
    else
        store(row + column, how == ADD ? load(row + column) + y : y);
}

/* The outputs of a tile of int8: some rows, columns from `at`. */
static void finish_int8(const matrix *by, const int32_t *sums, long rows, long at, const float *scales,
                        const int32_t *zeros, long how, float *out) {
    for (long r = 0; r < rows; r++, sums += PANELS * COLUMNS, out += by->outputs)
        for (long column = at; column < at + PANELS * COLUMNS && column < by->outputs; column += LANES) {
            ints shift = zeros[r] * *(const ints_anywhere *)(by->sums + column);
            ints sum = *(const ints_anywhere *)(sums + column - at) - shift;
            finish(by, __builtin_convertvector(sum, floats) * (scales[r] * load(by->scales + column)), column, how, out);
        }
}

static void int8_product(const matrix *by, const float *x, long stride, long rows, long how, uint8_t *bytes, float *out) {
    long inputs = by->inputs, outputs = by->outputs;
    float *scales = (float *)(bytes + (rows + ROWS) * inputs);
    int32_t *zeros = (int32_t *)(scales + rows), sums[ROWS * PANELS * COLUMNS] __attribute__((aligned(64)));
    for (long r = 0; r < rows; r++) quantize_row(x + r * stride, inputs, bytes + r * inputs, scales + r, zeros + r);
    for (long at = 0; at < outputs; at += PANELS * COLUMNS)
        for (long r = 0; r < rows; r += ROWS) {
            long some = rows - r < ROWS ? rows - r : ROWS;
            const int8_t *panel = (const int8_t *)by->panels + at * inputs;
            tile(bytes + r * inputs, panel, inputs, (outputs - at + COLUMNS - 1) / COLUMNS, sums);
            finish_int8(by, sums, some, at, scales + r, zeros + r, how, out + r * outputs);
        }
}

/* Of FLOAT_ROWS rows of floats and FLOAT_PANELS panels; where there are fewer rows the last one stands for the others. */
static void float_outputs(const matrix *by, const float *x, long stride, long rows, long at, long how, float *out) {
    float sums[FLOAT_ROWS * FLOAT_PANELS * COLUMNS] __attribute__((aligned(64)));
    const float *of[FLOAT_ROWS];
    for (long n = 0; n < FLOAT_ROWS; n++) of[n] = x + (n < rows ? n : rows - 1) * stride;
    float_tile(of, (const float *)by->panels + at * by->inputs, by->inputs, sums);
    for (long n = 0; n < FLOAT_ROWS && n < rows; n++, out += by->outputs)
        for (long i = 0; i < FLOAT_PANELS * COLUMNS && at + i < by->outputs; i += LANES)
            finish(by, load(sums + n * FLOAT_PANELS * COLUMNS + i), at + i, how, out);
}

#define ROWS_AT_ONCE 96 /* rows that stay in the processor's second cache while all panels pass */

static void float_product(const matrix *by, const float *x, long stride, long rows, long how, float *out) {
    for (long from = 0, to; from < rows; from = to) {
        to = rows - from < ROWS_AT_ONCE ? rows : from + ROWS_AT_ONCE;
        for (long at = 0; at < by->outputs; at += FLOAT_PANELS * COLUMNS)
            for (long r = from; r < to; r += FLOAT_ROWS)
                float_outputs(by, x + r * stride, stride, to - r, at, how, out + r * by->outputs);
    }
}

/* panels: the weights in panels of COLUMNS outputs, [panels, inputs, COLUMNS] of floats or [panels, inputs / 4, COLUMNS, 4]
   of int8, zeros where there are no more; an even number of panels of floats; scales, bias, sums of an output's weights:
   [panels x COLUMNS].
   out [rows, outputs] = x by^T + bias; or what is negative of it as zero, if SET_POSITIVE; or it times sigmoid(it), if
   SET_SWISH; or, if ADD, added to what out was. x: rows of `stride` numbers; bytes: product_room, for int8. */
void product(const matrix *by, const float *x, long stride, long rows, long how, uint8_t *bytes, float *out) {
    if (by->scales)
        int8_product(by, x, stride, rows, how, bytes, out);
    else
        float_product(by, x, stride, rows, how, out);
}
#else
int has_products(void) { return 0; }
long product_room(long rows, long inputs) { return 0; }
void product(const matrix *by, const float *x, long stride, long rows, long how, uint8_t *bytes, float *out) {}
#endif
