/* SPDX-License-Identifier: Apache-2.0 */
/* sgpctl: what its commands share.
 *
 * A command is an entry of a table: its words, its help, its function. A function gets the
 * arguments behind its words, prints to standard output and returns an exit status. Everything is
 * one thread, and one process a command: nothing needs to be undone on the way out. */
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
    CTL_DEGRADED = 7, /* status --check */
};

struct ctl_command;

/* One run of the program. */
struct ctl {
    const struct ctl_command *command;
    const char *name;   /* -n, or NULL */
    const char *socket; /* -s, or NULL; after ctl_socket the one that is meant */
    bool json;          /* --json */
    bool terminal;      /* standard output is one: aligned columns, rounded numbers */
    bool colour;        /* a terminal, and neither NO_COLOR nor TERM=dumb */
};

/* An option of a command: `--NAME VALUE`, `--NAME=VALUE`, or a flag. */
struct ctl_option {
    const char *name; /* with its dashes */
    /* What its value is called, "FILE" and "DIRECTORY" for what they are; NULL: a flag. */
    const char *value;
    const char *summary; /* what it does, and its default: broken into lines where it is printed */
    const char *words;   /* what the value may be, or begin with, one blank between them; or NULL */
    bool required;
    bool repeats; /* may be given several times; of the others the last one holds */
};

/* A command, as it is run and as it is told of: --help, the man pages and the completions
 * (help.c). */
struct ctl_command {
    const char *words;    /* "topology check" */
    const char *operands; /* "FILE"; "" if there are none */
    const char *summary;  /* one line for the list of commands */
    /* The rest: lines, ended by newlines, in paragraphs. Indented ones stay as they are where
     * others are filled anew. NULL if the summary says it all. */
    const char *help;
    const struct ctl_option *options; /* ended by one without a name; or NULL */
    /* What the first operand may be: the word of an index, and its line; NULL behind the last. Or
     * NULL: anything. */
    const char *(*choice)(size_t index, const char **ret_summary);
    enum ctl_exit (*run)(struct ctl *ctl, int argc, char **argv);
};

extern const struct ctl_command ctl_status_command, ctl_peers_command, ctl_topology_command,
    ctl_metrics_command, ctl_wait_command, ctl_watch_command, ctl_pause_command,
    ctl_checkpoint_command, ctl_reload_command, ctl_resume_command, ctl_stop_command,
    ctl_leave_command, ctl_evaluate_command, ctl_predict_command, ctl_export_command,
    ctl_card_command, ctl_topology_check_command, ctl_topology_show_command,
    ctl_topology_generate_command, ctl_key_generate_command, ctl_key_show_command,
    ctl_scaling_command, ctl_simulate_command, ctl_compare_command, ctl_run_command,
    ctl_launch_command, ctl_replay_command, ctl_reset_command, ctl_token_restore_command,
    ctl_config_schedule_command;

/* ---- arguments (options.c) ---- */

/* What the line says of an option. */
struct ctl_given {
    const char *name; /* the option's */
    bool given;
    const char *value; /* NULL of a flag */
};

/* Take the options of ctl->command out of argv; what is left, argv[0..*argc), are the operands, of
 * which there must be `least` to `most`. `--` ends the options; `-` is an operand. given[0..count)
 * are the command's options in their order, all of them, zeroed before. Returns CTL_DONE, or
 * CTL_USAGE after having said what is wrong. */
enum ctl_exit ctl_options_take(struct ctl *ctl, int *argc, char **argv, struct ctl_given *given,
    size_t count, int least, int most);

/* The value of a given option as a number in least..most; *ret_number stays when it is not
 * given. */
enum ctl_exit ctl_option_u64(struct ctl *ctl, const struct ctl_given *option, uint64_t least,
    uint64_t most, uint64_t *ret_number);
enum ctl_exit ctl_option_real(
    struct ctl *ctl, const struct ctl_given *option, double least, double most, double *ret_number);

/* ---- what commands are, told (help.c) ---- */

/* Print the help of a command, or of all, to standard output: for a person, or with --json as an
 * object with all that a table of commands says, of which the man pages and completions are
 * made. */
enum ctl_exit ctl_help(const struct ctl *ctl, const struct ctl_command *command);
enum ctl_exit ctl_help_all(
    const struct ctl *ctl, const struct ctl_command *const *commands, size_t count);

/* ---- a model without a daemon (predict_file.c) ---- */

/* Print what the model of a file says of the rows of a CSV file; "-" is standard input. */
enum ctl_exit ctl_predict_file(struct ctl *ctl, const char *model, const char *rows);

/* ---- what a text says (text.c) ---- */

/* A whole text as a number; false if it is anything else, or out of range of the type. */
bool ctl_text_u64(const char *text, uint64_t *ret_number);
bool ctl_text_real(const char *text, double *ret_number); /* finite */

