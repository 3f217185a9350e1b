/* SPDX-License-Identifier: Apache-2.0 */
/* Which values a message carries, and in which coding. */
#include "sgp/message.h"

struct sgp_cargo sgp_message_cargo(const struct sgp_message *message)
{
    const struct sgp_share *share = &message->share;
    const struct sgp_estimate *estimate = &message->estimate;
    if (message->type == SGP_SHARE)
        return (struct sgp_cargo){
            share->slice, share->payload_bytes, share->coding, share->compressor};
    if (message->type != SGP_ESTIMATE)
        return (struct sgp_cargo){.bytes = 0};
    struct sgp_slice all = {0, estimate->payload_bytes / sizeof(float)};
    return (struct sgp_cargo){estimate->slice.count > 0 ? estimate->slice : all,
        estimate->payload_bytes, estimate->coding, estimate->compressor};
}
