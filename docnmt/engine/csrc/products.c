/* Products with int8 matrices, for processors that have AVX2.

   The input's rows are quantized one by one, to seven bits, so that a row's result does not depend on the rows beside it.
   The products of eight neighbouring inputs are added in pairs and fours in sixteen bits, which halves the work of
   widening them: calls.py, in_16_bits, sees to it that no four weights can overflow there. */

#include "accelerator.h"
#include "vectors.h"

#ifdef __AVX2__
#include <immintrin.h>

#define ROWS 4     /* of a tile: four hypotheses of a sentence */
#define HALVES 2   /* of COLUMNS: two registers of sums a row */
#define DEPTH 8    /* inputs at a time */

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

static inline __m256i four(const uint8_t *at) {
    int32_t bytes;
    memcpy(&bytes, at, 4);
    return _mm256_set1_epi32(bytes);
}

/* sums += the products of eight inputs with eight weights of each of eight outputs */
static inline __m256i add_products(__m256i sums, __m256i a0, __m256i a1, __m256i w0, __m256i w1) {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
    return _mm256_dpbusd_epi32(_mm256_dpbusd_epi32(sums, a0, w0), a1, w1);
#else
    __m256i fours = _mm256_add_epi16(_mm256_maddubs_epi16(a0, w0), _mm256_maddubs_epi16(a1, w1));
    return _mm256_add_epi32(sums, _mm256_madd_epi16(fours, _mm256_set1_epi16(1)));
#endif
}

static __attribute__((noinline)) void store_some(float *to, floats x, long count) {
    for (long i = 0; i < count; i++) to[i] = x[i];
}

/* A row of a tile: its next eight inputs meet those weights of all outputs of the panel. */
#define ADD_ROW(n)                                                               \
    do {                                                                         \
        __m256i a0 = four(a + n * inputs), a1 = four(a + n * inputs + 4);        \
        low##n = add_products(low##n, a0, a1, w[0], w[2]);                       \
        high##n = add_products(high##n, a0, a1, w[1], w[3]);                     \
    } while (0)

/* A tile's sums: ROWS quantized rows with a panel. Each sum has a name, so that all of them stay in registers. */
static __attribute__((noinline)) void tile(const uint8_t *a, const int8_t *panel, long inputs, __m256i *sums) {
    __m256i low0 = {}, high0 = {}, low1 = {}, high1 = {}, low2 = {}, high2 = {}, low3 = {}, high3 = {};
    for (const uint8_t *end = a + inputs; a < end; a += DEPTH, panel += DEPTH * COLUMNS) {
        __m256i w[4];
        for (int j = 0; j < 4; j++) w[j] = _mm256_loadu_si256((const __m256i *)panel + j);
        ADD_ROW(0);
        ADD_ROW(1);
        ADD_ROW(2);
        ADD_ROW(3);
    }
    sums[0] = low0, sums[1] = high0, sums[2] = low1, sums[3] = high1;
    sums[4] = low2, sums[5] = high2, sums[6] = low3, sums[7] = high3;
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

/* panels: the weights in panels of COLUMNS outputs, [panels, inputs / DEPTH, 2, COLUMNS, 4], zeros where there are no
   more; scales, bias, sums of an output's weights: [panels x COLUMNS]. */
void int8_product(const matrix *by, const float *x, long stride, long rows, long how, uint8_t *bytes, float *out) {
    long inputs = by->inputs, outputs = by->outputs;
    float *scales = (float *)(bytes + (rows + ROWS) * inputs);
    int32_t *zeros = (int32_t *)(scales + rows);
    for (long r = 0; r < rows; r++) quantize_row(x + r * stride, inputs, bytes + r * inputs, scales + r, zeros + r);
    for (long at = 0; at < outputs; at += COLUMNS)
        for (long r = 0; r < rows; r += ROWS) {
            __m256i sums[ROWS * HALVES];
            tile(bytes + r * inputs, by->panels + at * inputs, inputs, sums);
            for (int i = 0; i < ROWS && r + i < rows; i++)
                for (int j = 0; j < HALVES; j++) {
                    long column = at + j * LANES;
                    floats y = finished(by, (ints)sums[i * HALVES + j], column, scales[r + i], zeros[r + i], how);
                    float *to = out + (r + i) * outputs + column;
                    if (column + LANES > outputs)
                        store_some(to, y, outputs - column); /* to ADD, outputs are a multiple of LANES */
                    else
                        store(to, how == ADD ? load(to) + y : y);
                }
        }
}
#else
int has_int8(void) { return 0; }
long int8_room(long rows, long inputs) { return 0; }
void int8_product(const matrix *by, const float *x, long stride, long rows, long how, uint8_t *bytes, float *out) {}
#endif
