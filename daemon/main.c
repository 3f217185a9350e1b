/* SPDX-License-Identifier: Apache-2.0 */
/* sgpd: options, configuration, exit statuses. daemon.c contains what runs afterwards. */
#include "daemon.h"
#include "node/colocated_owner.h"
#include "node/early_stop.h"
#include "node/runs.h"
#include "setup/scaling.h"
#include "setup/signed_file.h"
#include "setup/site.h"
#include "setup/unit.h"
#include "store/privacy_account.h"
#include "store/state_directory.h"
#include "util/exit_status.h"
#include "util/socket_file.h"
#include "awaiting_model.h"
#include "awaiting_rollout.h"
#include "awaiting_scaling.h"
#include "awaiting_struck.h"
#include "tune.h"

#include "sgp/blas.h"

#include "sgp/version.h"
#include "sgp/wire.h"

#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USAGE_LINE(name, number, restarts, text) "  " #number "  " text "\n"

static const char usage[] =
    "Usage: sgpd -c FILE           run in the foreground\n"
    "       sgpd --check -c FILE   check configuration, topology, data and place, and end\n"
    "       sgpd --tune MODEL --output MODEL -c FILE\n"
    "                              train the local layers of a finished model alone, and end\n"
    "       sgpd --privacy-spent STEPS -c FILE\n"
    "                              state what private steps were taken before the account was "
    "lost\n"
    "       sgpd --help-config     list every key of the configuration\n"
    "       sgpd --help | --version\n"
    "\n"
    "Exit status:\n" EXIT_STATUS_TABLE(
        USAGE_LINE) "\n"
                    "See sgpd(8) and sgpd.conf(5); sgpctl talks to a running daemon.\n";

struct options {
    const char *file;
    bool check;
    const char *tune, *output; /* model files; NULL: nothing is tuned */
    bool states;               /* what was spent, */
    uint64_t spent;            /* in private steps */
};

/* Whether no daemon runs: nothing is written to the state directory, and no signal is handled. */
static bool ends_soon(const struct options *options)
{
    return options->check || options->tune != NULL || options->states;
}

static bool parse_steps(const char *text, uint64_t *ret_steps)
{
    char *end;
    errno = 0;
    unsigned long long steps = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
        steps > SGP_PRIVACY_STEPS_MAX)
        return false;
    *ret_steps = steps;
    return true;
}

/* Returns -1 to continue, or the exit status. */
static int parse_options(int count, char **arguments, struct options *ret_options)
{
    enum { CHECK = 256, HELP_CONFIG, VERSION, TUNE, OUTPUT, SPENT };
    static const struct option table[] = {
        {"config", required_argument, NULL, 'c'},
        {"check", no_argument, NULL, CHECK},
        {"tune", required_argument, NULL, TUNE},
        {"output", required_argument, NULL, OUTPUT},
        {"privacy-spent", required_argument, NULL, SPENT},
        {"help", no_argument, NULL, 'h'},
        {"help-config", no_argument, NULL, HELP_CONFIG},
        {"version", no_argument, NULL, VERSION},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(count, arguments, "c:h", table, NULL)) != -1) {
        switch (option) {
        case 'c':
            ret_options->file = optarg;
            break;
        case CHECK:
            ret_options->check = true;
            break;
        case TUNE:
            ret_options->tune = optarg;
            break;
        case OUTPUT:
            ret_options->output = optarg;
            break;
        case SPENT:
            ret_options->states = true;
            if (parse_steps(optarg, &ret_options->spent))
                break;
            (void)fprintf(
                stderr, "sgpd: --privacy-spent takes a number of steps, not '%s'\n", optarg);
            return EXIT_STATUS_USAGE;
        case 'h':
            (void)fputs(usage, stdout);
            return EXIT_STATUS_DONE;
        case HELP_CONFIG:
            config_print_keys(stdout);
            return EXIT_STATUS_DONE;
        case VERSION:
            (void)printf("sgpd %s, protocol %u\n", sgp_version(), SGP_WIRE_VERSION);
            return EXIT_STATUS_DONE;
        default:
            (void)fputs(usage, stderr);
            return EXIT_STATUS_USAGE;
        }
    }
    const bool pairs = (ret_options->tune == NULL) == (ret_options->output == NULL);
    const bool clash = (ret_options->tune != NULL) + ret_options->check + ret_options->states > 1;
    if (ret_options->file != NULL && optind == count && pairs && !clash)
        return -1;
    if (!pairs || clash)
        (void)fputs(
            "sgpd: --tune and --output go together; of --tune, --check and --privacy-spent give "
            "one\n",
            stderr);
    else if (ret_options->file == NULL)
        (void)fputs("sgpd: the configuration is missing; name it with -c FILE\n", stderr);
    else
        (void)fprintf(stderr, "sgpd: '%s' is one argument too many\n", arguments[optind]);
    (void)fputs(usage, stderr);
    return EXIT_STATUS_USAGE;
}

