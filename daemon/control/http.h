/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the control server: connections, requests, answers and jobs. Each file calls only files
 * below it, and util/offload.h for work that takes the loop thread too long:
 *
 *   control.c   socket, accepting, places, the loop, closing
 *   endpoints.c what each path does, as a table that control.c hands down
 *   readers.c   what onlookers read: copied on the loop thread, rendered off it
 *   reports.c   the reports of all nodes, added up off the loop thread
 *   rollouts.c  signed topology files: pushed, and shown
 *   invitations.c  invitations to other machines: given, and listed
 *   predict.c   rows from a body to the model's outputs
 *   http.c      a request from its first line to its answer; permissions
 *   metrics.c   views as Prometheus text
 *   extremes.c  the least and greatest figures of all nodes, as Prometheus text
 *   render.c    views as JSON
 *   page.c      which rows of the history an answer has
 *
 * Thread: the loop thread, except for the `run` of a struct offload (offload.h). */
#ifndef SGPD_HTTP_H
#define SGPD_HTTP_H

#include "util/allowance.h"
#include "control.h"
#include "util/offload.h"

#include <jansson.h>
#include <microhttpd.h>
#include <sys/queue.h>
#include <sys/types.h>

/* One accepted connection. */
struct client {
    LIST_ENTRY(client) next;
    int descriptor;
    uid_t uid;             /* of the process that connected */
    uint64_t since;        /* uv_now when it connected, was last answered, or its answer began */
    uint64_t answer_bytes; /* of the answer that the client has not fetched completely */
    bool spoke;            /* the head of a request has arrived */
    bool busy;             /* a whole request has arrived and its answer is not complete */
    bool waiting;          /* busy with a job: no deadline */
    bool leaving;          /* shut down, but not yet noticed by libmicrohttpd: has no place */
};

/* A job suspends its request until the job ends. Its other data are in a struct that contains this
 * one. */
struct http_job {
    LIST_ENTRY(http_job) next;
    struct control *control; /* NULL once the server has closed */
    struct request *request; /* NULL once no client waits for the answer */
    bool heavy;              /* counts against CONTROL_JOBS_MAX */
    bool waits;              /* for other nodes: counts against CONTROL_WAITS_MAX */
    uid_t uid;               /* of its client */
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
    unsigned body_status;          /* of the answer, if the body cannot be stored; else 0 */
    struct MHD_Response *response; /* the answer, once known */
    unsigned status;
};

struct endpoint {
    const char *method;
    const char *path;
    bool changes; /* for root and the daemon's own user only */
    bool body;    /* accepts a body */
    /* Answers (http_answer_*, http_fail) or begins a job. */
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
    struct view_model model;
    const struct endpoint *endpoints;
    size_t endpoint_count;
    LIST_HEAD(, http_job) jobs;
    uint32_t job_count; /* heavy ones */
    struct offloads offloads;
    uint32_t download_count;               /* models being fetched, each a copy of the parameters */
    void (*pump)(struct control *control); /* let libmicrohttpd work, and set its timer */
    bool closing;
    bool kept; /* the socket outlives the server */

    /* for control.c alone */
    struct MHD_Daemon *server;
    char *path;
    int listener;
    uv_poll_t accepting;
    uv_poll_t polling; /* libmicrohttpd's epoll descriptor */
    uv_timer_t timer;
    unsigned handles;            /* how many of the three handles are open */
    struct allowance allowance;  /* of the loop thread's time */
    bool resting;                /* the allowance is overdrawn: nothing is read or accepted */
    bool accepting_paused;       /* out of descriptors until the next tick */
    bool pumping;                /* libmicrohttpd is running, perhaps in one of our handlers */
    LIST_HEAD(, client) clients; /* http.c reads the list */
    uint32_t client_count;
    struct client *entering; /* while libmicrohttpd is given its connection */
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

/* Answers. Each request gets exactly one. The function takes ownership of the response.
 * NULL: out of memory. */
void http_answer(struct request *request, unsigned status, struct MHD_Response *response,
    uint64_t bytes, const char *content_type);
/* Status 200. Takes ownership of the text, which came from malloc. NULL: no memory. */
void http_answer_text(struct request *request, char *text, size_t bytes, const char *content_type);
/* JSON as the text of an answer. Takes ownership of root. Returns NULL if root is NULL or memory is
 * out. Any thread. */
char *http_dump(json_t *root, size_t *ret_bytes);
/* 200; takes ownership of root; NULL: no memory */
void http_answer_json(struct request *request, json_t *root);
void http_fail(struct request *request, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void http_fail_code(struct request *request, int code); /* an action was refused or failed */
/* The same, with the line of the error if there is one: a conflict with the state of the node. */
void http_fail_error(struct request *request, const struct sgp_error *error);

/* Whether the client is root or the daemon's own user. */
bool http_is_privileged(const struct client *client);

/* Whether the client's user may have one more large answer. If not, the request is answered. */
bool http_room_for_answer(struct request *request);

/* Jobs. If its job is heavy or waits, a handler asks for room first; without room, the request is
 * answered. `others` take room as heavy jobs do. Then the handler starts its work and begins the
 * job, which suspends the request. The code that learns of the end sets the answer, if job->request
 * is still set. Then it ends the job, which destroys the job. */
bool http_room_for_job(struct request *request, uint32_t others);
bool http_room_to_wait(struct request *request);
void http_begin_job(struct request *request, struct http_job *job);
void http_end_job(struct http_job *job);

#endif
