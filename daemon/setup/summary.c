/* SPDX-License-Identifier: Apache-2.0 */
/* The output of `sgpd --check`: what will run, its memory term by term, and every warning. */
#include "prepare.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void print_bytes(FILE *stream, const char *name, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double count = (double)bytes;
    size_t unit = 0;
    for (; count >= 1024 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        count /= 1024;
    (void)fprintf(stream, "  %-28s %10.*f %s\n", name, unit > 0, count, units[unit]);
}

static void print_topology(FILE *stream, const struct prepared *p)
{
    const struct sgp_analysis *analysis = &p->analysis;
    (void)fprintf(stream,
        "topology   %s: %" PRIu32 " node%s, %" PRIu32 " phase%s, %" PRId64 " round%s per cycle\n",
        prepared_file(p), analysis->nodes, analysis->nodes == 1 ? "" : "s", analysis->phases,
        analysis->phases == 1 ? "" : "s", analysis->rounds_per_cycle,
        analysis->rounds_per_cycle == 1 ? "" : "s");
    if (analysis->owner)
        (void)fprintf(stream, "           nothing is averaged: %s\n",
            sgp_topology_has_token(p->topology) ? "owning is a token"
            : p->topology->owners > 1           ? "parts of the vector have owners"
                                                : "the vector has an owner");
    else if (analysis->exact_average_rounds != SGP_ROUND_NONE)
        (void)fprintf(stream, "           averages exactly in %" PRId64 " rounds\n",
            analysis->exact_average_rounds);
    else if (!isnan(analysis->contraction_per_cycle))
        (void)fprintf(stream, "           disagreement shrinks by %.3g per cycle\n",
            analysis->contraction_per_cycle);
}

/* What the guard bears, and what it does not. */
static void print_guard(FILE *stream, const struct prepared *p)
{
    if (!(p->config->guard > 0))
        return;
    (void)fprintf(stream,
        "guard      of %.3g: with it at every node, this file bears %" PRIu32
        " broken or lying member%s\n"
        "           not if the nodes' labels differ much; not against one that keeps what it is "
        "given\n",
        p->config->guard, p->analysis.guard_liars, p->analysis.guard_liars == 1 ? "" : "s");
}

/* For values of similar magnitude. A block of zeros, or of extremely large values, takes another
 * number of bytes. */
static uint64_t share_bytes(const struct prepared *p, const struct sgp_chooser *chooser)
{
    float ones[SGP_BLOCK_VALUES], rest[SGP_BLOCK_VALUES];
    struct sgp_chosen chosen;
    uint64_t bytes = 0;
    for (uint64_t first = 0, count; first < p->parameters; first += count) {
        count = p->parameters - first < SGP_BLOCK_VALUES ? p->parameters - first : SGP_BLOCK_VALUES;
        for (uint32_t i = 0; i < SGP_BLOCK_VALUES; i++) {
            ones[i] = 1;
            rest[i] = 0;
        }
        sgp_choose(chooser, &p->tensors, 0, ones, rest, first, count, &chosen);
        bytes += chosen.bytes;
    }
    return bytes;
}

static void print_shares(FILE *stream, const struct prepared *p)
{
    bool copies = prepared_codes_copies(p);
    const struct sgp_chooser *chooser = copies ? &p->config->copies : &p->config->compression;
    if (p->awaiting_model)
        return;
    (void)fprintf(stream, copies ? "copies\n" : "shares\n");
    if (chooser->compressor != SGP_COMPRESSOR_NONE && chooser->choice != SGP_CHOICE_ADAPTIVE)
        print_bytes(stream, chooser->word, share_bytes(p, chooser));
    print_bytes(stream, "plain", share_bytes(p, &(struct sgp_chooser){0}));
}

