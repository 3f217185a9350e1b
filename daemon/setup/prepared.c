/* SPDX-License-Identifier: Apache-2.0 */
/* The accounts of a node that is being prepared: warnings, and its memory term by term. */
#include "prepare.h"

#include "attach/shared.h"
#include "base/text.h"
#include "util/memory.h"

#include "sgp/fleet.h"
#include "sgp/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

void prepared_warn(struct prepared *p, const char *format, ...)
{
    if (p->warning_count == PREPARE_WARNINGS_MAX)
        return;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(p->warnings[p->warning_count], sizeof p->warnings[0], format, arguments);
    va_end(arguments);
    sgp_text_clean(p->warnings[p->warning_count++]);
}

/* Memory. */

static void add_term(struct prepared *p, const char *name, uint64_t bytes)
{
    if (bytes == 0)
        return;
    sgp_assert(p->term_count < PREPARE_TERMS_MAX);
    p->terms[p->term_count++] = (struct prepare_term){name, bytes};
    p->memory_bytes += bytes;
}

static uint64_t rows_bytes(const struct sgp_dataset *dataset)
{
    return dataset ? sgp_dataset_memory(dataset) : 0;
}

uint32_t prepared_report_bytes(const struct prepared *p)
{
    const enum sgp_loss loss = p->model.loss;
    if (p->config->kind == CONFIG_ATTACHED || p->model.outputs > SGP_REPORT_OUTPUTS_MAX)
        return 0;
    const uint32_t classes = sgp_report_bytes(sgp_loss_measures(loss, true), p->model.outputs);
    const uint32_t numbers = sgp_report_bytes(sgp_loss_measures(loss, false), p->model.outputs);
    return classes > numbers ? classes : numbers;
}

static uint64_t evaluation_bytes(const struct prepared *p)
{
    const struct sgp_dataset *rows = p->data.test;
    if (rows == NULL || p->model.outputs > SGP_REPORT_OUTPUTS_MAX)
        return 0;
    return sgp_measures_bytes(
        sgp_loss_measures(p->model.loss, rows->classes > 0), p->model.outputs);
}

enum sgp_best_measure prepared_keeps_best(const struct prepared *p)
{
    return (enum sgp_best_measure)(p->config->keep_best - 1);
}

bool prepared_copies_best(const struct prepared *p)
{
    return prepared_keeps_best(p) != 0 && p->parameters <= PREPARED_COPIED_MAX;
}

/* A measurement and a save have a vector each while they wait, a running job has two, and the job
 * of a copy has one. */
static uint64_t best_bytes(const struct prepared *p)
{
    const uint64_t vector = sgp_model_values(&p->model) * sizeof(float);
    if (prepared_keeps_best(p) == 0)
        return 0;
    if (!prepared_copies_best(p))
        return 4 * vector;
    return 5 * vector + PREPARED_COPY_TEXTS * PREPARED_COPY_DIGITS * p->parameters;
}

bool prepared_gives_updates(const struct prepared *p)
{
    return sgp_topology_has_copy(p->topology, p->self) && !sgp_topology_has_token(p->topology);
}

bool prepared_takes_outer_steps(const struct prepared *p)
{
    const struct sgp_topology_node *self = &p->topology->nodes[p->self];
    return p->topology->owner != SGP_NODE_NONE ? self->owns : !self->relay;
}

bool prepared_codes_copies(const struct prepared *p)
{
    return p->topology->nodes[p->self].owns && !sgp_topology_has_token(p->topology) &&
           sgp_method_waits(p->method) && p->config->copies.compressor != SGP_COMPRESSOR_NONE;
}

bool prepared_keeps_copy(const struct prepared *p)
{
    return sgp_topology_has_copy(p->topology, p->self) || prepared_codes_copies(p);
}

void prepared_sum_memory(struct prepared *p)
{
    p->term_count = 0;
    p->memory_bytes = 0;
    uint64_t vector = p->parameters * sizeof(float);
    bool attached = p->config->kind == CONFIG_ATTACHED;
    uint64_t rows = rows_bytes(p->data.train) + rows_bytes(p->data.test);
    add_term(p, "parameters", vector);
    add_term(p, "gradient", attached ? 0 : vector);
    bool halves =
        !attached && p->data.train != NULL && sgp_optimizer_needs_deviation(&p->settings.optimizer);
    add_term(p, "deviation of the gradient", halves ? vector : 0);
    add_term(p, "kept by the optimizer",
        attached ? 0 : sgp_optimizer_vectors(&p->settings.optimizer) * vector);
    add_term(p, "further pass of a private step", p->privacy.on ? vector : 0);
    uint64_t local = p->model.local_parameters * sizeof(float);
    add_term(p, "local layers",
        attached ? 0 : local * (2 + halves + sgp_optimizer_vectors(&p->settings.optimizer)));
    add_term(p, "given to the program", attached ? vector : 0);
    add_term(p, "shared with the program", attached ? vector : 0);
    add_term(p, "outer step", p->settings.outer.kind == SGP_OUTER_NONE ? 0 : 2 * vector);
    add_term(p, "copy of the owner's parameters",
        sgp_topology_has_copy(p->topology, p->self) ? vector : 0);
    add_term(p, "copy that its workers have", prepared_codes_copies(p) ? vector : 0);
    bool chooses =
        prepared_gives_updates(p) && p->config->compression.compressor != SGP_COMPRESSOR_NONE;
    add_term(p, "left out of updates", chooses ? vector : 0);
    add_term(p, "snapshots", p->needs.snapshots * vector);
    /* Of each buffer, at most the bytes of the largest share are touched. If an estimate is
     * requested, it is whole, except an owner's. */
    uint64_t share = (vector * p->needs.share_parts + p->needs.slices - 1) / p->needs.slices;
    bool whole = p->needs.share_parts < p->needs.slices && p->topology->owner == SGP_NODE_NONE;
    add_term(p, "receive buffers", p->needs.receives * share + (whole ? vector : 0));
    add_term(p, "rows in the network", p->workspace_bytes);
    add_term(p, "training rows", rows_bytes(p->data.train));
    add_term(p, "test rows", rows_bytes(p->data.test));
    p->fresh_bytes = p->memory_bytes - rows - (attached ? vector : 0);
    p->address_bytes = p->fresh_bytes + p->needs.receives * (vector - share) - (whole ? vector : 0);
    add_term(p, "the best model, at most", best_bytes(p));
    add_term(p, "an evaluation", evaluation_bytes(p));
    add_term(p, "rows of the fleet", sgp_fleet_bytes(p->topology->node_count, p->needs.links));
    add_term(p, "signed files, at most", p->rollout != NULL ? SIGNED_FILE_MEMORY : 0);
    add_term(p, "reports of nodes, at most",
        (uint64_t)prepared_report_bytes(p) * sgp_topology_trainers(p->topology));
}

