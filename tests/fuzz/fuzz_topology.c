/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a topology file: refused with a reason, or read, queried and written back alike. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "sgp/dot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was written must read back as the same topology. */
static void check_round_trip(const struct sgp_topology *topology)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    sgp_assert(file != NULL);
    sgp_assert(sgp_dot_write(file, topology, NULL) == 0);
    sgp_assert(fclose(file) == 0);
    struct sgp_topology *again = NULL;
    struct sgp_error error = {0};
    int code = sgp_dot_parse(text, bytes, "again", &error, &again);
    if (code != 0)
        fprintf(stderr, "%s\n%s\n", error.text, text);
    sgp_assert(code == 0);
    sgp_assert(again->digest == topology->digest);
    sgp_topology_destroy(again);
    free(text);
}

/* Every query must stand for any topology that was accepted. */
static void check_queries(const struct sgp_topology *topology)
{
    for (sgp_round round = 0; round < 16; round++) {
        const struct sgp_phase *phase = sgp_topology_phase(topology, round);
        uint32_t count;
        const struct sgp_edge *edges = sgp_phase_out(phase, topology->node_count - 1, &count);
        for (uint32_t e = 0; e < count; e++)
            sgp_assert(sgp_topology_next_round(topology, edges[e].source, edges[e].target, round) ==
                       round);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    int code = sgp_dot_parse((const char *)data, size, "fuzz", &error, &topology);
    sgp_assert((code == 0) == (error.text[0] == '\0'));
    if (code != 0)
        return 0;
    check_queries(topology);
    check_round_trip(topology);
    sgp_topology_destroy(topology);
    return 0;
}