void prepared_rows_text(const struct prepared *p, char text[SGP_TEXT_BYTES])
{
    char shards[SGP_SHARDS_TEXT_BYTES];
    if (p->config->kind == CONFIG_ATTACHED) {
        (void)snprintf(text, SGP_TEXT_BYTES, "the program's");
        return;
    }
    const struct sgp_topology_node *self = &p->topology->nodes[p->self];
    if (p->data.train == NULL && sgp_topology_owns_parts(p->topology, p->self)) {
        (void)snprintf(text, SGP_TEXT_BYTES, "none: it owns parts %u to %u of %u", self->own_part,
            self->own_part + self->own_part_count - 1u, p->topology->slices);
        return;
    }
    if (p->data.train == NULL) {
        (void)snprintf(
            text, SGP_TEXT_BYTES, self->owns ? "none: it owns the vector" : "none: a relay");
        return;
    }
    if (p->config->shards.kind == SGP_SHARD_NONE) {
        (void)snprintf(text, SGP_TEXT_BYTES, "%" PRIu64 " rows (all of the file: shards = none)",
            p->data.own_rows);
        return;
    }
    sgp_shards_text(&p->config->shards, shards);
    (void)snprintf(text, SGP_TEXT_BYTES,
        "%" PRIu64 " of %" PRIu64 " rows (%s, part %" PRIu32 " of %" PRIu32 ")", p->data.own_rows,
        p->data.file_rows, shards, prepared_rank(p) + 1, sgp_topology_trainers(p->topology));
}

/* In as many lines as the schedule needs. */
static void print_schedule(FILE *stream, const struct prepared *p)
{
    const struct sgp_schedule *schedule = &p->settings.schedule;
    const struct config *config = p->config;
    uint32_t most = sgp_schedule_batch(schedule, (uint32_t)config->batch, p->epochs);
    (void)fprintf(stream, "schedule   %s, learning rate %.6g", sgp_schedule_word(schedule->kind),
        schedule->learning_rate);
    if (config->base_batch > 0)
        (void)fprintf(stream,
            ": %.6g for %" PRIu64 " rows a step, here %" PRIu64 " of %" PRIu32 " nodes",
            config->learning_rate, config->base_batch, config->batch,
            sgp_topology_trainers(p->topology));
    if (schedule->warmup_epochs > 0)
        (void)fprintf(stream, "\n           warm-up over %.6g epochs from %.6g",
            schedule->warmup_epochs, schedule->warmup_fraction * schedule->learning_rate);
    if (most > config->batch)
        (void)fprintf(stream, "\n           the batch grows from %" PRIu64 " to %" PRIu32 " rows",
            config->batch, most);
    (void)fputc('\n', stream);
}

/* The noise, or a rule that leaves noise out. */
static void print_noise(FILE *stream, const struct prepared *p)
{
    const struct sgp_optimizer_settings *optimizer = &p->settings.optimizer;
    if (sgp_optimizer_uses(optimizer->kind) & SGP_USES_NOISE && optimizer->noise_fraction < 1)
        (void)fprintf(stream, "optimizer  %s, with %.4g of the noise of this node's gradients\n",
            sgp_optimizer_name(optimizer->kind), optimizer->noise_fraction);
}

/* How label columns of numbers are scaled. */
static void print_targets(FILE *stream, const struct prepared *p)
{
    const struct sgp_loss_settings *settings = &p->model.loss_settings;
    for (uint32_t i = 0; settings->target_scales && i < settings->target_scale_count; i++) {
        const struct sgp_target_scale *scale = &settings->target_scales[i];
        char name[81];
        (void)snprintf(name, sizeof name, "%s", scale->name);
        sgp_text_clean(name);
        (void)fprintf(stream, "%-10s (%s - %.6g) / %.6g is what the model learns\n",
            i == 0 ? "label" : "", name, scale->mean, scale->deviation);
    }
}

/* What the steps of this node tell about a row. */
static void print_privacy(FILE *stream, const struct prepared *p)
{
    const struct prepared_privacy *privacy = &p->privacy;
    const struct config *config = p->config;
    if (!privacy->on)
        return;
    (void)fprintf(stream,
        "privacy    epsilon %.4g of %.4g, delta %.4g, for each row, after all %" PRIu64 " steps\n"
        "           a step takes each row with probability %.4g, clips its gradient to %.4g,\n"
        "           and adds noise of %.4g times that\n",
        privacy->epsilon, config->privacy_epsilon, config->privacy_delta, privacy->steps,
        privacy->chance, config->privacy_clip, privacy->noise);
}

