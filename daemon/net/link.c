/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to events and back on one connection; see link.h. */
#include "link.h"

#include "sgp/codec.h"

#include <stdlib.h>
#include <string.h>

struct link *link_create(uv_loop_t *loop, const struct link_events *events, void *context)
{
    struct link *link = calloc(1, sizeof *link);
    XXH3_state_t *hash = XXH3_createState();
    if (link == NULL || hash == NULL || uv_tcp_init(loop, &link->tcp) < 0) {
        free(link);
        (void)XXH3_freeState(hash);
        return NULL;
    }
    link->tcp.data = link;
    link->hash = hash;
    link->events = events;
    link->context = context;
    link->phase = LINK_HEADER;
    return link;
}

static void on_closed(uv_handle_t *handle)
{
    struct link *link = handle->data;
    if (link->events->freed != NULL)
        link->events->freed(link);
    sgp_cipher_destroy(link->cipher);
    free(link->coded);
    (void)XXH3_freeState(link->hash);
    free(link);
}

size_t link_room(const struct link *link)
{
    return LINK_QUEUE_BYTES - link->queue_bytes;
}

bool link_stands(const struct link *link)
{
    return !link->closing && link->failure == 0;
}

/* Number of bytes at the head of the queue that may be written. */
static size_t writable(const struct link *link)
{
    return link->behind.waits ? link->behind.queued : link->queue_bytes;
}

/* The queued messages that no write has taken yet, in one or two buffers. Returns the number of
 * buffers. */
static unsigned queued(const struct link *link, uv_buf_t buffers[2])
{
    size_t flight = link->writing ? link->queue_flight : 0, bytes = writable(link) - flight;
    size_t head = (link->queue_head + flight) % LINK_QUEUE_BYTES;
    size_t straight = LINK_QUEUE_BYTES - head, first = bytes < straight ? bytes : straight;
    buffers[0] = uv_buf_init((char *)link->queue + head, (unsigned)first);
    buffers[1] = uv_buf_init((char *)link->queue, (unsigned)(bytes - first));
    return (unsigned)(first > 0) + (unsigned)(first < bytes);
}

/* Seal what is to be written, unless the link is plain. Returns the number of buffers; 0: none, or
 * the cipher has ended. */
static unsigned seal(struct link *link, uv_buf_t *buffers, unsigned count)
{
    const uint8_t *bytes;
    if (link->cipher == NULL)
        return count;
    for (unsigned i = 0; i < count; i++)
        if (sgp_cipher_seal(link->cipher, buffers[i].base, buffers[i].len) < 0)
            return 0;
    size_t waits = sgp_cipher_take(link->cipher, &bytes);
    buffers[0] = uv_buf_init((char *)(uintptr_t)bytes, (unsigned)waits);
    return waits > 0;
}

/* Whether the peer is unknown. Until then only the handshake may be written. */
static bool is_unknown(const struct link *link)
{
    return link->cipher != NULL && !link->known;
}

/* ---- closing ---- */

/* Write the queued messages and a goodbye, as far as the socket takes them. An unknown peer gets
 * the alert alone. */
static void say_last(struct link *link, const struct sgp_message *goodbye)
{
    uint8_t frame[SGP_WIRE_FRAME_MAX];
    size_t bytes;
    uv_buf_t buffers[3];
    unsigned count = is_unknown(link) ? 0 : queued(link, buffers);
    if (!is_unknown(link) && goodbye != NULL &&
        sgp_wire_encode(goodbye, frame, sizeof frame, &bytes) == 0)
        buffers[count++] = uv_buf_init((char *)frame, (unsigned)bytes);
    count = seal(link, buffers, count);
    if (count > 0)
        (void)uv_try_write((uv_stream_t *)&link->tcp, buffers, count);
}

void link_close(struct link *link, const struct sgp_message *goodbye)
{
    if (link->closing)
        return;
    link->closing = true;
    /* No other data may precede the goodbye. If libuv still holds part of a write,
     * try_write fails. */
    if (!link->writing || link->queue_bytes == link->queue_flight)
        say_last(link, goodbye);
    uv_close((uv_handle_t *)&link->tcp, on_closed);
}

static void fail(struct link *link, int code, const char *text)
{
    if (!link_stands(link))
        return;
    link->failure = code;
    link->events->failed(link, code, text);
    link_close(link, NULL);
}

void link_end(struct link *link, int code, const char *text)
{
    fail(link, code, text);
}

/* ---- sending ---- */

static void pump(struct link *link);

