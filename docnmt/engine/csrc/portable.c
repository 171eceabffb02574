/* For any processor: what the compiler makes of eight floats at a time; no int8. */

#define LEVEL portable
#include "kernels.h"
