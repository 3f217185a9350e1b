/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl dashboard`: a page in a browser that shows a node, and its fleet as far as the node knows
 * it. Each file calls those below it:
 *
 *   dashboard.c         the command, its loop, its callers, and which path has which answer
 *   dashboard_streams.c callers that are told each change
 *   dashboard_source.c  what the daemon says, asked once a second at most
 *   dashboard_log.c     the last lines of the daemon's log
 *   dashboard_files.c   the files of the page
 *   dashboard_origin.c  which requests are answered at all
 *
 * One thread does everything. A request reads, and never changes anything. */
#ifndef DASHBOARD_H
#define DASHBOARD_H

#include "ctl.h"

#include <microhttpd.h>
#include <sys/queue.h>
#include <sys/types.h>

/* ---- which requests are answered (dashboard_origin.c) ---- */

#define DASHBOARD_TOKEN_BYTES 33u /* 128 random bits in hexadecimal, and the zero */
#define DASHBOARD_HOSTS_MAX 16u

struct dashboard_origin {
    char token[DASHBOARD_TOKEN_BYTES];      /* the first part of each path */
    const char *hosts[DASHBOARD_HOSTS_MAX]; /* names in the header Host, without a port; borrowed */
    size_t host_count;
};

/* Choose the token, and accept the names of the local host. Returns 0 or -errno. */
int dashboard_origin_init(struct dashboard_origin *origin);

/* Accept one more name. Returns false if there are too many. */
bool dashboard_origin_add(struct dashboard_origin *origin, const char *host);

/* Why a request is refused, as a line, with its HTTP status; or NULL. Then *ret_path is the path
 * behind the token. */
const char *dashboard_origin_refusal(const struct dashboard_origin *origin,
    struct MHD_Connection *connection, const char *method, const char *url, unsigned *ret_status,
    const char **ret_path);

/* ---- the files of the page (dashboard_files.c) ---- */

#define DASHBOARD_FILES_MAX 16u

struct dashboard_file {
    const char *name; /* in the folder; "index.html" is also the empty path */
    const char *type;
    char *text;
    size_t bytes;
};

struct dashboard_files {
    struct dashboard_file files[DASHBOARD_FILES_MAX];
    size_t count;
};

/* Read all files of the page, so that they stay of one version. */
enum ctl_exit dashboard_files_read(struct ctl *ctl, struct dashboard_files *files);
/* NULL: the page has no such file. */
const struct dashboard_file *dashboard_files_find(
    const struct dashboard_files *files, const char *path);

/* ---- the log (dashboard_log.c) ---- */

#define DASHBOARD_LOG_LINES 200u       /* kept */
#define DASHBOARD_LOG_LINE_BYTES 1024u /* of one line; the rest of it is left out */

struct dashboard_log {
    const char *source; /* what is followed, for a person; NULL: nothing */
    pid_t follower;     /* tail or journalctl; 0: none */
    int descriptor;     /* its output; -1: none, or it has ended */
    uint64_t total;     /* lines so far */
    size_t line_bytes;  /* of the line that is not complete */
    char line[DASHBOARD_LOG_LINE_BYTES];
    char *lines[DASHBOARD_LOG_LINES]; /* a ring: line number i is at i % DASHBOARD_LOG_LINES */
};

/* Follow a file; if `path` is NULL, the journal of the unit sgpd@NAME; if `name` is "", too,
 * nothing. Both are borrowed. Returns 0 or -errno. */
int dashboard_log_open(struct dashboard_log *log, const char *path, const char *name);
/* Take the lines that have come. */
void dashboard_log_take(struct dashboard_log *log);
/* {"source", "total", "lines"}: the last lines, oldest first. */
json_t *dashboard_log_json(const struct dashboard_log *log);
void dashboard_log_close(struct dashboard_log *log);

/* ---- what the daemon says (dashboard_source.c) ---- */

#define DASHBOARD_FRESH_SECONDS 1.0  /* an answer is reused for this time */
#define DASHBOARD_ASK_SECONDS 5.0    /* then the daemon counts as silent, */
#define DASHBOARD_SILENT_SECONDS 2.0 /* and is not asked for this time */
#define DASHBOARD_PATHS 6u           /* whose answers are kept */

struct dashboard_answer { /* to one path */
    struct ctl_reply reply;
    double asked; /* 0: never */
    unsigned status;
};

struct dashboard_source {
    struct ctl *ctl;
    struct dashboard_answer answers[DASHBOARD_PATHS];
    double silent_until;
};

/* The answer to GET /PATH with these arguments of its query: 200 and the text, which belongs to the
 * source until the next call; or 400, 404, 503 and NULL. A path that is not on the list of what may
 * be read has 404. */
unsigned dashboard_source_ask(struct dashboard_source *source, struct MHD_Connection *connection,
    const char *path, const struct ctl_reply **ret_reply);

/* {"status", "peers", "log"} as text, which the caller frees, with its length; `status` and `peers`
 * are null if the daemon is silent. It has no line feed. NULL: no memory. */
char *dashboard_source_state(
    struct dashboard_source *source, uint64_t log_total, size_t *ret_bytes);

/* ---- callers that are told each change (dashboard_streams.c) ---- */

#define DASHBOARD_STREAMS_MAX 8u /* at one time; 503 beyond */
/* without a byte taken by a reader that does not keep up; then closed */
#define DASHBOARD_STALL_SECONDS 15.0
#define DASHBOARD_STREAM_BYTES 32768 /* that the kernel holds for a slow reader */

/* What all readers are told; each of them reads it at its own pace. */
struct dashboard_event {
    unsigned readers; /* the streams that use it, and 1 while it is the latest */
    size_t bytes;
    char text[];
};

struct dashboard_stream {
    LIST_ENTRY(dashboard_stream) next;
    struct dashboard_streams *streams;
    struct MHD_Connection *connection;
    int descriptor;
    struct dashboard_event *event; /* being sent, or NULL */
    size_t sent;                   /* bytes of it */
    uint64_t told;                 /* number of the latest event that it took */
    double progress;               /* when a byte was last taken, or nothing was to be sent */
    bool waiting;                  /* suspended until the next event */
};

struct dashboard_streams {
    LIST_HEAD(, dashboard_stream) list;
    unsigned count;
    struct dashboard_event *latest;
    uint64_t number; /* of the latest event */
    bool closing;
};

/* Answer with a stream, or with NULL if there are too many. */
struct MHD_Response *dashboard_streams_open(
    struct dashboard_streams *streams, struct MHD_Connection *connection);
/* Tell all readers; a reader that is behind gets the latest event only. */
void dashboard_streams_tell(struct dashboard_streams *streams, const char *text, size_t bytes);
/* Close the connections of readers that take nothing. */
void dashboard_streams_sweep(struct dashboard_streams *streams);
/* Let all streams end. */
void dashboard_streams_close(struct dashboard_streams *streams);

#endif
