/* SPDX-License-Identifier: Apache-2.0 */
/* The output of the programs, line by line, and the line of progress below it; see launch.h.
 *
 * Lines are written on arrival, and no more than a line is buffered. So a slow reader slows the
 * programs. */
#include "launch.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLOURS 6u
#define FIRST_COLOUR 31u /* red; black and white are the terminal's own */
#define WIDTH_USUAL 80u
#define HEIGHT_USUAL 24u

void launch_lines_init(const struct ctl *ctl, struct launch_lines *lines)
{
    const char *term = getenv("TERM");
    bool dumb = term == NULL || strcmp(term, "dumb") == 0;
    *lines = (struct launch_lines){
        .progress = !ctl->json && !dumb && isatty(STDERR_FILENO) == 1, .colour = ctl->colour};
}

/* ---- progress ---- */

void launch_lines_clear(struct launch_lines *lines)
{
    if (lines->shown > 0)
        (void)fputs("\r\x1b[K", stderr);
    for (; lines->shown > 1; lines->shown--)
        (void)fputs("\x1b[A\x1b[K", stderr);
    lines->shown = 0;
}

static void draw(struct launch_lines *lines)
{
    struct winsize size;
    unsigned width =
        ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : WIDTH_USUAL;
    if (!lines->progress || lines->text[0] == '\0')
        return;
    launch_lines_clear(lines);
    for (const char *line = lines->text;; line++) {
        int length = (int)strcspn(line, "\n"), most = (int)width - 1; /* a full line would wrap */
        (void)fprintf(stderr, "\r\x1b[K%.*s", length < most ? length : most, line);
        lines->shown++;
        line += length;
        if (*line == '\0')
            return;
        (void)putc('\n', stderr);
    }
}

void launch_lines_show(struct launch_lines *lines, const char *text)
{
    (void)snprintf(lines->text, sizeof lines->text, "%s", text);
    draw(lines);
}

bool launch_lines_fit(unsigned count)
{
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0;
    return count <= (known ? size.ws_row : HEIGHT_USUAL);
}

/* ---- lines ---- */

void launch_lines_print(struct launch_lines *lines, const char *name, uint32_t index, FILE *to,
    const char *text, size_t bytes)
{
    launch_lines_clear(lines);
    if (lines->colour)
        (void)fprintf(to, "\x1b[%um%s|\x1b[0m ", FIRST_COLOUR + index % COLOURS, name);
    else
        (void)fprintf(to, "%s| ", name);
    (void)fwrite(text, 1, bytes, to);
    (void)putc('\n', to);
}

static void print(struct launch_stream *stream, const char *text, size_t bytes)
{
    if (stream->line)
        stream->line(stream, text, bytes);
    else
        launch_lines_print(stream->lines, stream->name, stream->index, stream->to, text, bytes);
}

/* A line of another launcher begins with the name of a node. */
static size_t capacity_of(const struct launch_stream *stream)
{
    return LAUNCH_LINE_BYTES + (stream->line ? SGP_NAME_BYTES : 0);
}

/* Print the lines that end in text[from..used), and keep the rest. A line that fills the buffer is
 * split. */
static void print_lines(struct launch_stream *stream, size_t from)
{
    size_t first = 0;
    for (size_t i = from; i < stream->used; i++) {
        char byte = stream->text[i];
        bool continues = byte == '\n' && stream->returned && i == first; /* "\r\n" is one end */
        stream->returned = byte == '\r';
        if (byte != '\n' && byte != '\r')
            continue;
        /* A progress bar begins with '\r', which does not end a line. */
        if (!continues && (byte == '\n' || i > first))
            print(stream, stream->text + first, i - first);
        first = i + 1;
    }
    if (first == 0 && stream->used == capacity_of(stream)) {
        print(stream, stream->text, stream->used);
        first = stream->used;
    }
    stream->used -= first;
    memmove(stream->text, stream->text + first, stream->used);
    (void)fflush(stream->to);
}

/* ---- streams ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
    struct launch_stream *stream = handle->data;
    (void)suggested;
    *ret_buffer =
        uv_buf_init(stream->text + stream->used, (unsigned)(capacity_of(stream) - stream->used));
}

/* A disk that is full is an error, too. */
static bool is_unread(FILE *to)
{
    struct pollfd end = {.fd = fileno(to)};
    return ferror(to) && poll(&end, 1, 0) > 0 && (end.revents & (POLLERR | POLLHUP)) != 0;
}

static void on_read(uv_stream_t *pipe, ssize_t count, const uv_buf_t *buffer)
{
    struct launch_stream *stream = pipe->data;
    (void)buffer;
    if (count < 0) {
        launch_stream_close(stream);
        return;
    }
    size_t from = stream->used;
    stream->used += (size_t)count;
    print_lines(stream, from);
    draw(stream->lines);
    if (stream->unread && is_unread(stream->to))
        stream->unread(stream->context);
}

int launch_stream_open(struct launch_stream *stream, struct launch_lines *lines, uv_loop_t *loop,
    int descriptor, const char *name, uint32_t index, FILE *to)
{
    stream->lines = lines;
    stream->to = to;
    stream->name = name;
    stream->index = index;
    stream->text = malloc(capacity_of(stream));
    if (stream->text == NULL)
        return -ENOMEM;
    (void)uv_pipe_init(loop, &stream->pipe, 0);
    stream->pipe.data = stream;
    stream->open = true;
    int code = uv_pipe_open(&stream->pipe, descriptor);
    return code < 0 ? code : uv_read_start((uv_stream_t *)&stream->pipe, on_alloc, on_read);
}

static void on_closed(uv_handle_t *handle)
{
    struct launch_stream *stream = handle->data;
    free(stream->text);
    stream->text = NULL;
}

void launch_stream_close(struct launch_stream *stream)
{
    if (!stream->open)
        return;
    stream->open = false;
    if (stream->used > 0)
        print(stream, stream->text, stream->used);
    stream->used = 0;
    (void)fflush(stream->to);
    uv_close((uv_handle_t *)&stream->pipe, on_closed);
    if (stream->ended)
        stream->ended(stream->context);
}
