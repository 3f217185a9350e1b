/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the control server: connections, requests, answers and jobs. Each file calls those below it:
 *
 *   control.c   socket, accepting, the loop, the end
 *   endpoints.c what each path does, as a table that control.c hands down
 *   predict.c   rows from a body to the model's outputs
 *   http.c      a request from its first line to its answer; permissions
 *
 * Thread: the loop thread, except for the one function in predict.c that parses a body. */
#ifndef SGPD_HTTP_H
#define SGPD_HTTP_H

#include "control.h"

#include <jansson.h>
#include <microhttpd.h>

/* One accepted connection. */
struct client {
    struct client *next;
    int descriptor;
    uint64_t since; /* uv_now when it connected, was last answered, or its answer began */
    bool busy;      /* a whole request has come and is not answered to the end */
    bool waiting;   /* busy with a job: no deadline */
};

/* A job that outlives the handler: the request is suspended until it ends. Everything that a job
 * needs beside is in the structs that begin with one. */
struct http_job {
    struct http_job *next;
    struct control *control; /* NULL once the server has closed */
    struct request *request; /* NULL once nobody waits for the answer */
    void (*destroy)(struct http_job *job);
};

struct request {
    struct control *control;
    struct MHD_Connection *connection;
    struct client *client;
    const struct endpoint *endpoint;
    struct http_job *job; /* while suspended */
    char *body;
    size_t body_bytes;
    bool too_large;
    struct MHD_Response *response; /* the answer, once known */
    unsigned status;
};

struct endpoint {
    const char *method;
    const char *path;
    bool changes; /* for root and the daemon's own user only */
    bool body;    /* takes one */
    /* Either answers (http_answer_*, http_fail) or begins a job. */
    void (*serve)(struct request *request);
};

#define CONTROL_REFUSED_MAX 64u /* refused clients that are still reading their 503 */

struct refused {
    int descriptor;
    uint64_t since;
};

struct control {
    /* for http.c and the handlers */
    uv_loop_t *loop;
    struct view_actions actions;
    struct control_model model;
    const struct endpoint *endpoints;
    size_t endpoint_count;
    struct http_job *jobs;
    uint32_t job_count;
    uint32_t download_count; /* models that are being fetched, each a copy of the parameters */
    void (*pump)(struct control *control); /* let libmicrohttpd work, and set its timer */
    bool closing;

    /* control.c alone */
    struct MHD_Daemon *server;
    char *path;
    int listener;
    uv_poll_t accepting;
    uv_poll_t polling; /* libmicrohttpd's epoll descriptor */
    uv_timer_t timer;
    unsigned handles;      /* open ones of the three */
    bool accepting_paused; /* out of descriptors until the next tick */
    bool pumping;          /* libmicrohttpd is at work, perhaps in one of our handlers */
    struct client *clients;
    uint32_t client_count;
    struct refused refused[CONTROL_REFUSED_MAX];
    uint32_t refused_count;
    void (*closed)(void *argument);
    void *closed_argument;
};

/* Callbacks of libmicrohttpd. */
enum MHD_Result http_handle(void *context, struct MHD_Connection *connection, const char *url,
    const char *method, const char *version, const char *data, size_t *data_bytes,
    void **request_context);
void http_completed(void *context, struct MHD_Connection *connection, void **request_context,
    enum MHD_RequestTerminationCode code);

/* Answers. Each request gets exactly one. */
void http_answer(struct request *request, unsigned status, struct MHD_Response *response,
    const char *content_type); /* takes the response; NULL: out of memory */
void http_answer_json(struct request *request, json_t *root); /* 200; takes root; NULL: no memory */
void http_fail(struct request *request, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void http_fail_code(struct request *request, int code); /* an action refused or failed */
/* The same with its line, if it has one: a conflict with what the node is. */
void http_fail_error(struct request *request, const struct sgp_error *error);

/* Jobs. A handler asks for room (without, the request is answered), starts its work, and
 * begins the job, which suspends the request. Whoever learns of the end sets the answer, if
 * job->request is still there, and ends the job, which destroys it. */
bool http_room_for_job(struct request *request);
void http_begin_job(struct request *request, struct http_job *job);
void http_end_job(struct http_job *job);

#endif