/* Memory may be available at the next start. Any other error must be corrected by a person. */
static int refuse(const struct sgp_error *error, bool check)
{
    (void)fprintf(stderr, "sgpd: %s\n", error->text);
    return check                    ? EXIT_STATUS_INVALID
           : error->code == -ENOMEM ? EXIT_STATUS_FAILED
                                    : EXIT_STATUS_CONFIG;
}

/* What private steps have cost, and how many may follow. Of a run that goes on, the counted steps
 * were taken already. */
static void print_account(
    const struct config *config, const struct prepared *prepared, const struct privacy_sum *spent)
{
    const struct prepared_privacy *privacy = &prepared->privacy;
    const uint64_t counted = runs_goes_on(prepared) ? spent->steps : 0;
    const uint64_t steps = counted < privacy->steps ? privacy->steps - counted : 0;
    char text[SGP_TEXT_BYTES];
    (void)printf("counted    %llu steps so far, epsilon %.4g\n"
                 "left       %llu more steps within epsilon\n",
        (unsigned long long)spent->steps, sgp_privacy_epsilon(&spent->cost, config->privacy_delta),
        (unsigned long long)sgp_privacy_steps_left(
            &spent->cost, &privacy->step, config->privacy_epsilon, config->privacy_delta));
    if (spent->steps > 0 && steps > 0) {
        struct sgp_privacy_cost all = spent->cost;
        sgp_privacy_add(&all, &privacy->step, steps);
        (void)printf("           epsilon %.4g after the %llu steps to come\n",
            sgp_privacy_epsilon(&all, config->privacy_delta), (unsigned long long)steps);
    }
    if (prepared_lacks_epsilon(prepared, &spent->cost, steps, text))
        (void)printf("warning: %s\n", text);
}

/* Show the account, or report that there must be none. */
static int check_account(
    const struct config *config, const struct prepared *prepared, struct sgp_error *error)
{
    const struct prepared_privacy *privacy = &prepared->privacy;
    struct privacy_sum spent = {0};
    if (!privacy->on && prepared->topology->nodes[prepared->self].relay)
        return 0;
    if (!privacy->on)
        return privacy_account_check_absent(config->state_directory, error);
    int code = privacy_account_read(config->state_directory, config->name, error, &spent);
    if (code == 0)
        print_account(config, prepared, &spent);
    return code;
}

/* Print what would run, and where. *prepared is the caller's. */
static int check(const struct config *config, const struct prepared *prepared)
{
    struct sgp_error error = {0};
    struct site site;
    if (site_check(config, &error, &site) < 0)
        return refuse(&error, true);
    prepared_print(stdout, prepared);
    if (check_account(config, prepared, &error) < 0)
        return refuse(&error, true);
    if (runs_print(stdout, prepared, &error) < 0)
        return refuse(&error, true);
    for (uint32_t i = 0; i < site.warning_count; i++)
        (void)printf("warning: %s\n", site.warnings[i]);
    if (site.running)
        (void)printf("running    an sgpd uses %s now\n", config->state_directory);
    return EXIT_STATUS_DONE;
}

