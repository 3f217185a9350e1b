/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a coded payload, read from the end of the memory that its values go to. An input is two bytes (big-endian), the
 * number of values, and the payload. What is accepted is what packing writes, but for which NaN a NaN is. */
#include "sgp/codec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    uint64_t count = (uint64_t)data[0] << 8 | data[1];
    data += 2;
    size -= 2;
    size_t room = count * sizeof(float) > size ? count * sizeof(float) : size;
    uint8_t *memory = malloc(room + 1), *again = malloc(room + 1);
    sgp_assert(memory != NULL && again != NULL);
    const struct sgp_codec *codec = sgp_codec_of(SGP_CODING_FP16);
    float *values = (float *)(void *)memory;
    memcpy(memory + room - size, data, size);
    if (codec->unpack(values, memory + room - size, size, count) == 0) {
        sgp_assert(size == sgp_coding_bytes_most(SGP_CODING_FP16, count));
        for (uint64_t i = 0; i < count; i++) {
            float value = values[i];
            codec->project(&value, &value, 1);
            sgp_assert(isnan(value) ? isnan(values[i]) != 0 : value == values[i]);
        }
        codec->pack(again, values, count);
        bool nan = false;
        for (uint64_t i = 0; i < count; i++)
            nan = nan || isnan(values[i]);
        sgp_assert(nan || memcmp(again, data, size) == 0);
    }
    free(memory);
    free(again);
    return 0;
}
