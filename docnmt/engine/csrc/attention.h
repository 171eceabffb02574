/* Attention of hypotheses to the words of their sentence, its context, or their own past, in one pass over memory. */

#pragma once

#include "accelerator.h"
#include "vectors.h"

/* One query in one head meets `count` keys, in `places` or the first ones, one every `stride` numbers; there is at least one.
   `size` is a multiple of LANES; weights has room for `count` and LANES more. */
static inline __attribute__((always_inline)) void attend_one(const float *query, const float *keys, const float *values,
                                                             long stride, const int32_t *places, long count, long size,
                                                             float *weights, float *out) {
    float most = -INFINITY;
    for (long j = 0; j < count; j++) {
        const float *key = keys + (places ? places[j] : j) * stride;
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
        const float *value = values + (places ? places[j] : j) * stride;
        for (long i = 0; i < size / LANES; i++) found[i] += weights[j] * load(value + i * LANES);
    }
    for (long i = 0; i < size / LANES; i++) store(out + i * LANES, found[i] * share);
}

static void attend_sized(const float *query, const float *keys, const float *values, long stride, const int32_t *places,
                         long count, long size, float *weights, float *out) {
    if (size == 64) /* usual sizes, told to the compiler */
        attend_one(query, keys, values, stride, places, count, 64, weights, out);
    else if (size == 32)
        attend_one(query, keys, values, stride, places, count, 32, weights, out);
    else
        attend_one(query, keys, values, stride, places, count, size, weights, out);
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
                attend_sized(query + row * stride + h * size, keys + start, values + start, size,
                             places ? places + row * longest : 0, counts[s], size, weights, out + row * width + h * size);
            }
}

/* Sentences one after the other: each of a sentence's words looks at all words of the same sentence of a memory, maybe
   itself. query: rows of `stride` numbers; keys, values: rows of `key_stride`; lengths, key_lengths: [sentences];
   weights: room for the largest of these and LANES more; out: [words, heads x size]. */
void attend_words(const float *query, long stride, const int64_t *lengths, const float *keys, const float *values,
                  long key_stride, const int64_t *key_lengths, long sentences, long heads, long size, float *weights,
                  float *out) {
    for (long s = 0; s < sentences; s++) {
        for (long h = 0; h < heads; h++)
            for (long i = 0; i < lengths[s]; i++)
                attend_sized(query + i * stride + h * size, keys + h * size, values + h * size, key_stride, 0,
                             key_lengths[s], size, weights, out + (i * heads + h) * size);
        query += lengths[s] * stride, out += lengths[s] * heads * size;
        keys += key_lengths[s] * key_stride, values += key_lengths[s] * key_stride;
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