/* How the best model is chosen. */
static void print_best(FILE *stream, const struct prepared *p)
{
    const enum sgp_best_measure measure = prepared_keeps_best(p);
    const struct sgp_best_times times = prepared_best_times(p);
    if (measure == 0)
        return;
    (void)fprintf(stream,
        "best       by %s of all nodes, every %" PRId64 " rounds, %" PRId64
        " of them without steps",
        sgp_best_measure_name(measure), sgp_best_period(&times), times.cycle);
    if (p->config->best_patience > 0)
        (void)fprintf(
            stream, "; stops after %" PRIu64 " without a better one", p->config->best_patience);
    (void)fprintf(stream, "\n");
}

static void print_local(FILE *stream, const struct prepared *p)
{
    char local[SGP_MODEL_LOCAL_BYTES];
    if (p->model.local_parameters == 0)
        return;
    sgp_model_local_text(&p->model, local);
    (void)fprintf(stream, "local      %s: %" PRIu64 " parameters, which stay on this node\n", local,
        p->model.local_parameters);
}

void prepared_print(FILE *stream, const struct prepared *p)
{
    char layers[SGP_MODEL_TEXT_BYTES] = "";
    char rows[SGP_TEXT_BYTES];
    if (p->config->kind == CONFIG_LAYERED)
        sgp_model_text(&p->model, layers);
    prepared_rows_text(p, rows);
    bool listens = strcmp(p->config->listen, SGP_ADDRESS_NONE) != 0;
    (void)fprintf(stream, "node       %s (%" PRIu32 " of %" PRIu32 "), %s%s\n", p->config->name,
        p->self + 1, p->topology->node_count, listens ? "listens on " : "calls the owners",
        listens ? p->config->listen : "");
    print_topology(stream, p);
    print_guard(stream, p);
    if (p->awaiting_model)
        (void)fprintf(
            stream, "model      comes with the program that attaches to %s\n", p->config->attach);
    else if (p->layout)
        (void)fprintf(stream,
            "model      of a program: %" PRIu32 " tensors, %" PRIu64 " parameters\n",
            p->layout->tensor_count, p->parameters);
    else
        (void)fprintf(
            stream, "model      %s: %" PRIu64 " parameters\n", layers, sgp_model_values(&p->model));
    print_local(stream, p);
    (void)fprintf(stream, "data       %s\n", rows);
    if (p->data.train)
        (void)fprintf(stream, "           %" PRIu64 " rows of %" PRIu32 " features to train on, ",
            p->data.train->rows, p->data.train->features);
    if (!p->data.train)
        ;
    else if (p->data.test)
        (void)fprintf(stream, "%" PRIu64 " to test on\n", p->data.test->rows);
    else
        (void)fprintf(stream, "none to test on\n");
    if (p->scaling_alone)
        (void)fprintf(stream,
            "scaling    of these rows alone, for this check; the nodes agree on it when they "
            "start\n");
    print_targets(stream, p);
    char blas[SGP_BLAS_TEXT_BYTES];
    sgp_blas_text(&p->blas, blas);
    (void)fprintf(stream, "blas       %s\n", blas);
    if (p->settings.precision == SGP_PRECISION_BF16)
        (void)fprintf(stream, "precision  products of bf16 operands, float32 sums; by oneDNN\n");
    if (p->data.train) {
        (void)fprintf(stream,
            "training   %" PRId64 " rounds of %" PRIu64 " steps, %.6g epochs of %" PRIu64
            " steps\n",
            p->rounds, p->config->local_steps, p->epochs, p->steps_per_epoch);
        print_schedule(stream, p);
        print_noise(stream, p);
        print_privacy(stream, p);
        print_best(stream, p);
    }
    print_shares(stream, p);
    (void)fprintf(stream, "memory\n");
    for (uint32_t i = 0; i < p->term_count; i++)
        print_bytes(stream, p->terms[i].name, p->terms[i].bytes);
    print_bytes(stream, "sum", p->memory_bytes);
    if (p->data.cache_bytes > 0) {
        (void)fprintf(stream, "disk\n");
        print_bytes(stream, "rows, mapped from there", p->data.cache_bytes);
    }
    for (uint32_t i = 0; i < p->warning_count; i++)
        (void)fprintf(stream, "warning: %s\n", p->warnings[i]);
}