/* Write the account that the operator states, under the lock of the state directory. */
static int state_spent(const struct config *config, const struct prepared *prepared, uint64_t steps,
    struct sgp_error *error)
{
    struct privacy_sum spent = {.steps = steps};
    if (!prepared->privacy.on)
        return config_fail(config, CONFIG_ID_PRIVACY_EPSILON, error, SGP_E_CONFIG,
            "not given, or this node trains on no rows, so no private steps are counted");
    int directory = state_directory_open(config->state_directory, error);
    if (directory < 0)
        return directory;
    sgp_privacy_add(&spent.cost, &prepared->privacy.step, steps);
    int code = privacy_account_state(config->state_directory, config->name, &spent, error);
    (void)close(directory);
    if (code == 0)
        (void)printf("stated: %llu steps, epsilon %.4g\n", (unsigned long long)steps,
            sgp_privacy_epsilon(&spent.cost, config->privacy_delta));
    return code;
}

/* A later start may succeed. */
static int fail(const struct sgp_error *error, const struct log *log)
{
    sgp_log(&log->sink, SGP_LEVEL_ERROR, "event=error error=\"%s\"", error->text);
    return EXIT_STATUS_FAILED;
}

static int run_awaiting_model(
    const struct config *config, struct prepared *prepared, struct log *log)
{
    struct sgp_error error = {0};
    struct attachment attachment;
    struct daemon_extras extras = {.attachment = &attachment};
    int code = awaiting_model_wait(config, prepared, log, &attachment, &extras.socket, &error);
    if (code < 0)
        return fail(&error, log);
    if (code > 0) {
        sgp_log(&log->sink, SGP_LEVEL_INFO, "event=end status=0");
        return EXIT_STATUS_DONE;
    }
    return daemon_run(config, prepared, log, &extras);
}

static const struct opened nothing = {.directory = -1, .socket = -1};

/* The exit status, or DAEMON_AGAIN. */
static int run_struck(const struct config *config, struct log *log)
{
    struct sgp_error error = {0};
    const int code = awaiting_struck_wait(config, log, &error);
    if (code < 0)
        return fail(&error, log);
    if (code > 0)
        return DAEMON_AGAIN;
    sgp_log(&log->sink, SGP_LEVEL_INFO, "event=end status=0");
    return EXIT_STATUS_DONE;
}

/* The state directory stays open until the process ends. */
static int run(const struct config *config, struct prepared *prepared, struct log *log,
    struct colocated_owner *owner, const struct opened *opened)
{
    struct sgp_error error = {0};
    const struct daemon_extras extras = {.colocated = owner, .socket = opened->socket};
    if (!prepared->awaiting_model && prepared_learn(prepared, &error) < 0)
        return refuse(&error, false);
    if (opened->directory < 0 && state_directory_open(config->state_directory, &error) < 0)
        return fail(&error, log);
    if (signed_file_keep(config, prepared->rollout, &error) < 0)
        return fail(&error, log);
    if (prepared->data.cache_bytes == 0)
        sgp_data_cache_clear(config->state_directory);
    for (uint32_t i = 0; i < prepared->warning_count; i++)
        sgp_log(&log->sink, SGP_LEVEL_WARNING, "event=warning text=\"%s\"", prepared->warnings[i]);
    const int status = prepared->awaiting_model ? run_awaiting_model(config, prepared, log)
                                                : daemon_run(config, prepared, log, &extras);
    return status == DAEMON_STRUCK ? run_struck(config, log) : status;
}

/* ---- the owner colocated with a node that trains ---- */

/* SGP_NODE_NONE: the topology file names no owner that is co-located with this node. */
static uint32_t owner_of(const struct prepared *prepared)
{
    return sgp_topology_colocated_owner(prepared->topology, prepared->self);
}

/* The child process. It must not use anything of the other node. */
static int run_owner(const struct config *config, struct prepared *owner, struct prepared *trainer)
{
    prepared_finish(trainer);
    struct log log;
    log_init(&log, config->log_level, config->name);
    return run(config, owner, &log, NULL, &nothing);
}

