/* What a step of decoding does beside its matrix products, each in one pass over memory. Built by accelerator.py with
   whatever compiler there is (GCC or Clang: it uses their vector types), called through ctypes. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES 8
#define BLOCK 64 /* words */

typedef float floats __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));
typedef float unaligned __attribute__((vector_size(4 * LANES), aligned(4)));

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

/* One hypothesis in one head: its query meets `count` keys, in `places` or the first ones.
   `size` is a multiple of LANES; weights has room for `count` and LANES more. */
static inline __attribute__((always_inline)) void attend_one(const float *query, const float *keys, const float *values,
                                                             const int32_t *places, long count, long size,
                                                             float *weights, float *out) {
    float most = -INFINITY;
    for (long j = 0; j < count; j++) {
        const float *key = keys + (places ? places[j] : j) * size;
        floats dot = {};
        for (long i = 0; i < size; i += LANES) dot += load(query + i) * load(key + i);
        weights[j] = sum_of(dot);
        most = weights[j] > most ? weights[j] : most;
    }
    for (long j = count; j < count + LANES; j++) weights[j] = -INFINITY;
    floats total = {};
    for (long j = 0; j < count; j += LANES) {
        floats weight = exp_below(load(weights + j) - most);
        for (long k = count - j; k < LANES; k++) weight[k] = 0;
        store(weights + j, weight);
        total += weight;
    }
    float share = 1 / sum_of(total);
    floats found[size / LANES]; /* in registers where the compiler knows the size */
    for (long i = 0; i < size / LANES; i++) found[i] = (floats){};
    for (long j = 0; j < count; j++) {
        const float *value = values + (places ? places[j] : j) * size;
        for (long i = 0; i < size / LANES; i++) found[i] += weights[j] * load(value + i * LANES);
    }
    for (long i = 0; i < size / LANES; i++) store(out + i * LANES, found[i] * share);
}

/* query: rows of `stride` numbers; keys, values: [slots, heads, room, size]; slots, counts: [sentences];
   places: [sentences x beam, longest], which places a hypothesis sees, or null for the first ones;
   weights: room for the largest count and LANES more; out: [sentences x beam, heads x size]. */
void attend(const float *query, long stride, const float *keys, const float *values, const int32_t *slots,
            const int32_t *counts, const int32_t *places, long longest, long sentences, long beam, long heads, long size,
            long room, float *weights, float *out) {
    long width = heads * size;
    for (long s = 0; s < sentences; s++)
        for (long h = 0; h < heads; h++)
            for (long b = 0; b < beam; b++) {
                long row = s * beam + b, start = (slots[s] * heads + h) * room * size;
                const int32_t *seen = places ? places + row * longest : 0;
                const float *q = query + row * stride + h * size, *k = keys + start, *v = values + start;
                float *o = out + row * width + h * size;
                if (size == 64) /* usual sizes, told to the compiler */
                    attend_one(q, k, v, seen, counts[s], 64, weights, o);
                else if (size == 32)
                    attend_one(q, k, v, seen, counts[s], 32, weights, o);
                else
                    attend_one(q, k, v, seen, counts[s], size, weights, o);
            }
}

/* Puts the key and the value of each hypothesis' last word (query, key, value: rows of 3 x width) at its place. */
void put(const float *projected, float *keys, float *values, const int32_t *slots, long place, long sentences, long beam,
         long heads, long size, long room) {
    long width = heads * size;
    for (long s = 0; s < sentences; s++)
        for (long b = 0; b < beam; b++)
            for (long h = 0; h < heads; h++) {
                const float *row = projected + (s * beam + b) * 3 * width + h * size;
                long at = ((slots[s] * heads + h) * room + place + b) * size;
                memcpy(keys + at, row + width, size * sizeof(float));
                memcpy(values + at, row + 2 * width, size * sizeof(float));
            }
}

/* LANES numbers from x + at, what lies beyond `end` as nothing. */
static inline floats load_until(const float *x, long at, long end) {
    if (at + LANES <= end) return load(x + at);
    floats found = (floats){} - INFINITY;
    for (long i = 0; at + i < end; i++) found[i] = x[at + i];
    return found;
}

/* The `count` best continuations of each sentence's hypotheses, best first: totals, hypotheses, words.
   logits [sentences x beam, words]; scores [sentences x beam]; blocks: room for a number a block of words. */
void continuations(const float *logits, const float *scores, long sentences, long beam, long words, long count,
                   float *blocks, float *totals, int64_t *origins, int64_t *found) {
    for (long s = 0; s < sentences; s++) {
        float *best = totals + s * count;
        int64_t *origin = origins + s * count, *word = found + s * count;
        for (long k = 0; k < count; k++) best[k] = -INFINITY, origin[k] = 0, word[k] = 0;
        for (long b = 0; b < beam; b++) {
            const float *x = logits + (s * beam + b) * words;
            float score = scores[s * beam + b], most = -INFINITY;
            if (score == -INFINITY) continue;
            for (long at = 0, n = 0; at < words; at += BLOCK, n++) {
                floats here = load_until(x, at, words);
                for (long i = at + LANES; i < at + BLOCK && i < words; i += LANES)
                    here = larger(here, load_until(x, i, words));
                blocks[n] = largest_of(here);
                most = blocks[n] > most ? blocks[n] : most;
            }
            floats sum = {};
            for (long i = 0; i < words; i += LANES) sum += exp_below(load_until(x, i, words) - most);
            float shift = score - (most + logf(sum_of(sum)));
            for (long at = 0, n = 0; at < words; at += BLOCK, n++) {
                if (blocks[n] + shift <= best[count - 1]) continue;
                long end = at + BLOCK < words ? at + BLOCK : words;
                for (long i = at; i < end; i++) {
                    float total = x[i] + shift;
                    if (total <= best[count - 1]) continue;
                    long k = count - 1;
                    for (; k > 0 && best[k - 1] < total; k--)
                        best[k] = best[k - 1], origin[k] = origin[k - 1], word[k] = word[k - 1];
                    best[k] = total, origin[k] = b, word[k] = i;
                }
            }
        }
    }
}
