/* SPDX-License-Identifier: Apache-2.0 */
/* The schemas. The core or replay.c checks the values. */
#include "journal/fields.h"

#include "wire/fields.h"

#define CONFIG(member) SGP_FIELD(struct sgp_node_config, #member, member, SGP_SCHEMA_ANY)
static const struct sgp_schema_field config_fields[] = {
    CONFIG(self),
    CONFIG(incarnation),
    CONFIG(seed),
    CONFIG(parameters),
    SGP_PART(struct sgp_node_config, fingerprint, &sgp_fingerprint_schema),
    CONFIG(rounds),
    CONFIG(local_steps),
    CONFIG(overlap),
    CONFIG(backup_neighbours),
    CONFIG(patience),
    CONFIG(step_by_rate),
    CONFIG(compressor),
    CONFIG(final_cycles),
    CONFIG(start),
    CONFIG(weight_least),
    CONFIG(weight_most),
    CONFIG(seeks),
    CONFIG(fresh),
    CONFIG(open),
    CONFIG(one_beginning),
    CONFIG(copies),
    CONFIG(x_digest),
    CONFIG(candidates),
};
const struct sgp_schema sgp_journal_config = SGP_SCHEMA(struct sgp_node_config, config_fields);

#define EVENT(member) SGP_FIELD(struct sgp_event, #member, member, SGP_SCHEMA_ANY)
static const struct sgp_schema_field event_fields[] = {
    EVENT(type),
    EVENT(now),
    EVENT(link.peer),
    EVENT(link.direction),
    EVENT(link.connection),
    EVENT(code),
    EVENT(slot),
    EVENT(bytes),
    EVENT(update),
    SGP_FIELD(struct sgp_event, "rate", rate, SGP_SCHEMA_BITS),
};
const struct sgp_schema sgp_journal_event = SGP_SCHEMA(struct sgp_event, event_fields);

static const struct sgp_schema_field sketch_fields[] = {
    /* infinities and NaNs occur if the model diverged */
    SGP_FIELDS(struct sgp_sketch, "values", values, SGP_SCHEMA_BITS),
};
const struct sgp_schema sgp_journal_sketch = SGP_SCHEMA(struct sgp_sketch, sketch_fields);

#define CHANGE(member) SGP_FIELD(struct sgp_node_change, #member, member, SGP_SCHEMA_ANY)
static const struct sgp_schema_field change_fields[] = {
    CHANGE(self),
    CHANGE(weight_least),
    CHANGE(weight_most),
};
const struct sgp_schema sgp_journal_change = SGP_SCHEMA(struct sgp_node_change, change_fields);
