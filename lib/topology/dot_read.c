/* SPDX-License-Identifier: Apache-2.0 */
/* DOT to topology. libcgraph parses. This file reads the text and hands its digraphs to dot_fleet.c
 * and dot_phase.c, which decide what is a valid topology and report where it is not.
 *
 * One thread at a time, because libcgraph's parser and its error function are global. Reads a whole
 * stream into memory first, at most SGP_DOT_BYTES_MAX. If a stream fails, the result is -errno with
 * its name. */
#include "sgp/dot.h"
#include "topology/build.h"
#include "topology/dot_attributes.h"
#include "topology/dot_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The first complaint of libcgraph since the last parse began. */
static char complaint[SGP_TEXT_BYTES];

static int hear_complaint(char *text)
{
    size_t length = strlen(complaint);
    if (!strchr(complaint, '\n'))
        (void)snprintf(complaint + length, sizeof complaint - length, "%s", text);
    return 0;
}

/* Turns "Error: FILE: syntax error in line 3 near '}'" into "NAME:3: syntax error near '}';
 * ...". */
static int fail_syntax(struct sgp_dot_reader *r)
{
    static const char marker[] = " in line ";
    char *in_line = strstr(complaint, marker);
    char *what = strstr(complaint, "syntax ");
    complaint[strcspn(complaint, "\n")] = '\0';
    if (!in_line || !what || what > in_line)
        return sgp_dot_fail_at(
            r, 1, SGP_E_SYNTAX, "%s; see the examples in topologies/", complaint);
    char *rest = NULL;
    unsigned long line = strtoul(in_line + sizeof marker - 1, &rest, 10);
    *in_line = '\0';
    if (strncmp(rest, " of ", 4) == 0)
        return sgp_dot_fail_at(r, (uint32_t)line, SGP_E_SYNTAX,
            "%s; put names and values that are not plain words in \"quotes\"", what);
    return sgp_dot_fail_at(r, (uint32_t)line, SGP_E_SYNTAX,
        "%s%s; look here and just above for a missing brace, bracket, quote or semicolon", what,
        *rest ? rest : " at the end of the text");
}

/* Read every graph of the text, even after the first complaint. Otherwise the text that libcgraph
 * has buffered would begin the next file. */
static int read_graphs(struct sgp_dot_reader *r)
{
    if (r->text.length == 0)
        return 0;
    FILE *stream = fmemopen((void *)(uintptr_t)r->text.text, r->text.length, "r");
    if (!stream)
        return sgp_dot_fail_memory(r);
    complaint[0] = '\0';
    agusererrf before = agseterrf(hear_complaint);
    agerrlevel_t level = agseterr(AGWARN);
    static char file_name[] = "topology";
    agsetfile(file_name);
    int code = 0;
    for (Agraph_t *graph = agread(stream, NULL); graph; graph = agread(stream, NULL)) {
        Agraph_t **graphs = realloc(r->graphs, (r->graph_count + 1) * sizeof *graphs);
        if (graphs) {
            r->graphs = graphs;
            r->graphs[r->graph_count++] = graph;
        } else {
            agclose(graph);
            code = sgp_dot_fail_memory(r);
        }
    }
    agseterr(level);
    agseterrf(before);
    (void)fclose(stream);
    return complaint[0] ? fail_syntax(r) : code;
}

/* The fleet was refused because of this node: point at the first digraph that names it. */
static int fail_fleet(struct sgp_dot_reader *r, int code, uint32_t node, const char *reason)
{
    uint32_t line = sgp_scan_line(&r->text, 0, NULL, NULL, 1);
    for (uint32_t g = 0; g < r->graph_count && node != SGP_NODE_NONE; g++)
        if (agnode(r->graphs[g], r->nodes[node].name, 0)) {
            line = sgp_scan_line(&r->text, g, r->nodes[node].name, NULL, 1);
            break;
        }
    return sgp_dot_fail_at(r, line, code, "%s", reason);
}

/* Report a misspelt attribute first, because errors that follow from its absence do not help the
 * author. */
static int check_attributes(struct sgp_dot_reader *r)
{
    for (uint32_t g = 0; g < r->graph_count; g++) {
        char phase[SGP_NAME_BYTES];
        struct sgp_dot_stray stray;
        sgp_dot_phase_name(r, g, phase);
        if (sgp_dot_check_attributes(r->graphs[g], phase, &stray) < 0)
            return sgp_dot_fail_at(r, sgp_scan_line(&r->text, g, stray.name, NULL, 1),
                SGP_E_TOPOLOGY, "%s", stray.text);
    }
    return 0;
}

