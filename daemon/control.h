/* The control server: HTTP/1.1 with JSON over a Unix socket, inside the daemon's loop.
 *
 * libmicrohttpd parses and writes; we bind, listen and accept ourselves, so that a client beyond the
 * limit gets an answer (503) instead of silence, and look at SO_PEERCRED before anything changes.
 * Everybody who may open the socket may read; only root and the daemon's own user may change.
 * Clients can cost the loop a bounded amount: CONTROL_CONNECTIONS_MAX of them, headers and bodies
 * within limits, silence ended after CONTROL_SILENCE_SECONDS.
 *
 * Thread: the loop thread. */
#ifndef SGPD_CONTROL_H
#define SGPD_CONTROL_H

#include "prepare.h"
#include "view.h"

#include <uv.h>

#define CONTROL_CONNECTIONS_MAX 64u
#define CONTROL_SILENCE_SECONDS 10u
#define CONTROL_HEADER_BYTES_MAX 16384u   /* of a request, lines and all: 431 */
#define CONTROL_BODY_BYTES_MAX (8u << 20) /* of POST /v1/predict: 413 */
#define CONTROL_JOBS_MAX 8u /* evaluations, predictions and models in the making: 503 */

struct control; /* opaque */

/* What predict and model must know of the network; borrowed, outlives the server. */
struct control_model {
    const struct sgp_model *model;
    char *const *class_names; /* NULL, or model->outputs names */
};

/* Bind `path` with mode 0660, listen, and serve in `loop`. A socket file that nobody listens on is
 * replaced; one with a live daemon behind it is refused (-EADDRINUSE); *error has the line. The
 * actions are copied, the model borrowed. */
int control_open(uv_loop_t *loop, const char *path, const struct view_actions *actions,
    const struct control_model *model, struct sgp_error *error, struct control **ret_control);

/* Stop serving: open requests end with 503, the socket file is removed. Jobs still under way end
 * without effect when their callbacks come. `closed` (may be NULL) is called from the loop once no
 * handle is left and the control is freed. */
void control_close(struct control *control, void (*closed)(void *argument), void *argument);

#endif