/* Run both nodes, as they are prepared. The child process ends in this function, too. */
static int run_both(const struct config *config, struct prepared *prepared, struct log *log,
    const struct config *owner_config, struct prepared *owner, const struct opened *opened)
{
    struct sgp_error error = {0};
    struct colocated_owner child;
    /* the child reports errors: its directory is within */
    (void)mkdir(config->state_directory, 0750);
    int code = colocated_owner_fork(&error, &child);
    if (code < 0)
        return fail(&error, log);
    if (code > 0 && opened->directory >= 0)
        (void)close(opened->directory); /* the lock is the parent's */
    if (code > 0)
        return run_owner(owner_config, owner, prepared);
    int status = run(config, prepared, log, &child, opened);
    colocated_owner_end(&child);
    return status;
}

static int run_or_check_both(struct config *config, struct prepared *prepared, struct log *log,
    bool checks, const struct opened *opened)
{
    struct sgp_error error = {0};
    struct config owner_config;
    struct prepared owner;
    if (config_colocated(config, prepared->topology->nodes[owner_of(prepared)].name,
            prepared->model.inputs, &error, &owner_config) < 0)
        return refuse(&error, checks);
    int status = EXIT_STATUS_DONE;
    if (prepare(&owner_config, NULL, &error, &owner) < 0) {
        status = refuse(&error, checks);
    } else {
        owner.blas = prepared->blas;
        status = checks ? check(config, prepared)
                        : run_both(config, prepared, log, &owner_config, &owner, opened);
        struct config there = owner_config; /* its state directory does not exist yet */
        if (access(config->state_directory, F_OK) < 0)
            there.state_directory = config->state_directory;
        status = checks && status == EXIT_STATUS_DONE ? check(&there, &owner) : status;
        prepared_finish(&owner);
    }
    config_finish(&owner_config);
    return status;
}

/* Load OpenBLAS with the kernels that fit, if the model needs its products. --check writes
 * nothing. */
static int fit_blas(const struct config *config, bool check, const struct log *log,
    struct prepared *prepared, struct sgp_error *error)
{
    struct sgp_blas_layer layers[SGP_LAYERS_MAX];
    const bool needed = prepared->settings.precision != SGP_PRECISION_BF16;
    const struct sgp_blas_wish wish = {.directory = check ? NULL : config->state_directory,
        .layers = layers,
        .count =
            needed ? sgp_model_products(&prepared->model, prepared->settings.batch, layers) : 0,
        .threads = prepared->settings.threads,
        .sink = &log->sink};
    return sgp_blas_fit(&wish, error, &prepared->blas);
}

#define GO_ON (-100)

/* Learn which signed file is in use, before anybody is greeted. The state directory is locked from
 * here on, so that no other process stores another version meanwhile. Returns GO_ON, the
 * exit status, or DAEMON_AGAIN. */
static int learn_rollout(const struct config *config, struct log *log, struct opened *opened)
{
    struct sgp_error error = {0};
    if (config->administrators[0] == '\0')
        return GO_ON;
    opened->directory = state_directory_open(config->state_directory, &error);
    const int code =
        opened->directory < 0 ? opened->directory : awaiting_rollout_ask(config, log, &error);
    if (code < 0)
        return fail(&error, log);
    if (code == 0)
        return GO_ON;
    early_stop_begin(true);
    return run_struck(config, log);
}

/* Returns GO_ON, or the exit status. */
static int agree_on_scaling(const struct config *config, struct log *log, struct opened *ret_opened)
{
    struct sgp_error error = {0};
    bool began;
    if (!scaling_is_of_fleet(config))
        return GO_ON;
    early_stop_begin(true);
    const int code = awaiting_scaling_wait(config, log, &began, ret_opened, &error);
    if (code == 0)
        return GO_ON;
    if (code < 0 && !began)
        return refuse(&error, false);
    if (code < 0)
        return fail(&error, log);
    sgp_log(&log->sink, SGP_LEVEL_INFO, "event=end status=0");
    return EXIT_STATUS_DONE;
}

