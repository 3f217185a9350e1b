/* SPDX-License-Identifier: Apache-2.0 */
/* Failures with their line, and the attributes of libcgraph's objects. */
#include "topology/dot_reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int sgp_dot_fail_at(struct sgp_dot_reader *r, uint32_t line, int code, const char *format, ...)
{
    char text[SGP_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return sgp_fail(r->error, code, "%s:%u: %s", r->text.name, line, text);
}

int sgp_dot_fail_memory(struct sgp_dot_reader *r)
{
    return sgp_fail(r->error, -ENOMEM, "%s: no memory to read it", r->text.name);
}

const char *sgp_dot_attribute(Agraph_t *graph, int kind, void *object, const char *name)
{
    Agsym_t *symbol = agattr(graph, kind, (char *)(uintptr_t)name, NULL);
    return symbol ? agxget(object, symbol) : "";
}

/* A digraph without a name gets a name that begins with '%'. */
void sgp_dot_phase_name(const struct sgp_dot_reader *r, uint32_t g, char name[SGP_NAME_BYTES])
{
    const char *given = agnameof(r->graphs[g]);
    if (given && *given && *given != '%')
        (void)snprintf(name, SGP_NAME_BYTES, "%s", given);
    else
        (void)snprintf(name, SGP_NAME_BYTES, "phase%u", g);
}

uint32_t sgp_dot_line_of(const struct sgp_dot_reader *r, uint32_t g, const char *name)
{
    return sgp_scan_line(&r->text, g, name, NULL, 1);
}

int sgp_dot_read_truth(struct sgp_dot_reader *r, uint32_t g, const char *phase, int kind,
    void *object, const char *name, bool usual, bool *ret_truth)
{
    const char *text = sgp_dot_attribute(r->graphs[g], kind, object, name);
    *ret_truth = *text ? strcmp(text, "true") == 0 : usual;
    if (!*text || *ret_truth || strcmp(text, "false") == 0)
        return 0;
    const char *what = kind == AGNODE ? "node" : "digraph";
    return sgp_dot_fail_at(r, sgp_scan_line(&r->text, g, kind == AGNODE ? phase : name, NULL, 1),
        SGP_E_TOPOLOGY, "%s %s: %s=\"%.40s\" is neither true nor false; write %s=%s", what, phase,
        name, text, name, usual ? "false" : "true");
}

bool sgp_dot_parse_parts(const char *text, uint16_t *ret_part, uint16_t *ret_count)
{
    char *end;
    if (!(*text >= '0' && *text <= '9'))
        return false;
    unsigned long first = strtoul(text, &end, 10), last = first;
    if (*end == '-' && end[1] >= '0' && end[1] <= '9')
        last = strtoul(end + 1, &end, 10);
    if (*end != '\0' || last < first || last >= SGP_SLICES_MAX)
        return false;
    *ret_part = (uint16_t)first;
    *ret_count = (uint16_t)(last - first + 1);
    return true;
}