/* The present write is complete. */
static void settle_write(struct link *link)
{
    link->bytes_sent += link->flight;
    link->queue_head = (link->queue_head + link->queue_flight) % LINK_QUEUE_BYTES;
    link->queue_bytes -= link->queue_flight;
    if (link->behind.waits)
        link->behind.queued -= link->queue_flight;
    link->writing = false;
}

static void on_written(uv_write_t *request, int status)
{
    struct link *link = request->data;
    if (link->closing)
        return;
    if (status < 0) {
        fail(link, status, uv_strerror(status));
        return;
    }
    settle_write(link);
    pump(link);
}

static void take_up(struct link *link, const struct link_cargo *cargo)
{
    link->cargo = *cargo;
    link->behind.waits = false;
}

/* Once the payload was handed to a write, start what waits behind it. */
static void take_turn(struct link *link)
{
    if (link->behind.waits && link->cargo.bytes == 0)
        take_up(link, &link->behind.cargo);
}

/* The next chunk of the payload. So many bytes of the payload are consumed. */
static const uint8_t *take_chunk(struct link *link, uint32_t *ret_bytes)
{
    struct link_cargo *cargo = &link->cargo;
    const uint8_t *chunk = (const uint8_t *)cargo->values;
    /* Sealed bytes are in a buffer of their own until they are written. */
    uint64_t bytes = link->cipher != NULL ? LINK_SEALED_BYTES : SGP_WIRE_CHUNK_MAX;
    bool coded = cargo->codec.compressor != SGP_COMPRESSOR_NONE;
    uint64_t count = coded ? LINK_CODED_VALUES : bytes / sizeof *cargo->values;
    count = cargo->count < count ? cargo->count : count;
    if (coded)
        chunk = link->coded;
    *ret_bytes = (uint32_t)(coded ? sgp_codec_pack(&cargo->codec, link->coded, cargo->values,
                                        cargo->first, count)
                                  : count * sizeof *cargo->values);
    cargo->values += count;
    cargo->first += count;
    cargo->count -= count;
    cargo->bytes -= *ret_bytes;
    sgp_assert((cargo->count == 0) == (cargo->bytes == 0));
    return chunk;
}

/* The next write: all queued messages, then the next chunk of the payload. Returns the number of
 * buffers. */
static unsigned load(struct link *link, uv_buf_t buffers[4])
{
    take_turn(link);
    unsigned count = queued(link, buffers);
    link->queue_flight = writable(link);
    link->flight = link->queue_flight;
    if (link->cargo.bytes > 0) {
        uint32_t bytes;
        const uint8_t *chunk = take_chunk(link, &bytes);
        /* The checksum is computed right before sending, which then finds the chunk in the cache. A
         * ciphered chunk needs no checksum. */
        uint32_t sum = link->cipher == NULL ? (uint32_t)XXH3_64bits(chunk, bytes) : 0;
        sgp_wire_chunk_header(bytes, sum, link->chunk_header);
        buffers[count++] = uv_buf_init((char *)link->chunk_header, SGP_WIRE_HEADER_BYTES);
        buffers[count++] = uv_buf_init((char *)(uintptr_t)chunk, bytes);
        link->flight_number = link->cargo.number;
        link->flight += SGP_WIRE_HEADER_BYTES + bytes;
    }
    return count;
}

/* The same write as it goes on the wire; `bytes` in all. */
static unsigned load_line(struct link *link, uv_buf_t buffers[4], size_t *bytes)
{
    unsigned count = 0;
    link->queue_flight = link->flight = 0;
    if (!is_unknown(link))
        count = load(link, buffers);
    bool any = count > 0;
    count = seal(link, buffers, count);
    if (any && count == 0)
        fail(link, -ENOMEM, "what is sent cannot be ciphered");
    *bytes = 0;
    for (unsigned i = 0; i < count; i++)
        *bytes += buffers[i].len;
    link->writing = count > 0;
    return count;
}

/* Skip the first `bytes` of what is to be written. */
static void pass(uv_buf_t *buffers, unsigned count, size_t bytes)
{
    for (unsigned i = 0; i < count; i++) {
        size_t part = bytes < buffers[i].len ? bytes : buffers[i].len;
        buffers[i].base += part;
        buffers[i].len -= part;
        bytes -= part;
    }
}

/* A small write is tried directly first: a request to libuv costs a callback and two system calls
 * more. */
