/* The decoder's layers for the next word of all hypotheses. The same as engine/layers.py, in one call. */

#pragma once

#include "accelerator.h"
#include "vectors.h"

/* x [rows, width], in place */
static void normalize(const norm *by, float *x, long rows, long width) {
    if (!by->weight) return;
    for (long r = 0; r < rows; r++, x += width) {
        floats sum = {}, squares = {};
        for (long i = 0; i < width; i += LANES) sum += load(x + i);
        float mean = sum_of(sum) / width;
        for (long i = 0; i < width; i += LANES) {
            floats far = load(x + i) - mean;
            squares += far * far;
        }
        float scale = 1 / sqrtf(sum_of(squares) / width + by->epsilon);
        for (long i = 0; i < width; i += LANES)
            store(x + i, (load(x + i) - mean) * scale * load(by->weight + i) + load(by->bias + i));
    }
}

/* h [rows, width]; beside, found [rows, 2 width]: behind the query W_i h; the sub-layer's output s and W_s s.
   lambda h + (1 - lambda) s; or, where no norm follows, h + (1 - lambda) s: the identity while the gate is closed. */
static void gate(float *h, const float *beside, const float *found, long rows, long width, int identity) {
    for (long r = 0; r < rows; r++, h += width, beside += 2 * width, found += 2 * width)
        for (long i = 0; i < width; i += LANES) {
            floats lambda = sigmoid(load(beside + width + i) + load(found + width + i));
            floats kept = identity ? load(h + i) : lambda * load(h + i);
            store(h + i, kept + (1 - lambda) * load(found + i));
        }
}

static void look(const memory *at, long n, const float *query, long stride, long sentences, long beam, long heads,
                 long size, float *weights, float *out) {
    long start = n * at->all_slots * heads * at->room * size;
    attend(query, stride, at->keys + start, at->values + start, at->slots, at->counts, at->places, at->longest, sentences,
           beam, heads, size, at->room, weights, out);
}

/* Room, in floats, for a step: what is projected, what is found, weights of attention. */
long step_room(long rows, long width, long filter, long longest) {
    long widest = filter > 3 * width ? filter : 3 * width;
    return rows * (widest + width + 2 * width) + longest + 2 * LANES;
}

/* t [rows, width] becomes what the softmax looks at. words, source, context: of all layers; context may be null; place:
   where in a sentence's slot the first hypothesis' word goes; room: as above; bytes: room for the widest product. */
void decoder_step(const layer *layers, long count, float *t, long sentences, long beam, long width, long heads, long filter,
                  const memory *words, long place, const memory *source, const memory *context, float *room,
                  uint8_t *bytes) {
    long rows = sentences * beam, size = width / heads, widest = filter > 3 * width ? filter : 3 * width;
    float *projected = room, *found = projected + rows * widest, *output = found + rows * width;
    float *weights = output + 2 * rows * width;
    for (long n = 0; n < count; n++) {
        const layer *l = layers + n;
        product(&l->query_key_value, t, width, rows, SET, bytes, projected);
        long start = n * words->all_slots * width * words->room;
        put(projected, words->keys + start, words->values + start, words->slots, place, sentences, beam, heads, size,
            words->room);
        look(words, n, projected, 3 * width, sentences, beam, heads, size, weights, found);
        product(&l->words_output, found, width, rows, ADD, bytes, t);
        normalize(&l->after_words, t, rows, width);
        if (context && l->context == GATED) {
            product(&l->context_query, t, width, rows, SET, bytes, projected);
            look(context, n, projected, 2 * width, sentences, beam, heads, size, weights, found);
            product(&l->context_output, found, width, rows, SET, bytes, output);
            gate(t, projected, output, rows, width, !l->after_context.weight);
            normalize(&l->after_context, t, rows, width);
        } else if (context && l->context == RESIDUAL) {
            product(&l->context_query, t, width, rows, SET, bytes, projected);
            look(context, n, projected, width, sentences, beam, heads, size, weights, found);
            product(&l->context_output, found, width, rows, ADD, bytes, t);
            normalize(&l->after_context, t, rows, width);
        }
        product(&l->source_query, t, width, rows, SET, bytes, projected);
        look(source, n, projected, width, sentences, beam, heads, size, weights, found);
        product(&l->source_output, found, width, rows, ADD, bytes, t);
        normalize(&l->after_source, t, rows, width);
        product(&l->inner, t, width, rows, l->activation, bytes, projected);
        product(&l->outer, projected, filter, rows, ADD, bytes, t);
        normalize(&l->after_feed_forward, t, rows, width);
    }
}