/* Prepare with a cache of rows in the state directory, which is locked first. --check uses what is
 * there. If it must parse a large table, it does so into a file that has no name, in the directory
 * above if the state directory is not there yet. */
static int prepare_rows(const struct config *config, bool check, const struct log *log,
    struct opened *opened, struct sgp_error *error, struct prepared *prepared)
{
    char above[CONFIG_TEXT_BYTES];
    struct sgp_data_cache cache = {.directory = config->state_directory,
        .keep = !check,
        .least_bytes = SGP_DATA_CACHE_LEAST_BYTES,
        .sink = check ? NULL : &log->sink};
    if (check && access(config->state_directory, F_OK) < 0) {
        (void)snprintf(above, sizeof above, "%s", config->state_directory);
        cache.directory = dirname(above);
    }
    if (!check && opened->directory < 0 && prepare_wants_cache(config)) {
        opened->directory = state_directory_open(config->state_directory, error);
        if (opened->directory < 0)
            return opened->directory;
    }
    return prepare(config, check || opened->directory >= 0 ? &cache : NULL, error, prepared);
}

/* From now until a loop listens, an order to stop ends the process. An order that came before does
 * so here. */
static void stop_at_once(const struct options *options)
{
    if (ends_soon(options))
        return;
    early_stop_begin(false);
    early_stop_release();
}

static int run_or_check(const struct options *options, struct config *config)
{
    struct log log;
    struct prepared prepared;
    struct sgp_error error = {0};
    log_init(&log, config->log_level, config->name);
    const bool brief = ends_soon(options);
    struct opened opened = nothing;
    if (unit_sees(config, &error) < 0)
        return refuse(&error, options->check);
    int ended = brief ? GO_ON : learn_rollout(config, &log, &opened);
    if (!brief && ended == GO_ON)
        ended = agree_on_scaling(config, &log, &opened);
    if (ended != GO_ON)
        return ended;
    stop_at_once(options);
    if (prepare_rows(config, brief, &log, &opened, &error, &prepared) < 0) {
        if (opened.socket >= 0)
            (void)unlink(config->socket);
        return refuse(&error, options->check);
    }
    int code = fit_blas(config, brief, &log, &prepared, &error);
    if (!brief)
        early_stop_begin(true);
    if (code == 0 && options->tune != NULL) /* its steps are not private */
        code = privacy_account_check_absent(config->state_directory, &error);
    if (code == 0 && options->tune != NULL)
        code = tune(&prepared, options->tune, options->output, &error);
    if (code == 0 && options->states)
        code = state_spent(config, &prepared, options->spent, &error);
    int status = code < 0                                   ? refuse(&error, options->check)
                 : options->tune != NULL || options->states ? EXIT_STATUS_DONE
                 : owner_of(&prepared) != SGP_NODE_NONE
                     ? run_or_check_both(config, &prepared, &log, options->check, &opened)
                 : options->check ? check(config, &prepared)
                                  : run(config, &prepared, &log, NULL, &opened);
    prepared_finish(&prepared);
    return status;
}

int main(int count, char **arguments)
{
    struct options options = {0};
    int status = parse_options(count, arguments, &options);
    if (status >= 0)
        return status;
    if (!ends_soon(&options)) {
        early_stop_begin(false);
        /* SIGHUP reloads the topology, which has not been read yet */
        (void)signal(SIGHUP, SIG_IGN);
    }
    struct sgp_error error = {0};
    struct config config;
    if (config_load(options.file, &error, &config) < 0)
        return refuse(&error, options.check);
    status = run_or_check(&options, &config);
    config_finish(&config);
    if (status != DAEMON_AGAIN)
        return status;
    stop_at_once(&options);
    state_directory_hand_over(true);
    (void)execv("/proc/self/exe", arguments);
    (void)fprintf(stderr, "sgpd: cannot start anew after a reset: %s\n", strerror(errno));
    return EXIT_STATUS_FAILED;
}
