/* SPDX-License-Identifier: Apache-2.0 */
/* sgpctl: what its commands share.
 *
 * A command is an entry of a table: its words, its help, its function. A function gets the
 * arguments after its words, prints to standard output and returns an exit status. A process runs
 * one command in one thread. So no clean-up is needed at the end. */
#ifndef CTL_H
#define CTL_H

#include "sgp/status.h"

#include <jansson.h>
#include <stdio.h>

/* Exit statuses, the same for every command. */
enum ctl_exit {
    CTL_DONE = 0,
    CTL_FAILED = 1,
    CTL_USAGE = 2,
    CTL_NOT_RUNNING = 3,
    CTL_NOT_PERMITTED = 4,
    CTL_TIMED_OUT = 5,
    CTL_INVALID = 6,  /* an invalid file */
    CTL_DEGRADED = 7, /* status --check, wait */
};

struct ctl_command;

/* One run of the program. */
struct ctl {
    const struct ctl_command *command;
    const char *name;   /* -n, or NULL */
    const char *socket; /* -s, or NULL; after ctl_socket the chosen socket */
    bool json;          /* --json */
    bool terminal;      /* standard output is a terminal: aligned columns, rounded numbers */
    bool colour;        /* a terminal, and neither NO_COLOR nor TERM=dumb */
};

/* An option of a command: `--NAME VALUE`, `--NAME=VALUE`, or a flag. */
struct ctl_option {
    const char *name; /* with its dashes */
    /* What its value is called; "FILE" and "DIRECTORY" are for files and directories.
     * NULL: a flag. */
    const char *value;
    const char *summary; /* its effect and default: wrapped when printed */
    /* the allowed values or their beginnings, separated by one blank; or NULL */
    const char *words;
    bool required;
    bool repeats; /* may be given several times; of other options the last one counts */
};

/* A command, as it is run and as it is described in --help, the man pages and the completions
 * (help.c). */
struct ctl_command {
    const char *words;    /* "topology check" */
    const char *operands; /* "FILE"; "" if there are none */
    const char *summary;  /* one line for the list of commands */
    /* The rest of the help: lines, ended by newlines, in paragraphs. Indented lines stay unchanged;
     * other lines are wrapped anew. NULL: the summary says all. */
    const char *help;
    const struct ctl_option *options; /* ended by an option without a name; or NULL */
    /* The allowed first operands: the word of an index, and its line; NULL after the last. Or NULL:
     * any operand. */
    const char *(*choice)(size_t index, const char **ret_summary);
    enum ctl_exit (*run)(struct ctl *ctl, int argc, char **argv);
};

extern const struct ctl_command ctl_status_command, ctl_peers_command, ctl_topology_command,
    ctl_metrics_command, ctl_wait_command, ctl_watch_command, ctl_pause_command,
    ctl_checkpoint_command, ctl_reload_command, ctl_resume_command, ctl_stop_command,
    ctl_leave_command, ctl_evaluate_command, ctl_report_command, ctl_predict_command,
    ctl_export_command, ctl_card_command, ctl_topology_check_command, ctl_topology_show_command,
    ctl_topology_generate_command, ctl_topology_sign_command, ctl_topology_verify_command,
    ctl_topology_push_command, ctl_topology_rollback_command, ctl_topology_log_command,
    ctl_topology_diff_command, ctl_key_generate_command, ctl_key_show_command, ctl_scaling_command,
    ctl_scaling_show_command, ctl_scaling_export_command, ctl_simulate_command, ctl_compare_command,
    ctl_run_command, ctl_launch_command, ctl_replay_command, ctl_reset_command,
    ctl_token_restore_command, ctl_config_schedule_command, ctl_config_new_command,
    ctl_data_describe_command, ctl_data_statistics_command, ctl_history_command, ctl_fleet_command,
    ctl_dashboard_command, ctl_plan_privacy_command, ctl_invite_command, ctl_join_command,
    ctl_admit_command, ctl_up_command, ctl_supervise_command;

/* ---- arguments (options.c) ---- */

/* An option on the command line. */
struct ctl_given {
    const char *name; /* the option's */
    bool given;
    const char *value; /* NULL for a flag */
    const char *words; /* the option's */
};

/* Take the options of ctl->command out of argv. The rest, argv[0..*argc), are the operands, of
 * which there must be `least` to `most`. `--` ends the options; `-` is an operand. given[0..count)
 * are all of the command's options in their order; the caller sets them to zero before. Returns
 * CTL_DONE, or CTL_USAGE after reporting the error. */
enum ctl_exit ctl_options_take(struct ctl *ctl, int *argc, char **argv, struct ctl_given *given,
    size_t count, int least, int most);

/* The next value of an option that repeats, from argv[*at] on; NULL: there is none. Called before
 * ctl_options_take, which keeps the last value alone. */
const char *ctl_option_next(int argc, char **argv, const char *name, int *at);

