/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads however the kernel cuts them: plain, coded, damaged, and folded while they arrive. */
#include "connection_link.h"

#include <math.h>

/* ---- many frames, few calls of the kernel ---- */

/* A credit, a share and an acknowledgement, one after the other, as they go over the wire. */
static size_t put_frames(uint8_t *bytes, size_t size, uint32_t parameters)
{
    const struct sgp_message all[] = {{.type = SGP_CREDIT, .pulse = pulse, .credit = {.round = 1}},
        share_of(parameters), acknowledgement(SGP_REASON_NONE)};
    size_t count = 0, more;
    for (size_t i = 0; i < 3; i++) {
        cr_assert(zero(int, sgp_wire_encode(&all[i], bytes + count, size - count, &more)));
        count += more;
        if (all[i].type != SGP_SHARE)
            continue;
        uint32_t sum = (uint32_t)XXH3_64bits(payload, 4 * parameters);
        sgp_wire_chunk_header(4 * parameters, sum, bytes + count);
        memcpy(bytes + count + SGP_WIRE_HEADER_BYTES, payload, 4 * parameters);
        count += SGP_WIRE_HEADER_BYTES + 4 * parameters;
    }
    return count;
}

/* Wherever the kernel cuts them: each piece is read before the next one is written. */
Test(connection_payload, frames_are_the_same_however_they_are_cut)
{
    static uint8_t bytes[4 * LARGE + 4096];
    const uint32_t parameters[] = {SMALL, LARGE};
    for (uint32_t i = 0; i < PARAMETERS; i++)
        payload[i] = (float)i;
    for (size_t i = 0; i < 2; i++) {
        size_t count = put_frames(bytes, sizeof bytes, parameters[i]);
        for (size_t piece = i == 0 ? 1 : 97; piece <= 2 * count; piece += 1 + piece / 3) {
            uv_loop_t loop;
            int peer;
            struct link *link = linked(&loop, &peer);
            memset(came, 0, sizeof came);
            for (size_t begin = 0; begin < count; begin += piece) {
                size_t part = count - begin < piece ? count - begin : piece;
                cr_assert(eq(sz, (size_t)write(peer, bytes + begin, part), part));
                while (link->bytes_received < begin + part)
                    (void)uv_run(&loop, UV_RUN_ONCE);
            }
            cr_assert(eq(u64, messages, 3));
            cr_assert(eq(u64, payloads, 1));
            cr_assert(eq(int, heard, SGP_ACK));
            cr_assert(zero(int, memcmp(came, payload, 4 * parameters[i])));
            close_all(&loop, link, peer);
        }
    }
}

static void write_all(
    uv_loop_t *loop, struct link *link, int peer, const uint8_t *bytes, size_t count, size_t piece)
{
    uint64_t had = link->bytes_received;
    for (size_t begin = 0; begin < count && failure == 0; begin += piece) {
        size_t part = count - begin < piece ? count - begin : piece;
        cr_assert(eq(sz, (size_t)write(peer, bytes + begin, part), part));
        while (link->bytes_received < had + begin + part && !link->closing && payload_code == 0)
            (void)uv_run(loop, UV_RUN_ONCE);
    }
}

static struct sgp_fold_work fold_of(void)
{
    return (struct sgp_fold_work){.source = source,
        .keep = 0.3f,
        .fraction = 0.7f,
        .stride = 1,
        .their_scale = 0.5f,
        .own_scale = 2};
}

