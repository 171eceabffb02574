/* What a step of decoding works on; native.py has the same structures. An extension that setup.py builds, with GCC or Clang:
   it uses their vector types. */

#pragma once

#include <stdint.h>

#define COLUMNS 16 /* outputs of a panel */

/* A matrix, packed by packing.h for products.h. */
typedef struct {
    const void *panels;  /* of int8, or of floats, which have neither scales nor sums */
    const float *scales; /* null where the panels are floats */
    const float *bias;
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

/* What a product does with its sums: the activations are those of feed-forward layers. */
enum { SET, SET_POSITIVE, SET_SWISH, ADD };