/* The value of a given option as a number in least..most. If the option is not given, *ret_number
 * is unchanged. */
enum ctl_exit ctl_option_u64(struct ctl *ctl, const struct ctl_given *option, uint64_t least,
    uint64_t most, uint64_t *ret_number);
enum ctl_exit ctl_option_real(
    struct ctl *ctl, const struct ctl_given *option, double least, double most, double *ret_number);

/* The value of a given option as the index of one of its words, which are all that it allows. If
 * the option is not given, *ret_index is unchanged. */
enum ctl_exit ctl_option_word(struct ctl *ctl, const struct ctl_given *option, size_t *ret_index);

/* ---- descriptions of commands (help.c) ---- */

/* Print the help of a command, or of all, to standard output. It is for a person, or with --json an
 * object with all contents of a table of commands. The man pages and completions are made from that
 * object. */
enum ctl_exit ctl_help(const struct ctl *ctl, const struct ctl_command *command);
enum ctl_exit ctl_help_all(
    const struct ctl *ctl, const struct ctl_command *const *commands, size_t count);

/* ---- a model without a daemon (predict_file.c) ---- */

/* Print what the model of a file predicts for the rows of a CSV file; "-" is standard input. */
enum ctl_exit ctl_predict_file(struct ctl *ctl, const char *model, const char *rows);

/* ---- reading texts (text.c) ---- */

/* A whole text as a number. Returns false for any other text, or a number out of range of
 * the type. */
bool ctl_text_u64(const char *text, uint64_t *ret_number);
bool ctl_text_real(const char *text, double *ret_number); /* finite */

/* Whether a text ends in another and is longer than that. */
bool ctl_ends_in(const char *text, const char *end);

/* ---- output for people and scripts (print.c) ---- */

/* Report an error: a line on standard error. With --json, on standard output: {"error":
 * {"exit_status": 2, "code": "usage", "message": ...}}. Returns `status`. */