/* The sum is what absorbing would have made of it, and the distance what absorbing would have measured. */
Test(connection_payload, folding_is_the_same_however_it_is_cut)
{
    static uint8_t bytes[4 * LARGE + 4096];
    static float sum[LARGE];
    const struct sgp_kernels *kernels = sgp_kernels_reference();
    for (uint32_t i = 0; i < LARGE; i++) {
        payload[i] = sinf((float)i);
        source[i] = cosf((float)i);
        sum[i] = payload[i];
    }
    double difference, norm;
    kernels->distance(&difference, &norm, payload, 0.5f, source, 2, LARGE);
    double squares;
    (void)kernels->fold(&squares, sum, source, 0.3f, 0.7f, LARGE);
    size_t count = put_frames(bytes, sizeof bytes, LARGE);
    for (size_t piece = 333; piece <= 2 * count; piece += 1 + piece / 2) {
        uv_loop_t loop;
        int peer;
        struct link *link = linked(&loop, &peer);
        struct sgp_fold_work how = fold_of();
        fold = &how;
        late = piece % 2 == 0 && piece < count / 4;
        size_t before = late ? (count / 3 / piece) * piece : 0;
        write_all(&loop, link, peer, bytes, before, piece);
        if (late)
            link_fold(link, fold);
        write_all(&loop, link, peer, bytes + before, count - before, piece);
        late = false;
        cr_assert(eq(u64, payloads, 1));
        cr_assert(zero(int, payload_code));
        cr_assert(zero(int, memcmp(came, sum, sizeof sum)));
        cr_assert(eq(dbl, how.difference, difference));
        cr_assert(eq(dbl, how.norm, norm));
        fold = NULL;
        close_all(&loop, link, peer);
    }
}

/* Three quarters have come before: each piece that comes takes some of these along, never much, and nothing is left for the end. Or
 * it is given up on the way, and what is behind is let be. */
Test(connection_payload, a_fold_that_begins_late_catches_up)
{
    static uint8_t bytes[4 * HUGE + 4096];
    static float sum[HUGE];
    const size_t piece = 20000, run = SGP_KERNELS_RUN;
    for (uint32_t i = 0; i < HUGE; i++) {
        sum[i] = payload[i] = sinf((float)i);
        source[i] = cosf((float)i);
    }
    double squares;
    (void)sgp_kernels_reference()->fold(&squares, sum, source, 0.3f, 0.7f, HUGE);
    size_t count = put_frames(bytes, sizeof bytes, HUGE), before = count / 4 * 3 / piece * piece;
    for (int gives_up = 0; gives_up < 2; gives_up++) {
        uv_loop_t loop;
        int peer;
        struct link *link = linked(&loop, &peer);
        struct sgp_fold_work how = fold_of();
        fold = &how;
        late = true;
        write_all(&loop, link, peer, bytes, before, piece);
        cr_assert(eq(u64, link->checked, link->received / 4));
        link_fold(link, &how);
        cr_assert(zero(u64, link->checked));
        for (size_t at = before; at + 2 * piece < count; at += piece) {
            uint64_t checked = link->checked;
            write_all(&loop, link, peer, bytes + at, piece, piece);
            cr_assert(le(u64, link->checked, checked + 5 * piece / 4 + run), "not all at once");
            if (gives_up && at > before + 3 * piece) {
                cr_assert(gt(u64, checked, 0));
                link_fold(link, NULL);
                cr_assert(eq(u64, link->checked, link->received / 4));
                break;
            }
            before = at + piece;
        }
        if (!gives_up)
            cr_assert(lt(u64, link->received / 4 - link->checked, 2 * run), "nothing is behind");
        size_t rest = (size_t)link->bytes_received;
        write_all(&loop, link, peer, bytes + rest, count - rest, piece);
        cr_assert(eq(u64, payloads, 1));
        cr_assert(zero(int, payload_code));
        if (!gives_up)
            cr_assert(zero(int, memcmp(came, sum, sizeof sum)));
        late = false;
        fold = NULL;
        close_all(&loop, link, peer);
        before = count / 4 * 3 / piece * piece;
    }
}

/* In whichever part of it: the code says so, what it was to be added to is as it was, and what follows goes on. */
Test(connection_payload, damage_is_found_wherever_it_is_also_in_what_is_folded)
{
    static uint8_t bytes[4 * LARGE + 4096];
    static float before[LARGE];
    memcpy(before, source, sizeof before);
    uint8_t frame[SGP_WIRE_FRAME_MAX]; /* of what stands behind the payload */
    size_t behind, count = put_frames(bytes, sizeof bytes, LARGE);
    const struct sgp_message ack = acknowledgement(SGP_REASON_NONE);
    cr_assert(zero(int, sgp_wire_encode(&ack, frame, sizeof frame, &behind)));
    for (size_t window = 0; window < 4 * LARGE; window += 4096) {
        for (int folds = 0; folds < 2; folds++) {
            uv_loop_t loop;
            int peer;
            struct link *link = linked(&loop, &peer);
            struct sgp_fold_work how = fold_of();
            fold = folds ? &how : NULL;
            size_t at = count - behind - 4 * LARGE + window;
            bytes[at] ^= 0x10;
            write_all(&loop, link, peer, bytes, count, 4096);
            bytes[at] ^= 0x10;
            cr_assert(eq(int, payload_code, SGP_E_CHECKSUM), "%zu", window);
            cr_assert(zero(int, memcmp(source, before, sizeof before)));
            fold = NULL;
            payload_code = 0;
            close_all(&loop, link, peer);
        }
    }
}

