/* SPDX-License-Identifier: Apache-2.0 */
/* The account of the running node; see privacy.h. */
#include "privacy.h"

#include "notes.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

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

static double epsilon_now(const struct daemon *daemon)
{
    return sgp_privacy_epsilon(&daemon->privacy.counted.cost, daemon->config->privacy_delta);
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
    if (spent && !daemon->privacy_spent)
        sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
            "event=privacy_spent epsilon=%.6g of=%.6g steps=%" PRIu64
            " text=\"this node takes no more steps, and goes on mixing\"",
            epsilon_now(daemon), daemon->config->privacy_epsilon, daemon->privacy.counted.steps);
    daemon->privacy_spent = spent;
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

void privacy_view(const struct daemon *daemon, struct view_status *view)
{
    const struct config *config = daemon->config;
    view->privacy_epsilon = NAN;
    view->private_steps = daemon->prepared->privacy.on;
    if (!view->private_steps)
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