enum ctl_exit ctl_fail(struct ctl *ctl, enum ctl_exit status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A wrong command line. The message adds where to find the help. */
enum ctl_exit ctl_usage(struct ctl *ctl, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Print one JSON value as one line, keys in their order, and release it. */
enum ctl_exit ctl_print_json(json_t *value);

/* The member of an object: NaN if it is no number, `otherwise` if it is no string. */
double ctl_real_of(const json_t *object, const char *key);
const char *ctl_text_of(const json_t *object, const char *key, const char *otherwise);

/* A number for JSON: null for NaN and infinities. */
json_t *ctl_json_real(double number);

/* A text from outside, such as a file's name. Bytes that are not UTF-8 become '?'. */
json_t *ctl_json_text(const char *text);

/* A scalar of JSON as text, by its key. Scripts get it unchanged. For a person it is rounded, with
 * units if the key ends in _bytes or _seconds, and "-" for null. An array of names is joined by
 * commas. */
#define CTL_CELL_BYTES 320u
void ctl_cell(
    const struct ctl *ctl, const char *key, const json_t *value, char text[CTL_CELL_BYTES]);

/* Print an object as lines `key value`; objects within it as `outer.inner value`. */
void ctl_print_object(const struct ctl *ctl, const json_t *object);

/* Write a word for a shell: in single quotes, unless it consists of safe characters alone. */
void ctl_put_word(const char *word, FILE *file);

/* An answer of GET /v1/status, ordered for a person. The caller releases it. */
json_t *ctl_status_in_order(const json_t *status);

/* Whether an answer of GET /v1/status says that model.safetensors is being written. */
bool ctl_model_is_written_now(const json_t *status);
/* Why the model is not on the disk, or which training was lost, and a remedy, as one line; "":
 * neither. */
void ctl_model_failure(const json_t *status, char text[SGP_TEXT_BYTES]);
/* That the node leaves out steps because its epsilon is spent, and a remedy, as one line; "" if it
 * does not. */
void ctl_privacy_failure(const json_t *status, char text[SGP_TEXT_BYTES]);

/* An answer of GET /v1/peers as an aligned table: the most important columns, or all. */
void ctl_print_peers(const struct ctl *ctl, const json_t *peers, bool all);

/* Print an array of objects with these keys as columns: aligned on a terminal, else separated by
 * tabs. */
#define CTL_COLUMNS_MAX 64u
void ctl_print_table(
    const struct ctl *ctl, const json_t *rows, const char *const *keys, size_t key_count);
/* The same, but aligned also if standard output is no terminal. */
void ctl_print_aligned(
    const struct ctl *ctl, const json_t *rows, const char *const *keys, size_t key_count);

/* Print an untrusted text in so many columns, padded with blanks. A longer text ends in "..". */
void ctl_print_text(const struct ctl *ctl, const json_t *value, size_t width);
/* Print a number in so many columns, NaN as "-". It has so many significant digits if it is not
 * whole, or very large. */
void ctl_print_number(double number, int width, int digits);

/* Read the topology in FILE, or on standard input for `-` (topology.c). CTL_DONE: the caller must
 * destroy *ret_topology. Else the error was reported. */
struct sgp_topology;
enum ctl_exit ctl_read_topology(
    struct ctl *ctl, const char *path, struct sgp_topology **ret_topology);

/* ---- writing files (new_file.c) ---- */

/* Write a file under a name beside it, and give it its name. Returns 0; -EEXIST if it is there and
 * is not to be replaced; or another -errno. */
int ctl_file_write(const char *path, const char *text, size_t bytes, bool replace);

/* ---- talking to the daemon (client.c) ---- */

struct ctl_request {
    const char *method; /* "GET" or "POST" */
    const char *path;   /* "/v1/status" */
    const char *body;   /* of a POST, or NULL */
    size_t body_bytes;
    const char *content_type; /* of the body */
    const char *body_path;    /* the file that the body came from, for messages; or NULL */
    FILE *into;               /* where to write the answer; NULL: memory */
    const char *into_path;    /* its name, for the message when it cannot be written */
    bool patient;             /* the daemon must compute first; else it has 30 seconds */
    double seconds;           /* abandoned after this time in any case; 0: no limit */
    bool quiet;               /* a failure is only returned, not reported */
};

struct ctl_reply {
    char *text; /* zero-terminated; free() it; NULL if written to a file */
    size_t bytes;
};

/* Set ctl->socket to the socket that the command line selects: by -s, by -n, or the only one there
 * is. The socket is looked up once. So a command keeps its daemon if another starts meanwhile;
 * ctl_ask calls this by itself. Returns CTL_DONE, or another status after reporting the error. */
enum ctl_exit ctl_socket(struct ctl *ctl);

/* Ask the daemon. CTL_DONE: the daemon answered with success. Else the error was reported. */
enum ctl_exit ctl_ask(
    struct ctl *ctl, const struct ctl_request *request, struct ctl_reply *ret_reply);

/* Give an order and print the daemon's answer (act.c). */
enum ctl_exit ctl_order(struct ctl *ctl, const struct ctl_request *request);

/* The NAME of /run/sgpd/NAME/control.sock, once ctl_socket has been called; "" for another path. */
void ctl_socket_name(const struct ctl *ctl, char name[SGP_NAME_BYTES]);

/* The same for an answer in JSON, which the caller releases. */
enum ctl_exit ctl_ask_json(struct ctl *ctl, const struct ctl_request *request, json_t **ret_json);

/* ---- serving over HTTP (listen.c) ---- */

/* Callers that the kernel keeps until they are accepted. */
#define CTL_BACKLOG 64

/* Listen on HOST:PORT, the value of --listen; NULL: on a free port of 127.0.0.1. CTL_DONE: the
 * caller owns the descriptor, which does not block. Else the error was reported. */
enum ctl_exit ctl_listen(struct ctl *ctl, const char *address, int *ret_listener);

/* From the first byte of a request to the last byte of its answer; then the client is closed. */
#define CTL_CLIENT_SECONDS 10.0
#define CTL_CLIENTS_MAX 48u /* at one time: others wait in the kernel's queue */

struct ctl_client { /* a connection that is open */
    int descriptor; /* -1: no client */
    double since;   /* when it came */
    bool known;     /* it may keep its place */
    bool streaming; /* it has a deadline of its own */
    bool leaving;   /* shut down, but not yet noticed by libmicrohttpd */
};

/* The clients of one server, for its thread alone. */
struct ctl_clients {
    struct ctl_client places[CTL_CLIENTS_MAX];
};

void ctl_clients_init(struct ctl_clients *clients);
/* A connection has come: its place, which belongs to `clients` until ctl_clients_remove; NULL: all
 * are taken. */
struct ctl_client *ctl_clients_add(struct ctl_clients *clients, int descriptor);
void ctl_clients_remove(struct ctl_client *client);
/* Shut down the clients that have been here for too long. A client that sends a byte now and then
 * is not silent, but is closed in time, too. */
void ctl_clients_sweep(struct ctl_clients *clients);
/* If more than `most` clients are not known, shut down the oldest of them. */
void ctl_clients_limit_strangers(struct ctl_clients *clients, unsigned most);

/* Seconds on the monotonic clock. */
double ctl_now(void);

/* ---- about a daemon that does not answer (process.c) ---- */

/* The process that listens at this socket. The caller closes the descriptor. -1: unknown. */
int ctl_process_open(const char *path);
/* Whether it has not ended; false for -1. */
bool ctl_process_lives(int process);

/* ---- about a node that does not answer (unit.c) ---- */

/* Whether /etc/sgpd/NAME.conf exists, or may exist. */
bool ctl_has_configuration(const char *name);

/* Whether a daemon of this name ("": unknown) may still start. The text says its state, or why it
 * cannot start. */
bool ctl_may_come(const char *name, char *text, size_t capacity);

#endif