/* ---- coded payloads ---- */

static struct sgp_message coded_share_of(uint32_t parameters)
{
    struct sgp_message message = share_of(parameters);
    message.share.coding = SGP_CODING_FP16;
    message.share.payload_bytes = sgp_coding_bytes_most(SGP_CODING_FP16, parameters);
    return message;
}

/* The announcement, and the payload in chunks of so many blocks. */
static size_t put_coded(uint8_t *bytes, size_t size, uint32_t parameters, uint32_t blocks)
{
    const struct sgp_message message = coded_share_of(parameters);
    size_t count;
    cr_assert(zero(int, sgp_wire_encode(&message, bytes, size, &count)));
    for (uint32_t first = 0, values; first < parameters; first += values) {
        values = parameters - first < 256 * blocks ? parameters - first : 256 * blocks;
        uint32_t chunk = (uint32_t)sgp_coding_bytes_most(SGP_CODING_FP16, values);
        uint8_t *place = bytes + count + SGP_WIRE_HEADER_BYTES;
        (void)sgp_codec_pack(&halves, place, payload + first, first, values);
        sgp_wire_chunk_header(chunk, (uint32_t)XXH3_64bits(place, chunk), bytes + count);
        count += SGP_WIRE_HEADER_BYTES + chunk;
    }
    return count;
}

static void fill_payload(uint32_t parameters)
{
    for (uint32_t i = 0; i < parameters; i++)
        payload[i] = sinf((float)i) * (i % 5 == 0 ? 1e4F : 1);
}

/* Also where the last block has one value, whose bytes lie where that before it ends. */
Test(connection_payload, coded_payloads_are_the_same_however_they_are_cut)
{
    static uint8_t bytes[4 * LARGE + 4096];
    static float decoded[LARGE], folded[LARGE];
    const uint32_t parameters[] = {4, 255, 256, 257, 511, 513, 1000, LARGE - 1, LARGE};
    fill_payload(LARGE);
    for (uint32_t i = 0; i < LARGE; i++)
        source[i] = cosf((float)i);
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        uint32_t many = parameters[i];
        size_t count = put_coded(bytes, sizeof bytes, many, i % 2 == 0 ? 1 : 7);
        (void)sgp_codec_project(&halves, decoded, payload, 0, many);
        double squares;
        float largest = sgp_kernels_reference()->measure(&squares, decoded, many);
        memcpy(folded, decoded, sizeof decoded);
        (void)sgp_kernels_reference()->fold(&squares, folded, source, 0.3f, 0.7f, many);
        for (size_t piece = many > 1000 ? 97 : 1; piece <= 2 * count; piece += 1 + piece / 2) {
            uv_loop_t loop;
            int peer;
            struct link *link = linked(&loop, &peer);
            struct sgp_fold_work how = fold_of();
            fold = piece % 3 == 0 ? &how : NULL;
            const float *meant = fold != NULL ? folded : decoded;
            memset(came, 0xff, sizeof *came * (many + 1));
            write_all(&loop, link, peer, bytes, count, piece);
            while (payloads == 0 && failure == 0)
                (void)uv_run(&loop, UV_RUN_ONCE);
            cr_assert(zero(int, failure), "%s", failure_text);
            cr_assert(zero(int, memcmp(came, meant, many * sizeof *came)), "%u", many);
            cr_assert(isnan(came[many]), "no more is written");
            cr_assert(eq(flt, link->largest, largest));
            cr_assert(epsilon_eq(dbl, link->squares, squares, 1e-6 * squares));
            fold = NULL;
            close_all(&loop, link, peer);
        }
    }
}

