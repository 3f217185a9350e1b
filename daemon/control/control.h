/* SPDX-License-Identifier: Apache-2.0 */
/* The control server: HTTP/1.1 with JSON over a Unix socket, inside the daemon's loop.
 *
 * libmicrohttpd parses and writes; we bind, listen and accept ourselves, so that a client beyond the
 * limit gets an answer (503) instead of silence, and SO_PEERCRED is asked before a client has a place.
 * Everybody who may open the socket may read; only root and the daemon's own user may change.
 *
 * What clients cost is bounded: their number in all and of each user, headers, bodies, jobs, answers that wait to be
 * fetched, the time that a request may take to arrive or an answer to be fetched, and the processor time of it all. Answers
 * that take long are rendered in libuv's pool (offload.h). An idle server has no timer.
 *
 * Thread: the loop thread. */
#ifndef SGPD_CONTROL_H
#define SGPD_CONTROL_H

#include "util/view.h"

#include <uv.h>

/* Places, at one time. If they are taken, the client that was silent longest gives way, of a user
 * with too many first; if none is silent: 503. Root and the daemon's own user have those beyond
 * CONTROL_OTHERS_MAX. */
#define CONTROL_CONNECTIONS_MAX 256u
#define CONTROL_OTHERS_MAX 224u     /* of all users but root and the daemon's own */
#define CONTROL_USER_MAX 64u        /* of one of these */
#define CONTROL_HEAD_SECONDS 3u     /* for the head of a first request to arrive: closed */
#define CONTROL_SILENCE_SECONDS 10u /* without a byte either way: closed */
#define CONTROL_REQUEST_SECONDS 30u /* for a request to arrive: closed */
#define CONTROL_ANSWER_SECONDS 300u /* for an answer to be fetched, and 1 s for each MiB: closed */
#define CONTROL_PART 32u /* of the loop thread's time, while clients always want something */
#define CONTROL_MOST_NS 10000000u          /* of it at once, after a rest */
#define CONTROL_HELD_BYTES_MAX (32u << 20) /* of answers that a user has not fetched: 503 beyond */
#define CONTROL_HEADER_BYTES_MAX 32768u    /* of a request, line and all: 431 or 414 */
#define CONTROL_BODY_BYTES_MAX (4u << 20)  /* of POST /v1/predict: 413 */
#define CONTROL_ROWS_MAX 16384u            /* of POST /v1/predict: 413 */
#define CONTROL_FEATURE_BYTES_MAX (256u << 20) /* of its rows as float32: 413 */
#define CONTROL_OUTPUTS_MAX (1u << 20)         /* of all its rows: 413 */
#define CONTROL_JOBS_MAX 4u  /* evaluations, predictions and models at one time: 503 */
#define CONTROL_JOBS_KEPT 4u /* further ones, for root and the daemon's own user */

struct control; /* opaque */

/* Bind `path` with mode 0660 and serve in `loop`. A dead socket file is replaced, a live one
 * refused (-EADDRINUSE). Actions and model are copied, what they point to is borrowed. */
int control_open(uv_loop_t *loop, const char *path, const struct view_actions *actions,
    const struct view_model *model, struct sgp_error *error, struct control **ret_control);

/* Stop serving: open requests end with 503, and jobs under way without effect. `closed` (or NULL)
 * is called from the loop once the control is freed. */
void control_close(struct control *control, void (*closed)(void *argument), void *argument);

#endif