static void pump(struct link *link)
{
    uv_stream_t *stream = (uv_stream_t *)&link->tcp;
    uv_buf_t buffers[4];
    size_t bytes;
    while (!link->writing && !link->closing) {
        unsigned count = load_line(link, buffers, &bytes);
        if (count == 0)
            return;
        int taken = bytes <= LINK_SMALL_BYTES ? uv_try_write(stream, buffers, count) : UV_EAGAIN;
        if (taken > 0 && (size_t)taken == bytes) {
            settle_write(link);
            continue;
        }
        if (taken > 0)
            pass(buffers, count, (size_t)taken);
        link->write.data = link;
        int code = taken >= 0 || taken == UV_EAGAIN
                       ? uv_write(&link->write, stream, buffers, count, on_written)
                       : taken;
        if (code < 0) {
            link->writing = false;
            fail(link, code, uv_strerror(code));
        }
    }
}

void link_flush(struct link *link)
{
    link->gathers = false;
    pump(link);
}

/* Copy a message's frame into the ring. Returns its number of bytes; 0 if the link failed for lack
 * of room. */
static size_t enqueue(struct link *link, const struct sgp_message *message)
{
    uint8_t frame[SGP_WIRE_FRAME_MAX];
    size_t bytes;
    int code = sgp_wire_encode(message, frame, sizeof frame, &bytes);
    sgp_assert(code == 0);
    if (bytes > LINK_QUEUE_BYTES - link->queue_bytes)
        pump(link);
    if (link->closing || bytes > LINK_QUEUE_BYTES - link->queue_bytes) {
        fail(link, -ENOBUFS, "the peer does not read what is sent to it");
        return 0;
    }
    size_t tail = (link->queue_head + link->queue_bytes) % LINK_QUEUE_BYTES;
    size_t straight = LINK_QUEUE_BYTES - tail;
    size_t first = bytes < straight ? bytes : straight;
    memcpy(link->queue + tail, frame, first);
    memcpy(link->queue, frame + first, bytes - first);
    link->queue_bytes += bytes;
    link->next_round = message->pulse.next_round;
    link->then_round = message->pulse.then_round;
    return bytes;
}

/* Whether a BEAT repeats the last promise. If a promise changes and changes back, the peer must get
 * both messages. Each change voids credits on both sides. */
static bool repeats(const struct link *link, const struct sgp_message *message)
{
    return message->type == SGP_BEAT && message->pulse.next_round == link->next_round &&
           message->pulse.then_round == link->then_round;
}

void link_send(struct link *link, const struct sgp_message *message)
{
    bool crowded = link->behind.waits && link->queue_bytes > LINK_QUEUE_BYTES / 2;
    if (message->type == SGP_SHARE) { /* without a payload */
        link_send_payload(link, message, NULL, (struct sgp_codec){.compressor = 0});
        return;
    }
    if (link->closing || (crowded && repeats(link, message)))
        return;
    if (enqueue(link, message) > 0 && !link->gathers)
        pump(link);
}

static struct link_cargo cargo_of(
    const struct sgp_message *message, const float *values, struct sgp_codec codec)
{
    struct sgp_cargo cargo = sgp_message_cargo(message);
    return (struct link_cargo){.values = values,
        .first = cargo.slice.first,
        .count = cargo.bytes > 0 ? cargo.slice.count : 0,
        .codec = codec,
        .bytes = cargo.bytes,
        .number = message->type == SGP_SHARE ? message->share.number : 0};
}

void link_send_payload(struct link *link, const struct sgp_message *message, const float *payload,
    struct sgp_codec codec)
{
    if (link->closing)
        return;
    take_turn(link);
    if (link->behind.waits) {
        fail(link, SGP_E_PROTOCOL, "the peer acknowledged a share before it was sent");
        return;
    }
    struct link_cargo cargo = cargo_of(message, payload, codec);
    bool coded = codec.compressor != SGP_COMPRESSOR_NONE;
    if (coded && link->coded == NULL)
        link->coded = malloc(sgp_coding_bytes_most(SGP_CODING_BLOCKS, LINK_CODED_VALUES));
    if (coded && link->coded == NULL) {
        fail(link, -ENOMEM, "a payload cannot be packed: out of memory");
        return;
    }
    size_t bytes = enqueue(link, message);
    if (bytes == 0)
        return;
    if (link->cargo.bytes > 0)
        link->behind = (struct link_behind){true, link->queue_bytes - bytes, cargo};
    else
        take_up(link, &cargo);
    if (!link->gathers)
        pump(link);
}

/* ---- receiving ---- */