/* Whether a text ends in another and is longer than that. */
bool ctl_ends_in(const char *text, const char *end);

/* ---- what people and scripts read (print.c) ---- */

/* Say what went wrong: a line on standard error, or with --json, on standard output,
 * {"error": {"exit_status": 2, "code": "usage", "message": ...}}. Returns `status`. */
enum ctl_exit ctl_fail(struct ctl *ctl, enum ctl_exit status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A wrong command line; adds where the help is. */
enum ctl_exit ctl_usage(struct ctl *ctl, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Print one JSON value as one line, keys in their order, and release it. */
enum ctl_exit ctl_print_json(json_t *value);

/* A number that JSON can hold: null for NaN and infinities. */
json_t *ctl_json_real(double number);

/* A text from outside, such as a file's name: of one that is not UTF-8 the odd bytes become '?'. */
json_t *ctl_json_text(const char *text);

/* A scalar of JSON as text for its key: as it is for scripts; for a person rounded, with units
 * where the key ends in _bytes or _seconds, and "-" for null. An array of names with commas between
 * them. */
#define CTL_CELL_BYTES 320u
void ctl_cell(
    const struct ctl *ctl, const char *key, const json_t *value, char text[CTL_CELL_BYTES]);

/* Print an object as lines `key value`; objects within it as `outer.inner value`. */
void ctl_print_object(const struct ctl *ctl, const json_t *object);

/* An answer of GET /v1/status in the order in which a person reads it; the caller releases it. */
json_t *ctl_status_in_order(const json_t *status);

/* Whether an answer of GET /v1/status says that model.safetensors is being written. */
bool ctl_model_is_written_now(const json_t *status);
/* Why the model is not on the disk, and what helps, as one line; "" if nothing failed. */
void ctl_model_failure(const json_t *status, char text[SGP_TEXT_BYTES]);

/* An answer of GET /v1/peers as an aligned table, of the columns that a person looks for first or
 * of all. */
void ctl_print_peers(const struct ctl *ctl, const json_t *peers, bool all);

/* Print an array of objects, these keys as columns: aligned on a terminal, else separated by
 * tabs. */
#define CTL_COLUMNS_MAX 64u
void ctl_print_table(
    const struct ctl *ctl, const json_t *rows, const char *const *keys, size_t key_count);
/* The same, aligned also where standard output is no terminal. */
void ctl_print_aligned(
    const struct ctl *ctl, const json_t *rows, const char *const *keys, size_t key_count);

/* Read the topology in FILE, or on standard input for `-` (topology.c). CTL_DONE: *ret_topology is
 * the caller's to destroy. Else what is wrong has been said. */
struct sgp_topology;
enum ctl_exit ctl_read_topology(
    struct ctl *ctl, const char *path, struct sgp_topology **ret_topology);

/* ---- talking to the daemon (client.c) ---- */

struct ctl_request {
    const char *method; /* "GET" or "POST" */
    const char *path;   /* "/v1/status" */
    const char *body;   /* of a POST, or NULL */
    size_t body_bytes;
    const char *content_type; /* of the body */
    const char *body_path; /* the file that the body was, for what the daemon says of it; or NULL */
    FILE *into;            /* where the answer goes, or NULL: memory */
    const char *into_path; /* its name, for the message when it cannot be written */
    bool patient;          /* the daemon has to compute first: else it has 30 seconds */
    double seconds;        /* given up after so long in any case; 0: no such limit */
    bool quiet;            /* a failure is not told, only returned */
};

struct ctl_reply {
    char *text; /* ended by a zero; free() it; NULL if it went into a file */
    size_t bytes;
};

/* Set ctl->socket to the one that the command line means: of -s, of -n, or the only one there is.
 * It is looked for once, so that a command keeps to its daemon if another starts meanwhile; ctl_ask
 * does this by itself. Returns CTL_DONE, or another status after having said what is wrong. */
enum ctl_exit ctl_socket(struct ctl *ctl);

/* Ask the daemon. CTL_DONE: it answered with success. Else what is wrong has been said. */
enum ctl_exit ctl_ask(
    struct ctl *ctl, const struct ctl_request *request, struct ctl_reply *ret_reply);

/* The NAME of /run/sgpd/NAME/control.sock, once ctl_socket has been called; "" for another path. */
void ctl_socket_name(const struct ctl *ctl, char name[SGP_NAME_BYTES]);

/* The same for an answer in JSON, which the caller releases. */
enum ctl_exit ctl_ask_json(struct ctl *ctl, const struct ctl_request *request, json_t **ret_json);

/* ---- of a node that does not answer (unit.c) ---- */

/* Whether there is, or may be, /etc/sgpd/NAME.conf. */
bool ctl_has_configuration(const char *name);

/* Whether a daemon of this name ("": it is not known) may still come, and how it stands; or why it
 * cannot. */
bool ctl_may_come(const char *name, char *text, size_t capacity);

#endif