void prepared_warn_of_memory(struct prepared *p)
{
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGE_SIZE);
    if (p->memory_bytes > machine)
        prepared_warn(p,
            "the node takes %.1f MiB of memory, and this machine has %.1f; make [model] layers or "
            "[train] batch smaller",
            (double)p->memory_bytes / (1 << 20), (double)machine / (1 << 20));
}

/* The bound that leaves too little memory, or the tightest bound. */
static struct memory_bound bound_of(const struct prepared *p, uint64_t *ret_bytes)
{
    struct memory_bound left = memory_left(), address = memory_address_left();
    bool by_address = p->fresh_bytes <= left.bytes && address.bytes != UINT64_MAX;
    *ret_bytes = by_address ? p->address_bytes : p->fresh_bytes;
    return by_address ? address : left;
}

int prepared_no_memory(const struct prepared *p, struct sgp_error *error)
{
    uint64_t bytes;
    struct memory_bound left = bound_of(p, &bytes);
    return sgp_fail(error, -ENOMEM,
        "out of memory: a model of %" PRIu64
        " parameters takes %.1f MiB here, and %.1f MiB are left %s; %s, or give sgpd more memory",
        p->parameters, (double)bytes / (1 << 20), (double)left.bytes / (1 << 20), left.where,
        p->layout != NULL ? "attach a smaller model"
                          : "make [model] layers or [train] batch smaller");
}

int prepared_check_memory(const struct prepared *p, struct sgp_error *error)
{
    uint64_t bytes;
    struct memory_bound left = bound_of(p, &bytes);
    return bytes <= left.bytes ? 0 : prepared_no_memory(p, error);
}

/* Within an exact cycle, a node that owns a part passes it to all other nodes. The parts that
 * coding leaves out add up. */
#define CYCLE_NODES 16u

static void place_of(const struct prepared *p, char place[CONFIG_TEXT_BYTES + 64])
{
    (void)snprintf(place, CONFIG_TEXT_BYTES + 64, "%s:%u: [network] compression", p->config->file,
        p->config->lines[CONFIG_ID_COMPRESSION]);
}

bool prepared_warn_of_parts(struct prepared *p)
{
    char place[CONFIG_TEXT_BYTES + 64];
    bool idle = p->config->compression.compressor != SGP_COMPRESSOR_NONE && !p->awaiting_model &&
                sgp_topology_is_exact(p->topology, 0, NULL) &&
                !sgp_topology_is_blocked(p->topology, p->parameters);
    place_of(p, place);
    if (idle)
        prepared_warn(p,
            "%s has no effect: a part of %" PRIu64 " parameters in %u has fewer than %u values, "
            "and goes plain in an exact cycle",
            place, p->parameters, p->topology->slices, SGP_PART_BLOCKED_LEAST);
    return idle;
}

void prepared_warn_of_compression(struct prepared *p)
{
    const struct config *config = p->config;
    enum sgp_compressor compressor = config->compression.compressor;
    bool exact = sgp_topology_is_exact(p->topology, 0, NULL);
    char place[CONFIG_TEXT_BYTES + 64];
    if (compressor == SGP_COMPRESSOR_NONE || prepared_warn_of_parts(p))
        return;
    place_of(p, place);
    if (exact && sgp_compressor_error(compressor) > sgp_compressor_error(SGP_COMPRESSOR_BF16) &&
        p->topology->node_count > CYCLE_NODES)
        prepared_warn(p,
            "%s: in exact cycles of more than %u nodes the error of %s adds up; fp16 is finer",
            place, CYCLE_NODES, config->compression.word);
    else if (compressor == SGP_COMPRESSOR_INT4 && !prepared_gives_updates(p))
        prepared_warn(p,
            "%s: int4 leaves the models of the fleet further apart while they train; int4:64 and "
            "int8 are finer (docs/COMPRESSION.md)",
            place);
}

int prepared_name_tensors(struct prepared *p, struct sgp_error *error)
{
    uint32_t count = p->layout ? p->layout->tensor_count : SGP_MODEL_TENSORS_MAX;
    p->ends = calloc(count > 0 ? count : 1, sizeof *p->ends);
    if (p->ends == NULL)
        return prepared_no_memory(p, error);
    if (p->layout)
        sgp_model_file_tensors(p->layout, shared_values_from(p->layout), p->ends);
    else
        count = sgp_model_ends(&p->model, false, p->ends);
    p->tensors = (struct sgp_tensors){.ends = p->ends, .count = count};
    return 0;
}