/* Bytes that are read before their kind is known. They are used up before anything else is read. */
static _Thread_local uint8_t input[LINK_INPUT_BYTES];
/* The same for ciphered bytes. */
static _Thread_local uint8_t line[LINK_WINDOW_BYTES];

/* Where the next bytes of the present frame belong, and how many may be read there. */
static uv_buf_t wanted(struct link *link)
{
    if (link->phase == LINK_HEADER)
        return uv_buf_init((char *)link->header_bytes + link->have,
            (unsigned)(SGP_WIRE_HEADER_BYTES - link->have));
    if (link->phase == LINK_BODY)
        return uv_buf_init(
            (char *)link->body + link->have, (unsigned)(link->header.body_bytes - link->have));
    uint32_t window = link->chunk < LINK_WINDOW_BYTES ? link->chunk : LINK_WINDOW_BYTES;
    return uv_buf_init((char *)link->place + link->received, window);
}

/* Or the buffer for many frames. If payloads are large, the next frame is likely a large payload,
 * too. A payload whose first bytes were read with the frames before it costs a link a tenth more
 * processor time (measured at 1 MiB). */
static uv_buf_t place_of(struct link *link)
{
    uv_buf_t place = wanted(link);
    bool many = place.len < LINK_INPUT_BYTES && link->expected < LINK_INPUT_BYTES;
    return many ? uv_buf_init((char *)input, LINK_INPUT_BYTES) : place;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct link *link = handle->data;
    (void)suggested;
    *buffer = link->cipher != NULL ? uv_buf_init((char *)line, sizeof line) : place_of(link);
}

/* Whether the peer acknowledges a payload that is not completely sent. The peer cannot have
 * received all of it yet. */
static bool is_answered_unsent(const struct link *link, const struct sgp_message *message)
{
    bool in_flight = link->writing && link->flight > link->queue_flight &&
                     uv_stream_get_write_queue_size((const uv_stream_t *)&link->tcp) > 0;
    bool unsent = link->cargo.bytes > 0;
    if (message->type == SGP_ACK)
        return (in_flight && message->ack.number >= link->flight_number) ||
               (unsent && message->ack.number >= link->cargo.number) ||
               (link->behind.waits && message->ack.number >= link->behind.cargo.number);
    bool lets_go = message->type == SGP_ASK && !message->ask.wants;
    return lets_go &&
           ((in_flight && link->flight_number == 0) || (unsent && link->cargo.number == 0));
}

static void take_body(struct link *link)
{
    struct sgp_message message;
    struct sgp_error error = {0};
    link->phase = LINK_HEADER;
    link->have = 0;
    int code = sgp_wire_body_decode(&link->header, link->body, &link->text, &message, &error);
    if (code < 0) {
        fail(link, code, error.text);
        return;
    }
    if (message.type == SGP_SHARE || message.type == SGP_ESTIMATE) {
        struct sgp_cargo cargo = sgp_message_cargo(&message);
        if (link->into != NULL) {
            fail(link, SGP_E_PROTOCOL, "a share was announced in the middle of another");
            return;
        }
        link->expected = cargo.bytes;
        link->coding = cargo.coding;
        link->count = cargo.bytes > 0 ? cargo.slice.count : 0;
    }
    if (is_answered_unsent(link, &message)) {
        fail(link, SGP_E_PROTOCOL, "the peer acknowledged a payload before it was sent");
        return;
    }
    link->events->message(link, &message);
}

static void take_header(struct link *link)
{
    struct sgp_error error = {0};
    int code = sgp_wire_header_decode(link->header_bytes, &link->header, &error);
    if (code < 0) {
        fail(link, code, error.text);
        return;
    }
    link->greeted = true;
    link->have = 0;
    if (link->header.type != SGP_WIRE_CHUNK) {
        link->phase = LINK_BODY;
        if (link->header.body_bytes == 0)
            take_body(link);
        return;
    }
    if (link->into == NULL || link->header.payload_bytes > link->expected - link->received) {
        fail(link, SGP_E_PROTOCOL, "payload that no share announced");
        return;
    }
    link->phase = LINK_PAYLOAD;
    link->chunk = link->header.payload_bytes;
    (void)XXH3_64bits_reset(link->hash);
}

