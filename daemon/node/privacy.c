/* SPDX-License-Identifier: Apache-2.0 */
/* The account of the running node; see privacy.h. */
#include "privacy.h"

#include "notes.h"
#include "store/claim_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

int privacy_open(struct daemon *daemon, struct sgp_error *error)
{
    const struct prepared *prepared = daemon->prepared;
    const char *directory = daemon->config->state_directory;
    if (prepared->privacy.on)
        return privacy_account_open(&daemon->privacy, directory, daemon->config->name, error);
    return prepared->topology->nodes[prepared->self].relay
               ? 0
               : privacy_account_check_absent(directory, error);
}

/* ---- claims of a program ---- */

/* A key of the configuration by which a measure leaves the node whatever the program claims. */
static int check_configuration(const struct config *config, struct sgp_error *error)
{
    return isnan(config->stop_at_accuracy)
               ? 0
               : sgp_fail(error, SGP_E_CONFIG,
                     "%s:%u: with a claim of privacy the accuracy on this node's rows may not stop "
                     "others; remove [train] stop_at_accuracy",
                     config->file, config->lines[CONFIG_ID_STOP_AT_ACCURACY]);
}

int privacy_recall(struct daemon *daemon, struct sgp_error *error)
{
    const struct config *config = daemon->config;
    if (config->kind != CONFIG_ATTACHED)
        return 0;
    const int code = claim_file_read(config->state_directory, error, &daemon->claim);
    daemon->claimed = code > 0;
    return code > 0 ? check_configuration(config, error) : code;
}

/* A claim that may follow the former one. */
static int check_claim(
    const struct daemon *daemon, const struct sgp_claim *claim, struct sgp_error *error)
{
    const struct sgp_claim *former = &daemon->claim;
    if (!daemon->claimed || (claim->epsilon >= former->epsilon && claim->delta >= former->delta))
        return check_configuration(daemon->config, error);
    return sgp_fail(error, SGP_E_CONFIG,
        "%s: this run claims epsilon %.6g and delta %.6g already, and neither may fall; claim at "
        "least these, or begin another run",
        daemon->config->name, former->epsilon, former->delta);
}

static int take_claim(struct daemon *daemon, const char *text, struct sgp_error *error)
{
    struct sgp_claim claim;
    int code = sgp_claim_read(text, error, &claim);
    if (code == 0)
        code = check_claim(daemon, &claim, error);
    const bool news = !daemon->claimed || memcmp(&claim, &daemon->claim, sizeof claim) != 0;
    if (code == 0 && news)
        code = claim_file_write(daemon->config->state_directory, &claim, error);
    if (code < 0)
        return code;
    daemon->claim = claim;
    daemon->claimed = true;
    return 0;
}

int privacy_claim(
    struct daemon *daemon, const char *program, const char *text, struct sgp_error *error)
{
    char said[SGP_CLAIM_TEXT_BYTES];
    const int code = take_claim(daemon, text, error);
    sgp_claim_write(&daemon->claim, said);
    if (code < 0)
        sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
            "event=claim_refused program=\"%s\" reason=\"%s\"", program, error->text);
    else
        sgp_log(&daemon->log->sink, SGP_LEVEL_INFO,
            "event=claim program=\"%s\" %s text=\"the program claims this privacy, and sgpd "
            "cannot verify it\"",
            program, said);
    return code;
}

bool privacy_withholds(const struct daemon *daemon)
{
    return daemon->prepared->privacy.on || daemon->claimed;
}

void privacy_tell(const struct daemon *daemon, struct sgp_fleet_row *row)
{
    const struct config *config = daemon->config;
    const struct prepared *prepared = daemon->prepared;
    const bool relay = prepared->topology->nodes[prepared->self].relay; /* it has no rows of data */
    row->promised = relay ? SGP_FLEET_PROMISED_UNKNOWN : SGP_FLEET_PROMISED_NONE;
    row->promised_epsilon = row->promised_delta = (double)NAN;
    if (prepared->privacy.on) {
        row->promised = SGP_FLEET_PROMISED_COUNTED;
        row->promised_epsilon = config->privacy_epsilon;
        row->promised_delta = config->privacy_delta;
    } else if (daemon->claimed) {
        row->promised = SGP_FLEET_PROMISED_CLAIMED;
        row->promised_epsilon = daemon->claim.epsilon;
        row->promised_delta = daemon->claim.delta;
    }
}

/* ---- counted steps ---- */

