/* int8 matrices in the order in which products.c reads them. */

#include "accelerator.h"
#include "vectors.h"

/* Of each row the largest sum of four weights of one sign among those that products.c adds in sixteen bits: of eight
   neighbours 0, 1, 4, 5 and 2, 3, 6, 7. */
void most_of_four(const int8_t *values, long rows, long inputs, int32_t *most) {
    for (long r = 0; r < rows; r++) {
        int32_t largest = 0;
        for (const int8_t *v = values + r * inputs, *end = v + inputs; v < end; v += 8)
            for (int first = 0; first < 4; first += 2) {
                int32_t positive = 0, negative = 0;
                for (int i = 0; i < 4; i++) {
                    int32_t weight = v[first + i % 2 + i / 2 * 4];
                    positive += weight > 0 ? weight : 0;
                    negative -= weight < 0 ? weight : 0;
                }
                largest = positive > largest ? positive : largest;
                largest = negative > largest ? negative : largest;
            }
        most[r] = largest;
    }
}

/* Some rows of a matrix, or all where `chosen` is null, as panels and sums (see products.c). The rest of the last panel is
   zeros already. */
void pack_rows(const int8_t *values, const int64_t *chosen, long rows, long inputs, int32_t *panels, int32_t *sums) {
    for (long r = 0; r < rows; r++) {
        const int8_t *row = values + (chosen ? chosen[r] : r) * inputs;
        int32_t sum = 0, *to = panels + r / COLUMNS * COLUMNS * inputs / 4 + r % COLUMNS;
        for (long i = 0; i < inputs; i++) sum += row[i];
        for (long i = 0; i < inputs / 4; i++) memcpy(to + i * COLUMNS, row + 4 * i, 4);
        sums[r] = sum;
    }
}
