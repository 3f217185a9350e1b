/* SPDX-License-Identifier: Apache-2.0 */
/* What a launcher writes to its supervisors, and how a supervisor reads it; see launch.h. Objects
 * are the lines of launch_up.h; orders and signs of life are single bytes. */
#include "launch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- signs of life of a launcher ---- */

/* By a timer of the kernel: a loop that waits for a slow terminal sends them, too. */
static volatile sig_atomic_t heart[LAUNCH_NODES_MAX]; /* descriptors, which do not block; 0: none */

static void on_beat(int number)
{
    static const char alive = LAUNCH_ALIVE;
    int code = errno;
    (void)number;
    for (size_t i = 0; i < LAUNCH_NODES_MAX; i++)
        if (heart[i] > 0)
            (void)!write(heart[i], &alive, 1);
    errno = code;
}

void launch_signs_start(void)
{
    const struct itimerval often = {{LAUNCH_HEART_S, 0}, {LAUNCH_HEART_S, 0}};
    struct sigaction action = {.sa_handler = on_beat, .sa_flags = SA_RESTART};
    (void)sigaction(SIGALRM, &action, NULL);
    (void)setitimer(ITIMER_REAL, &often, NULL);
}

void launch_signs_stop(void)
{
    const struct itimerval never = {{0, 0}, {0, 0}};
    (void)setitimer(ITIMER_REAL, &never, NULL);
}

static void set_heart(const struct launch_writer *writer, bool beats)
{
    uv_os_fd_t descriptor = 0;
    if (beats && (!writer->open || uv_fileno((const uv_handle_t *)&writer->pipe, &descriptor) < 0))
        descriptor = 0;
    heart[writer->index] = beats ? descriptor : 0;
}

/* ---- writing ---- */

struct message {
    uv_write_t request;
    char *text;
    struct launch_writer *writer;
};

int launch_writer_open(
    struct launch_writer *writer, uv_loop_t *loop, int descriptor, uint32_t index)
{
    writer->index = index;
    (void)uv_pipe_init(loop, &writer->pipe, 0);
    int code = uv_pipe_open(&writer->pipe, descriptor);
    writer->open = true;
    return code;
}

static void on_written(uv_write_t *request, int status)
{
    struct message *message = request->data;
    if (status == 0)
        set_heart(message->writer, true);
    free(message->text);
    free(message);
}

/* No sign of life may come between the bytes of a line. */
void launch_writer_object(struct launch_writer *writer, const json_t *object)
{
    struct message *message = calloc(1, sizeof *message);
    char *text = json_dumps(object, JSON_COMPACT);
    size_t length = text ? strlen(text) : 0;
    char *line = text ? realloc(text, length + 1) : NULL;
    if (message == NULL || line == NULL || !writer->open) {
        free(message);
        free(line);
        return;
    }
    line[length] = '\n'; /* in place of the final zero */
    set_heart(writer, false);
    *message = (struct message){.text = line, .writer = writer};
    message->request.data = message;
    uv_buf_t buffer = uv_buf_init(line, (unsigned)length + 1);
    if (uv_write(&message->request, (uv_stream_t *)&writer->pipe, &buffer, 1, on_written) < 0) {
        free(line);
        free(message);
    }
}

void launch_writer_byte(struct launch_writer *writer, char byte)
{
    struct message *message = writer->open ? calloc(1, sizeof *message) : NULL;
    if (message == NULL)
        return;
    message->text = malloc(1);
    message->writer = writer;
    message->request.data = message;
    uv_buf_t buffer = uv_buf_init(message->text, 1);
    if (message->text != NULL)
        message->text[0] = byte;
    if (message->text == NULL ||
        uv_write(&message->request, (uv_stream_t *)&writer->pipe, &buffer, 1, on_written) < 0) {
        free(message->text);
        free(message);
    }
}

void launch_writer_close(struct launch_writer *writer)
{
    if (!writer->open)
        return;
    set_heart(writer, false);
    writer->open = false;
    uv_close((uv_handle_t *)&writer->pipe, NULL);
}

/* ---- reading ---- */

static volatile sig_atomic_t unread; /* bytes on standard input at the last SIGALRM */

/* While standard output is full, the loop is blocked and reads no sign of life. The launcher is
 * alive if more bytes are waiting than before. */
static void on_silence(int number)
{
    int bytes = 0;
    if (ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes != unread) {
        unread = bytes;
        (void)alarm(LAUNCH_SILENCE_S);
        return;
    }
    (void)signal(number, SIG_DFL); /* the watch cleans up */
    (void)raise(number);
}

void launch_expect_launcher(void)
{
    struct sigaction action = {.sa_handler = on_silence, .sa_flags = SA_RESTART};
    (void)sigaction(SIGALRM, &action, NULL);
    (void)alarm(LAUNCH_SILENCE_S);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
    struct launch_reader *reader = handle->data;
    (void)suggested;
    *ret_buffer = uv_buf_init(reader->room, sizeof reader->room);
}

static void on_orders(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct launch_reader *reader = stream->data;
    (void)buffer;
    if (count < 0) {
        (void)uv_read_stop(stream);
    } else {
        unread = 0;
        (void)alarm(LAUNCH_SILENCE_S);
    }
    reader->take(reader->context, reader->room, count);
}

int launch_reader_open(struct launch_reader *reader, uv_loop_t *loop)
{
    (void)uv_pipe_init(loop, &reader->pipe, 0);
    reader->pipe.data = reader;
    int code = uv_pipe_open(&reader->pipe, STDIN_FILENO);
    return code < 0 ? code : uv_read_start((uv_stream_t *)&reader->pipe, on_room, on_orders);
}

void launch_reader_close(struct launch_reader *reader)
{
    uv_close((uv_handle_t *)&reader->pipe, NULL);
}
