/* Every kernel is compiled once for each level of processors: portable.c, avx2.c and avx512.c include the same files, and
   each gives what they define names of its own, attend_avx2 and so on. native.py calls those of the best level that the
   processor has (module.c). */

#pragma once

#define JOINED(name, level) name##_##level
#define NAMED(name, level) JOINED(name, level)

#define attend NAMED(attend, LEVEL)
#define attend_words NAMED(attend_words, LEVEL)
#define put NAMED(put, LEVEL)
#define continuations NAMED(continuations, LEVEL)
#define most_of_four NAMED(most_of_four, LEVEL)
#define pack_rows NAMED(pack_rows, LEVEL)
#define has_products NAMED(has_products, LEVEL)
#define product_room NAMED(product_room, LEVEL)
#define product NAMED(product, LEVEL)
#define step_room NAMED(step_room, LEVEL)
#define decoder_step NAMED(decoder_step, LEVEL)
