/* What a step of decoding computes. Built by build.py with whatever compiler there is (GCC or Clang: it uses their vector
   types), called through ctypes; structures.py has the same structures. */

#pragma once

#include <stdint.h>

#define COLUMNS 16 /* outputs of a panel */

/* An int8 matrix, packed by packing.c for products.c. */
typedef struct {
    const int8_t *panels;
    const float *scales, *bias;
    const int32_t *sums;
    long inputs, outputs;
} matrix;

typedef struct {
    const float *weight, *bias; /* null where there is no norm */
    float epsilon;
} norm;

/* The keys and values that a layer attends to: [layers, slots, heads, room, size]. */
typedef struct {
    float *keys, *values;
    const int32_t *slots, *counts; /* [sentences]: where each lies, and how many there are */
    const int32_t *places;         /* [hypotheses, longest]: which a hypothesis sees; null for the first ones */
    long all_slots, longest, room;
} memory;

enum { NO_CONTEXT, GATED, RESIDUAL };

typedef struct {
    matrix query_key_value, words_output;
    norm after_words;
    matrix context_query, context_output; /* with the gate's W_i, W_s beside them where it is gated */
    norm after_context;
    matrix source_query, source_output;
    norm after_source;
    matrix inner, outer;
    norm after_feed_forward;
    long context, activation;
} layer;

void attend(const float *query, long stride, const float *keys, const float *values, const int32_t *slots,
            const int32_t *counts, const int32_t *places, long longest, long sentences, long beam, long heads, long size,
            long room, float *weights, float *out);
void put(const float *projected, float *keys, float *values, const int32_t *slots, long place, long sentences, long beam,
         long heads, long size, long room);

enum { SET, SET_POSITIVE, SET_SWISH, ADD };

/* out [rows, outputs] = x by^T + bias; or what is negative of it as zero, if SET_POSITIVE; or it times sigmoid(it), if
   SET_SWISH; or, if ADD, added to what out was. x: rows of `stride` numbers; bytes: int8_room for the quantized x. */
void int8_product(const matrix *by, const float *x, long stride, long rows, long how, uint8_t *bytes, float *out);
long int8_room(long rows, long inputs);
