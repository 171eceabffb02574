/* The best next words of a sentence's hypotheses. */

#pragma once

#include "vectors.h"

#define BLOCK 64 /* words */

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