static double epsilon_now(const struct daemon *daemon)
{
    return sgp_privacy_epsilon(&daemon->privacy.counted.cost, daemon->config->privacy_delta);
}

static void set_spent(struct daemon *daemon, bool spent)
{
    if (spent && !daemon->privacy_spent)
        sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
            "event=privacy_spent epsilon=%.6g of=%.6g steps=%" PRIu64
            " text=\"this node takes no more steps, and goes on mixing\"",
            epsilon_now(daemon), daemon->config->privacy_epsilon, daemon->privacy.counted.steps);
    daemon->privacy_spent = spent;
}

/* Whether the run's latest step was left out. The trainer's position stays where steps end, and
 * each step takes it to the node's turn. */
static bool has_left_out(const struct daemon *daemon)
{
    struct sgp_trainer *trainer = daemon->prepared->trainer;
    const struct ledger *ledger = &daemon->ledger; /* nothing was committed since it was opened */
    struct sgp_trainer_state state = {0};
    trainer->methods->state(trainer, &state);
    const uint64_t due =
        ledger->found ? (uint64_t)ledger->record.turns * daemon->config->local_steps : 0;
    return sgp_state_counter(&state, SGP_STATE_STEPS) < due;
}

void privacy_begin(struct daemon *daemon)
{
    const struct prepared *prepared = daemon->prepared;
    const sgp_round left = prepared->rounds - sgp_node_round(daemon->node);
    const uint64_t steps = left > 0 ? (uint64_t)left * daemon->config->local_steps : 0;
    const struct sgp_privacy_cost *spent = &daemon->privacy.counted.cost;
    char text[SGP_TEXT_BYTES];
    if (!prepared->privacy.on)
        return;
    if (prepared_lacks_epsilon(prepared, spent, steps, text))
        sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING, "event=warning text=\"%s\"", text);
    set_spent(daemon, has_left_out(daemon) && prepared_lacks_epsilon(prepared, spent,
                                                  daemon->config->local_steps, text));
}

#define DISK_ERROR "privacy:"

/* Tell the user why there is no step, or that there are steps again; once each. */
static void tell(struct daemon *daemon, bool may, bool had_failed)
{
    const bool failed = daemon->privacy.failed, spent = !may && !failed;
    if (failed && !had_failed)
        notes_error(daemon,
            DISK_ERROR " the account in %s cannot be written (%s); this node takes no step until "
                       "it can, and goes on mixing",
            daemon->config->state_directory, sgp_strerror(-errno));
    if (had_failed && !failed)
        notes_mended(daemon, DISK_ERROR);
    set_spent(daemon, spent);
}

bool privacy_may_step(struct daemon *daemon, uint32_t steps)
{
    const struct prepared_privacy *privacy = &daemon->prepared->privacy;
    const struct config *config = daemon->config;
    if (!privacy->on)
        return true;
    const bool had_failed = daemon->privacy.failed;
    bool may = privacy_account_charge(
        &daemon->privacy, &privacy->step, steps, config->privacy_epsilon, config->privacy_delta);
    tell(daemon, may, had_failed);
    return may;
}

static void view_claim(const struct daemon *daemon, struct view_status *view)
{
    (void)snprintf(view->privacy, sizeof view->privacy,
        "epsilon %.4g, delta %.4g, for each row of %s, as its program claims. sgpd cannot verify "
        "that: the program clips and adds noise itself",
        daemon->claim.epsilon, daemon->claim.delta, daemon->config->name);
}

void privacy_view(const struct daemon *daemon, struct view_status *view)
{
    const struct config *config = daemon->config;
    view->privacy_epsilon = NAN;
    view->private_steps = privacy_withholds(daemon);
    view->claimed = daemon->claimed;
    view->claim = daemon->claim;
    if (daemon->claimed)
        view_claim(daemon, view);
    if (!daemon->prepared->privacy.on)
        return;
    view->privacy_epsilon = epsilon_now(daemon);
    view->privacy_spent = daemon->privacy_spent;
    (void)snprintf(view->privacy, sizeof view->privacy,
        "epsilon %.4g, delta %.4g, for each row of %s, against all others together, with the "
        "number of rows known: a row against an empty one in its place. Counted: %" PRIu64
        " noisy steps. Not counted: the number of rows, which rows are this node's, the scaling, "
        "measures of held-out rows, choices made by looking at results",
        view->privacy_epsilon, config->privacy_delta, config->name, daemon->privacy.counted.steps);
}

void privacy_close(struct daemon *daemon)
{
    privacy_account_close(&daemon->privacy);
}
