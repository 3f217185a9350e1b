/* SPDX-License-Identifier: Apache-2.0 */
/* The control server: HTTP/1.1 with JSON over a Unix socket, inside the daemon's loop.
 *
 * libmicrohttpd parses and writes. The server binds, listens and accepts by itself. Thus a client
 * beyond the limit gets an answer (503) instead of silence, and SO_PEERCRED is read before a client
 * has a place. Each user who may open the socket may read. Only root and the daemon's own user may
 * change anything.
 *
 * The cost of clients is bounded: their number in all and per user, headers, bodies, jobs, and
 * answers that wait to be fetched. The time for a request to arrive, the time to fetch an answer,
 * and the processor time of all requests are bounded, too. Answers that take long are rendered in
 * libuv's pool (offload.h). An idle server has no timer.
 *
 * Thread: the loop thread. */
#ifndef SGPD_CONTROL_H
#define SGPD_CONTROL_H

#include "util/view.h"

#include <uv.h>

/* Places for clients at one time. If all are taken, the client that was silent longest is closed;
 * users with too many clients come first. If no client is silent, the answer is 503. Places beyond
 * CONTROL_OTHERS_MAX are for root and the daemon's own user. */
#define CONTROL_CONNECTIONS_MAX 256u
#define CONTROL_OTHERS_MAX 224u     /* for all users but root and the daemon's own */
#define CONTROL_USER_MAX 64u        /* for one of these users */
#define CONTROL_HEAD_SECONDS 3u     /* for the head of a first request to arrive; else closed */
#define CONTROL_SILENCE_SECONDS 10u /* without a byte in either direction; then closed */
#define CONTROL_REQUEST_SECONDS 30u /* for a request to arrive; else closed */
#define CONTROL_ANSWER_SECONDS 300u /* to fetch an answer, plus 1 s for each MiB; else closed */
/* share of the loop thread's time (1 / 32), if clients always want something */
#define CONTROL_PART 32u
#define CONTROL_MOST_NS 10000000u          /* time at once after a rest */
#define CONTROL_HELD_BYTES_MAX (32u << 20) /* of answers that a user has not fetched; 503 beyond */
/* of a request, with its first line; 431 or 414 beyond */
#define CONTROL_HEADER_BYTES_MAX 32768u
#define CONTROL_BODY_BYTES_MAX (4u << 20)      /* of POST /v1/predict; 413 beyond */
#define CONTROL_ROWS_MAX 16384u                /* of POST /v1/predict; 413 beyond */
#define CONTROL_FEATURE_BYTES_MAX (256u << 20) /* of its rows as float32; 413 beyond */
#define CONTROL_OUTPUTS_MAX (1u << 20)         /* of all its rows; 413 beyond */
#define CONTROL_JOBS_MAX 4u  /* evaluations, predictions and models at one time; 503 beyond */
#define CONTROL_JOBS_KEPT 4u /* additional jobs, for root and the daemon's own user */
#define CONTROL_WAITS_MAX 4u /* evaluations of the fleet of one user at one time; 503 beyond */

struct control; /* opaque */

/* Bind `path` with mode 0660 and serve in `loop`. A stale socket file is replaced. A socket in use
 * is refused (-EADDRINUSE). Actions and model are copied; what they point to is borrowed. */
int control_open(uv_loop_t *loop, const char *path, const struct view_actions *actions,
    const struct view_model *model, struct sgp_error *error, struct control **ret_control);

/* Let the socket outlive control_close, for a later control_open_on of this process. Meanwhile
 * clients can connect, and wait. Returns its descriptor, or -1 if the socket is not kept. */
int control_keep(struct control *control);
/* As control_open, on a descriptor from control_keep. That is closed on failure, too, and the
 * socket removed. */
int control_open_on(int listener, uv_loop_t *loop, const char *path,
    const struct view_actions *actions, const struct view_model *model, struct sgp_error *error,
    struct control **ret_control);

/* Stop serving. Open requests end with 503, and running jobs have no effect. `closed` (or NULL) is
 * called from the loop once the control is freed. */
void control_close(struct control *control, void (*closed)(void *argument), void *argument);

#endif