/* What the peer reads, after the announcement. */
static void read_coded(uv_loop_t *loop, int peer, uint8_t *packed, uint64_t payload_bytes)
{
    static uint8_t bytes[4 * PARAMETERS];
    size_t have = 0, at = 0;
    for (uint64_t got = 0; got < payload_bytes;) {
        (void)uv_run(loop, UV_RUN_NOWAIT);
        ssize_t more = recv(peer, bytes + have, sizeof bytes - have, MSG_DONTWAIT);
        have += more > 0 ? (size_t)more : 0;
        struct sgp_wire_header header;
        struct sgp_error error;
        while (have - at >= SGP_WIRE_HEADER_BYTES) {
            cr_assert(zero(int, sgp_wire_header_decode(bytes + at, &header, &error)));
            size_t whole = SGP_WIRE_HEADER_BYTES + header.body_bytes + header.payload_bytes;
            if (have - at < whole)
                break;
            const uint8_t *chunk = bytes + at + SGP_WIRE_HEADER_BYTES + header.body_bytes;
            memcpy(packed + got, chunk, header.payload_bytes);
            got += header.payload_bytes;
            at += whole;
        }
    }
}

Test(connection_payload, a_coded_payload_is_packed_as_it_leaves)
{
    static uint8_t packed[5 * LARGE], known[4 * LARGE];
    const uint32_t parameters[] = {4, 1001, LARGE};
    fill_payload(LARGE);
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        uv_loop_t loop;
        int peer;
        struct link *link = linked(&loop, &peer);
        struct sgp_message message = coded_share_of(parameters[i]);
        for (uint64_t number = 1; number <= 2; number++) { /* the second follows the first */
            message.share.number = number;
            link_send_payload(link, &message, payload, halves);
        }
        (void)sgp_codec_pack(&halves, known, payload, 0, parameters[i]);
        read_coded(&loop, peer, packed, 2 * message.share.payload_bytes);
        size_t size = (size_t)message.share.payload_bytes;
        cr_assert(zero(int, memcmp(packed, known, size)));
        cr_assert(zero(int, memcmp(packed + size, known, size)));
        close_all(&loop, link, peer);
    }
}

/* Damage is the line's fault, and told as such; what was so packed is the peer's. */
Test(connection_payload, a_payload_of_another_form_ends_it)
{
    static uint8_t bytes[4 * LARGE + 4096];
    fill_payload(1000);
    for (int packed_so = 0; packed_so < 2; packed_so++) {
        uv_loop_t loop;
        int peer;
        struct link *link = linked(&loop, &peer);
        size_t count = put_coded(bytes, sizeof bytes, 1000, 4), chunk = 4 * 516 - 48;
        uint8_t *place = bytes + count - chunk;
        place[516] = 17; /* the second block's kind */
        if (packed_so)
            sgp_wire_chunk_header((uint32_t)chunk, (uint32_t)XXH3_64bits(place, chunk),
                place - SGP_WIRE_HEADER_BYTES);
        cr_assert(eq(sz, (size_t)write(peer, bytes, count), count)); /* the link may be freed */
        while (payloads == 0 && failure == 0)
            (void)uv_run(&loop, UV_RUN_ONCE);
        cr_assert(eq(int, failure, packed_so ? SGP_E_PROTOCOL : 0));
        cr_assert(eq(int, payload_code, packed_so ? 0 : SGP_E_CHECKSUM));
        close_all(&loop, packed_so ? NULL : link, peer);
    }
}

Test(connection_payload, what_was_read_with_the_message_that_ends_it_is_dropped)
{
    static uint8_t bytes[8192];
    size_t count = put_frames(bytes, sizeof bytes, SMALL);
    uv_loop_t loop;
    int peer;
    (void)linked(&loop, &peer);
    ended = 1;
    cr_assert(eq(sz, (size_t)write(peer, bytes, count), count));
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    cr_assert(eq(u64, messages, 1));
    cr_assert(zero(int, uv_loop_close(&loop)));
    (void)close(peer);
}
