/* All that is compiled for a level. */

#include "levels.h"

#include "attention.h"
#include "continuations.h"
#include "packing.h"
#include "products.h"
#include "decoder.h"