static int build(struct sgp_dot_reader *r, struct sgp_topology **ret_topology)
{
    if (r->graph_count == 0)
        return sgp_dot_fail_at(r, 1, SGP_E_TOPOLOGY,
            "there is no digraph; write one for each phase, as digraph p { a -> b; b -> a; }");
    int code = check_attributes(r);
    if (!code)
        code = sgp_dot_collect_fleet(r);
    if (code)
        return code;
    struct sgp_error reason = {0};
    struct sgp_topology *topology = NULL;
    uint32_t where = SGP_NODE_NONE;
    code = sgp_topology_create_where(r->nodes, r->node_count, &reason, &where, &topology);
    if (code)
        return fail_fleet(r, code, where, reason.text);
    for (uint32_t g = 0; g < r->graph_count && !code; g++)
        code = sgp_dot_add_phase(r, g, topology);
    if (!code) {
        struct sgp_edge_place place;
        code = sgp_topology_seal_where(topology, &reason, &place);
        if (code && place.target != SGP_NODE_NONE)
            (void)sgp_dot_fail_at(r,
                sgp_scan_line(&r->text, place.phase, r->nodes[place.source].name,
                    r->nodes[place.target].name, 1),
                code, "%s", reason.text);
        else if (code && place.source != SGP_NODE_NONE)
            (void)fail_fleet(r, code, place.source, reason.text);
        else if (code)
            (void)sgp_dot_fail_at(
                r, sgp_scan_line(&r->text, place.phase, NULL, NULL, 1), code, "%s", reason.text);
    }
    if (code)
        sgp_topology_destroy(topology);
    else
        *ret_topology = topology;
    return code;
}

/* Some editors begin a text with a byte order mark, which libcgraph takes for a word. */
static void skip_mark(struct sgp_scan_text *text)
{
    static const char mark[3] = {'\xef', '\xbb', '\xbf'};
    if (text->length < sizeof mark || memcmp(text->text, mark, sizeof mark) != 0)
        return;
    text->text += sizeof mark;
    text->length -= sizeof mark;
}

int sgp_dot_parse(const char *text, size_t length, const char *name, struct sgp_error *error,
    struct sgp_topology **ret_topology)
{
    struct sgp_dot_reader r = {
        .text = {.name = name, .text = text, .length = length}, .error = error};
    if (length > SGP_DOT_BYTES_MAX)
        return sgp_fail(error, SGP_E_LIMIT, "%s: the file is too long; the limit is %u bytes", name,
            SGP_DOT_BYTES_MAX);
    skip_mark(&r.text);
    int code = sgp_scan_measure(&r.text, error);
    if (!code)
        code = read_graphs(&r);
    if (!code)
        code = build(&r, ret_topology);
    for (uint32_t g = 0; g < r.graph_count; g++)
        agclose(r.graphs[g]);
    if (r.fleet)
        agclose(r.fleet);
    free(r.graphs);
    free(r.nodes);
    return code;
}

/* Read a whole stream. The caller frees *ret_text. */
static int read_text(
    FILE *file, const char *name, struct sgp_error *error, char **ret_text, size_t *ret_length)
{
    size_t length = 0, capacity = 1u << 16;
    char *text = NULL;
    int code = 0;
    do {
        capacity *= 2;
        char *grown = realloc(text, capacity);
        if (!grown) {
            code = sgp_fail(error, -ENOMEM, "%s: no memory to read it", name);
            break;
        }
        text = grown;
        errno = 0;
        length += fread(text + length, 1, capacity - length, file);
        if (ferror(file)) {
            code = errno ? -errno : -EIO;
            (void)sgp_fail(error, code, "%s: %s", name, sgp_strerror(code));
        }
    } while (!code && length == capacity && length <= SGP_DOT_BYTES_MAX);
    if (code) {
        free(text);
        return code;
    }
    *ret_text = text;
    *ret_length = length;
    return 0;
}

int sgp_dot_read(
    FILE *file, const char *name, struct sgp_error *error, struct sgp_topology **ret_topology)
{
    char *text;
    size_t length;
    int code = read_text(file, name, error, &text, &length);
    if (code)
        return code;
    code = sgp_dot_parse(text, length, name, error, ret_topology);
    free(text);
    return code;
}

int sgp_dot_read_path(const char *path, struct sgp_error *error, struct sgp_topology **ret_topology)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        int code = -errno;
        return sgp_fail(error, code, "%s: %s", path, sgp_strerror(code));
    }
    int code = sgp_dot_read(file, path, error, ret_topology);
    (void)fclose(file);
    return code;
}

/* The file may have changed meanwhile. Then the line may be wrong, but never beyond the end of the
 * file. */
int sgp_dot_fail(const char *path, const struct sgp_topology *topology,
    const struct sgp_edge_place *place, const struct sgp_error *why, struct sgp_error *error)
{
    struct sgp_scan_text text = {.name = path};
    char *bytes = NULL;
    FILE *file = fopen(path, "re");
    bool read = file && read_text(file, path, NULL, &bytes, &text.length) == 0;
    text.text = bytes;
    if (read)
        skip_mark(&text);
    read = read && sgp_scan_measure(&text, NULL) == 0;
    if (file)
        (void)fclose(file);
    bool edge = place->source != SGP_NODE_NONE;
    if (read)
        (void)sgp_fail(error, why->code, "%s:%u: %s", path,
            sgp_scan_line(&text, place->phase, edge ? topology->nodes[place->source].name : NULL,
                edge ? topology->nodes[place->target].name : NULL, 1),
            why->text);
    else
        (void)sgp_fail(error, why->code, "%s: %s", path, why->text);
    free(bytes);
    return why->code;
}