/* `bytes` more of the payload are in their place. */
static void take_payload(struct link *link, size_t bytes)
{
    int code = link_look_at(link, bytes);
    if (link->chunk == 0)
        link->phase = LINK_HEADER;
    if (code == SGP_E_PROTOCOL) {
        fail(link, code, "a payload is not of the form that was announced");
        return;
    }
    if (code != LINK_MORE) {
        link->into = NULL;
        link->events->payload(link, code);
        return;
    }
    sgp_time now = (sgp_time)uv_hrtime();
    if (now - link->heard < LINK_HEARD_NS || link->events->heard == NULL)
        return;
    link->heard = now;
    link->events->heard(link);
}

static void take_part_of_header(struct link *link)
{
    struct sgp_error error = {0};
    if (!link->greeted &&
        sgp_wire_start_check(link->header_bytes, link->have, link->calls, &error) < 0)
        fail(link, SGP_E_FRAME, error.text);
    else if (link->have == SGP_WIRE_HEADER_BYTES)
        take_header(link);
}

/* `count` bytes were stored where `wanted` said. */
static void take(struct link *link, size_t count)
{
    link->bytes_received += (uint64_t)count;
    if (link->phase == LINK_PAYLOAD) {
        take_payload(link, count);
        return;
    }
    link->have += count;
    if (link->phase == LINK_HEADER)
        take_part_of_header(link);
    else if (link->have == link->header.body_bytes)
        take_body(link);
}

/* The owner may close the link during the loop. */
static void take_input(struct link *link, size_t count)
{
    for (size_t taken = 0; taken < count && !link->closing;) {
        uv_buf_t place = wanted(link);
        size_t part = count - taken < place.len ? count - taken : place.len;
        memcpy(place.base, input + taken, part);
        taken += part;
        take(link, part);
    }
}

/* `count` bytes were stored at a place of place_of. */
static void take_placed(struct link *link, const char *place, size_t count)
{
    if (place == (char *)input)
        take_input(link, count);
    else
        take(link, count);
}

/* ---- ciphered ---- */

static void shake(struct link *link)
{
    struct sgp_error error = {0};
    int code = sgp_cipher_shake(link->cipher, &error);
    if (code < 0 && code != -EAGAIN) {
        fail(link, code, error.text);
        return;
    }
    pump(link);
    if (code < 0 || !link_stands(link))
        return;
    link->known = true;
    if (link->events->ciphered != NULL)
        link->events->ciphered(link);
}

static void take_ciphered(struct link *link, const char *bytes, size_t count)
{
    struct sgp_error error = {0};
    sgp_cipher_feed(link->cipher, bytes, count);
    if (!link->known)
        shake(link);
    while (link->known && link_stands(link)) {
        uv_buf_t place = place_of(link);
        ssize_t opened = sgp_cipher_open(link->cipher, place.base, place.len, &error);
        if (opened == -EAGAIN)
            return;
        if (opened <= 0)
            fail(link, opened < 0 ? (int)opened : SGP_E_CLOSED,
                opened < 0 ? error.text : "the peer closed the connection");
        else
            take_placed(link, place.base, (size_t)opened);
    }
}

int link_cipher(struct link *link, const struct sgp_cipher_settings *settings)
{
    sgp_assert(link->cipher == NULL && link->bytes_received == 0);
    return sgp_cipher_create(settings, &link->cipher);
}

/* Returns false if the owner has closed the link. A cipher reads from `line`, while `input` is
 * written. */
static bool begin(struct link *link, const char **bytes, size_t count)
{
    link->begun = true;
    if (link->events->first != NULL)
        link->events->first(link, (uint8_t) * *bytes);
    if (link->cipher != NULL && *bytes == (char *)input) {
        memcpy(line, input, count);
        *bytes = (char *)line;
    }
    return link_stands(link);
}

static void take_read(struct link *link, const char *bytes, size_t count)
{
    if (!link->begun && !begin(link, &bytes, count))
        return;
    if (link->cipher != NULL)
        take_ciphered(link, bytes, count);
    else
        take_placed(link, bytes, count);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct link *link = stream->data;
    if (count == 0 || link->closing)
        return;
    if (count < 0) {
        bool ended = count == UV_EOF;
        fail(link, ended ? SGP_E_CLOSED : (int)count,
            ended ? "the peer closed the connection" : uv_strerror((int)count));
    } else {
        take_read(link, buffer->base, (size_t)count);
    }
}

/* ---- the connection ---- */

int link_start(struct link *link)
{
    link_tune(link);
    link->opened = (sgp_time)uv_hrtime();
    int code = uv_read_start((uv_stream_t *)&link->tcp, on_alloc, on_read);
    if (code == 0 && link->cipher != NULL)
        shake(link);
    return code;
}
