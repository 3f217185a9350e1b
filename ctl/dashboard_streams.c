/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events (WHATWG HTML, section 9.2): each event is the whole state. So a reader that is
 * behind needs the latest event only, all readers share one copy of it, and a slow reader holds one
 * older copy at most. A reader with nothing to read is suspended until the next event. */
#include "dashboard.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define BLOCK_BYTES 4096u

static void release(struct dashboard_event *event)
{
    if (event && --event->readers == 0)
        free(event);
}

/* Give a reader the next bytes, or suspend it. */
static ssize_t read_stream(void *context, uint64_t position, char *buffer, size_t most)
{
    (void)position;
    struct dashboard_stream *stream = context;
    struct dashboard_streams *streams = stream->streams;
    stream->progress = ctl_now();
    if (streams->closing)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!stream->event && streams->latest && stream->told < streams->number) {
        stream->event = streams->latest;
        stream->event->readers++;
        stream->told = streams->number;
        stream->sent = 0;
    }
    if (!stream->event) {
        stream->waiting = true;
        MHD_suspend_connection(stream->connection);
        return 0;
    }
    size_t left = stream->event->bytes - stream->sent, bytes = left < most ? left : most;
    memcpy(buffer, stream->event->text + stream->sent, bytes);
    stream->sent += bytes;
    if (bytes == left) {
        release(stream->event);
        stream->event = NULL;
    }
    return (ssize_t)bytes;
}

static void end_stream(void *context)
{
    struct dashboard_stream *stream = context;
    release(stream->event);
    LIST_REMOVE(stream, next);
    stream->streams->count--;
    free(stream);
}

struct MHD_Response *dashboard_streams_open(
    struct dashboard_streams *streams, struct MHD_Connection *connection)
{
    struct dashboard_stream *stream =
        streams->count < DASHBOARD_STREAMS_MAX ? calloc(1, sizeof *stream) : NULL;
    if (!stream)
        return NULL;
    int bytes = DASHBOARD_STREAM_BYTES;
    int descriptor =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    (void)setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    (void)MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
    *stream = (struct dashboard_stream){.streams = streams,
        .connection = connection,
        .descriptor = descriptor,
        .progress = ctl_now()};
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_stream, stream, end_stream);
    if (!response) {
        free(stream);
        return NULL;
    }
    LIST_INSERT_HEAD(&streams->list, stream, next);
    streams->count++;
    return response;
}

static void wake_all(struct dashboard_streams *streams)
{
    struct dashboard_stream *stream;
    LIST_FOREACH (stream, &streams->list, next) {
        if (!stream->waiting)
            continue;
        stream->waiting = false;
        stream->progress = ctl_now();
        MHD_resume_connection(stream->connection);
    }
}

void dashboard_streams_tell(struct dashboard_streams *streams, const char *text, size_t bytes)
{
    const size_t capacity = bytes + sizeof "data: \n\n";
    struct dashboard_event *event = malloc(sizeof *event + capacity);
    if (!event)
        return; /* the next event comes in a second */
    event->readers = 1;
    event->bytes = (size_t)snprintf(event->text, capacity, "data: %s\n\n", text);
    release(streams->latest);
    streams->latest = event;
    streams->number++;
    wake_all(streams);
}

void dashboard_streams_sweep(struct dashboard_streams *streams)
{
    struct dashboard_stream *stream;
    double since = ctl_now() - DASHBOARD_STALL_SECONDS;
    LIST_FOREACH (stream, &streams->list, next)
        if (!stream->waiting && stream->progress < since)
            (void)shutdown(stream->descriptor, SHUT_RDWR);
}

void dashboard_streams_close(struct dashboard_streams *streams)
{
    streams->closing = true;
    release(streams->latest);
    streams->latest = NULL;
    wake_all(streams);
}
