/* SPDX-License-Identifier: Apache-2.0 */
/* A time-varying directed graph: which node gives to which, in which round, how much, and of which
 * part.
 *
 * A topology is a list of phases. Phase p holds for `rounds` rounds, then the next phase follows.
 * After the last phase the cycle begins again, without the phases marked `once`. These are the
 * prelude, which runs `repeat` times. The edges of a round are a pure function of the round, so
 * nodes need to agree on the file only.
 *
 * The vector may be cut into `slices` parts, and an edge may carry some of them alone. A cycle is
 * exact if an edge in it carries all of something (fraction 1), or a part alone. An exact cycle
 * begins with weight 1 at every node that trains and with 0 at every relay. It ends with the mean
 * of all at each node that trains. Building a topology proves that or refuses it. Within the cycle
 * the weight of each part at each node follows from the file alone.
 *
 * One node may own the vector, or each of several nodes a part. Owners alone hold weight, and all
 * nodes that train are their workers, which hold copies and give updates (docs/rules/owner.md). An
 * edge to an owner then carries updates, and an edge from it carries copies; no mass is mixed. An
 * owner that trains becomes two nodes once the topology is built: after all others comes a node
 * NAME.owner, which owns. Ownership may also be a token, which begins at the owner and goes along
 * the edges (docs/rules/token.md).
 *
 * A topology is immutable once built, may be shared by threads, and is freed by its owner. */
#ifndef SGP_TOPOLOGY_H
#define SGP_TOPOLOGY_H

#include "sgp/status.h"

/* One directed edge: `source` gives `fraction` of its mass to `target` (both are node indices). */
struct sgp_edge {
    uint32_t source;
    uint32_t target;
    /* 0 < fraction <= 1; fractions of one source sum to at most 1, for each part */
    double fraction;
    bool usual;          /* set by add_phase: no fraction was given, so it is the default */
    uint16_t part;       /* the first part that it carries, */
    uint16_t part_count; /* and how many; 0: all of them */
};

/* The weight with which a node begins. */
enum sgp_starts {
    /* 1; of a relay 0: it has nothing to give until it has received a share */
    SGP_STARTS_USUAL = 0,
    SGP_STARTS_EMPTY, /* 0 */
    SGP_STARTS_WHOLE, /* 1 */
};

/* Whether links are ciphered (docs/SECURITY.md). */
enum sgp_tls {
    SGP_TLS_UNSAID = 0, /* this digraph does not say it; if no digraph does: off */
    SGP_TLS_OFF,
    SGP_TLS_OFFER, /* a link is ciphered if both ends can */
    SGP_TLS_REQUIRE,
};

#define SGP_ADDRESS_NONE "none" /* of a node that dials and cannot be dialled */

/* A node's keys: one, or two while one replaces the other. */
#define SGP_NODE_KEYS_MAX 2u

struct sgp_topology_node {
    char name[SGP_NAME_BYTES];
    char address[SGP_ADDRESS_BYTES]; /* "host:port" or "[v6]:port"; SGP_ADDRESS_NONE: it cannot be
                                        dialled; "" if the file gives none */
    bool relay;                      /* it has no data and takes no steps */
    enum sgp_starts starts;
    /* The node owns the vector, or a part: it holds its weight and takes updates; or the token
     * begins at it. */
    bool owns;
    uint16_t own_part;       /* the first part that it owns, */
    uint16_t own_part_count; /* and how many; 0: all of them */
    /* Set by seal: it is the owner that belongs to node `trainer`, on the same machine. */
    bool colocated;
    uint32_t trainer;
    /* The keys that may speak as this node: SHA256: and the base64, without padding, of the hash of
     * a public key's SubjectPublicKeyInfo. "" for none; the first is filled first. */
    char keys[SGP_NODE_KEYS_MAX][SGP_KEY_BYTES];
};

/* How an owner that adds updates as they come uses their staleness: the number of updates added
 * since the copy was made from which the update was computed. */
enum sgp_damping {
    SGP_DAMPING_NONE = 0,
    SGP_DAMPING_DIVIDE,     /* divide by it (Zhang, Gupta, Lian, Liu 2016) */
    SGP_DAMPING_COMPENSATE, /* u - c u u (z now - z then), value by value (Zheng et al. 2017) */
};
#define SGP_COMPENSATION_MAX 1e9
struct sgp_staleness {
    enum sgp_damping damping;
    double compensation; /* c, above 0 if it compensates: their lambda over the learning rate */
    /* A worker that is more updates than this ahead of the slowest gets no copy from the first
     * owner; 0: no limit. */
    uint32_t most;
};

/* Ownership as a token that is handed on, in the order in which the file first names the nodes (Hu
 * et al. 2018). */
enum sgp_token {
    SGP_TOKEN_NONE = 0, /* the owner stays */
    SGP_TOKEN_DYNAMIC,  /* to the next node that has taken a step since it last had the token */
    SGP_TOKEN_FIXED,    /* to the next present node, which takes one step each time */
};
#define SGP_DELAY_MAX 1000000u
#define SGP_DELAY_USUAL 8u
struct sgp_delay {
    enum sgp_token token;
    bool mean;     /* the updates of one arrival count by their mean, not by their sum */
    uint32_t most; /* the greatest number of steps without the token; 0: SGP_DELAY_USUAL */
};

struct sgp_phase {
    char name[SGP_NAME_BYTES];
    uint32_t rounds; /* 1 to SGP_PHASE_ROUNDS_MAX */
    bool once;       /* belongs to the prelude */
    bool exchanges;  /* its rounds only exchange: no node trains */
    bool outer; /* after its last round every node that trains takes an outer step (sgp/outer.h) */
    /* Of a file with an owner: the number of workers whose updates a step does not need. */
    uint32_t backup;
    struct sgp_staleness staleness; /* of a file with an owner */
    struct sgp_delay delay;         /* of a file with a token */
    uint32_t edge_count;
    struct sgp_edge *out; /* edges by (source, target) */
    uint32_t *out_first;  /* node_count + 1 offsets into `out` */
    struct sgp_edge *in;  /* the same edges by (target, source) */
    uint32_t *in_first;   /* node_count + 1 offsets into `in` */
};

/* The phases of one pass: those of the prelude, or all others. */
struct sgp_cycle {
    sgp_round rounds; /* of one pass; 0: there is no prelude */
    sgp_round turns;  /* of these, the rounds that train */
    bool exact;
    sgp_round opening; /* exact: the first round of a pass in which any node gives */
    /* Exact: node_count x slices: the weight of each part at the end of the cycle, by float32
     * fractions. */
    double *ends;
};

struct sgp_topology {
    uint32_t node_count;
    uint32_t phase_count;
    struct sgp_topology_node *nodes;
    struct sgp_phase *phases; /* the prelude's first */
    uint32_t owner;   /* Index of the first owner; SGP_NODE_NONE: no node owns the vector. */
    uint32_t owners;  /* the number of owners, each of parts of its own */
    uint32_t slices;  /* parts of the vector, 1 to SGP_SLICES_MAX */
    uint32_t repeat;  /* passes of the prelude; 0 until a phase says it, which means 1 */
    enum sgp_tls tls; /* SGP_TLS_OFF if no digraph says it */
    /* With SGP_TLS_REQUIRE: how many nodes must have signed a statement on the end. */
    uint32_t stops;
    uint64_t version;           /* the file's own number; a later file has a greater one. 0: none */
    sgp_round prelude_rounds;   /* rounds of all `once` phases, in all passes */
    sgp_round rounds_per_cycle; /* rounds of all others; >= 1 */
    struct sgp_cycle prelude, cycle;
    uint32_t *agrees; /* for each round of a cycle: see sgp_topology_agrees_after; or NULL */
    /* Of everything except addresses, keys, tls, stops and version; equal files have equal
     * digests. */
    uint64_t digest;
    sgp_round *phase_first; /* phase_count + 1: each phase's first round in one pass of each */
    /* phase_count + 1: the rounds that train before it, in one pass of each */
    sgp_round *phase_turns;
    uint32_t *by_name; /* node indices in order of their names */
    /* key_count places (node * SGP_NODE_KEYS_MAX + which), in order of their keys */
    uint32_t *by_key;
    uint32_t key_count;
};

/* An edge of a file, for messages; a digraph if source and target are SGP_NODE_NONE. */
struct sgp_edge_place {
    uint32_t phase; /* index; the digraph's number in the file */
    uint32_t source, target;
};

/* The greatest number of rounds of one phase. A prelude of dense rounds may span epochs. */
#define SGP_PHASE_ROUNDS_MAX (1u << 20)
/* How far the fractions of one source may exceed 1 in sum, for 2/3 + 1/3 in binary. */
#define SGP_FRACTION_SLACK 1e-12

#define SGP_NODE_NONE UINT32_MAX
#define SGP_SLICES_MAX 256u
#define SGP_REPEAT_MAX (1u << 20)
#define SGP_STOPS_MAX 16u
#define SGP_TOPOLOGY_VERSION_MAX (UINT64_C(1) << 53) /* a JSON number holds it exactly */

/* Building. `create` copies the named nodes and returns a topology without phases. `add_phase`
 * checks and copies edges. `seal` sums up rounds and digest and must be last.
 *
 * On failure the topology stays valid and *error (may be NULL) gives the reason: SGP_E_TOPOLOGY,
 * SGP_E_LIMIT or -ENOMEM. SGP_E_TOPOLOGY means one of these: a name that is empty or holds other
 * characters than letters, digits, '_', '-' and '.'; a duplicate name, address or key; a malformed
 * key; no node; rounds out of range; a self-loop; a repeated edge; an edge between two nodes that
 * cannot be dialled; a fraction above 1 or not a number; a column above 1; a prelude phase after a
 * cycle phase; no phase in the cycle.
 *
 * An edge with fraction <= 0 (SGP_FRACTION_DEFAULT) gets 1/(1+outdegree). Indices out of range are
 * a programmer's error. */
#define SGP_FRACTION_DEFAULT (-1.0)
SGP_API int sgp_topology_create(const struct sgp_topology_node *nodes, uint32_t node_count,
    struct sgp_error *error, struct sgp_topology **ret_topology);
SGP_API int sgp_topology_add_phase(struct sgp_topology *topology, const char *name, uint32_t rounds,
    bool once, const struct sgp_edge *edges, uint32_t edge_count, struct sgp_error *error);
/* A phase with all its attributes. `slices` 0: it does not name parts, and its edges carry all;
 * otherwise it must be equal in all phases that name it. `repeat` 0: it does not name passes; only
 * a phase of the prelude names them. */
struct sgp_phase_options {
    const char *name;
    uint32_t rounds;
    bool once, exchanges, outer;
    uint32_t slices, repeat, backup;
    enum sgp_tls tls; /* SGP_TLS_UNSAID, or the value of all other phases that have one */
    uint32_t stops;   /* 0: no value; otherwise that of all other phases that have one */
    uint64_t version; /* likewise */
    struct sgp_staleness staleness;
    struct sgp_delay delay;
};
SGP_API int sgp_topology_add(struct sgp_topology *topology, const struct sgp_phase_options *options,
    const struct sgp_edge *edges, uint32_t edge_count, struct sgp_error *error);
/* It also refuses topologies that cannot be run:
 *
 * a cycle with fraction 1 or with parts that is not exact; an exact cycle that trains after its
 * first exchange; an exact cycle after a prelude that is not exact; an outer step within an exact
 * cycle, where no node has an estimate; a cycle in which no round trains;
 *
 * an owner whose file has more than one digraph, fractions, outer steps or other relays, or lacks
 * an edge between the owner and a worker, either way; a part with two owners or none; more backup
 * workers than all but one, or backup workers together with staleness;
 *
 * a token together with a relay, backup workers or staleness, or without an edge from each node to
 * the next; a delay without a token;
 *
 * tls other than off if a node has no key; stops that no node can prove. */
SGP_API int sgp_topology_seal(struct sgp_topology *topology, struct sgp_error *error);
SGP_API void sgp_topology_destroy(struct sgp_topology *topology); /* NULL is allowed */

/* Give every edge without a fraction of its own the Metropolis weight 1/(1 + max(degree of source,
 * degree of target)) instead of the default (Xiao and Boyd, 2004). Check that every phase is then
 * symmetric and doubly stochastic, as D-PSGD needs. Call it before the topology is shared. The
 * digest stays: it is the file's. Returns 0; SGP_E_TOPOLOGY with a text that names digraph, edge
 * and remedy, and *ret_culprit (may be NULL) is then the edge; or -ENOMEM. */
int sgp_topology_metropolis(
    struct sgp_topology *topology, struct sgp_error *error, struct sgp_edge_place *ret_culprit);

/* Whether each edge has its reverse, in the same phase or in another, whatever the fractions: then
 * any neighbour can answer. Returns 0, or SGP_E_TOPOLOGY with a text that names digraph, edge and
 * remedy; *ret_culprit (may be NULL) is then the edge. */
int sgp_topology_reverses(const struct sgp_topology *topology, struct sgp_error *error,
    struct sgp_edge_place *ret_culprit);

/* The phase of a round (round >= 0), and its index. */
uint32_t sgp_topology_phase_index(const struct sgp_topology *topology, sgp_round round);
const struct sgp_phase *sgp_topology_phase(const struct sgp_topology *topology, sgp_round round);

/* Edges out of or into a node in a phase, ordered by the other end. Returns the first of *ret_count
 * contiguous edges; borrowed from the phase. */
const struct sgp_edge *sgp_phase_out(
    const struct sgp_phase *phase, uint32_t node, uint32_t *ret_count);
const struct sgp_edge *sgp_phase_in(
    const struct sgp_phase *phase, uint32_t node, uint32_t *ret_count);

/* The number of other nodes that give to each node in a cycle, whatever the number of its rounds:
 * ret_counts has node_count values. Returns 0 or -ENOMEM. */
int sgp_topology_count_sources(const struct sgp_topology *topology, uint32_t *ret_counts);

/* Plan how a vector of node `root` spreads to all nodes: ret_sources[i], of node_count elements, is
 * the node from which node i takes it, a source of node i in the file. SGP_NODE_NONE: of the root
 * itself, and of nodes to which only relays lead. A node that has the vector sends it to one node
 * after the other, so the time grows with the logarithm of the number of nodes where edges allow
 * that. No node sends it more than SGP_SPREAD_USUAL times unless edges leave no other way.
 * O(edges). Returns 0 or -ENOMEM. */
#define SGP_SPREAD_USUAL 2u
int sgp_topology_spread(const struct sgp_topology *topology, uint32_t root, uint32_t *ret_sources);

/* The sources in a cycle of the file that a guarded node must have, so that the median is an honest
 * one's although one source lies; and the number of which distances are kept. */
#define SGP_GUARD_SOURCES_LEAST 3u
#define SGP_GUARD_SOURCES_MOST 1024u

/* Whether a node of this file may have a guard (sgp/guard.h): the file neither has exact cycles nor
 * owners, and the node has SGP_GUARD_SOURCES_LEAST to SGP_GUARD_SOURCES_MOST sources in a cycle.
 * Returns 0; SGP_E_TOPOLOGY with reason and remedy; or -ENOMEM. */
int sgp_topology_check_guard(
    const struct sgp_topology *topology, uint32_t node, struct sgp_error *error);

/* Whether source gives to target in a phase. O(log outdegree). */
bool sgp_phase_gives(const struct sgp_phase *phase, uint32_t source, uint32_t target);

/* ---- rounds, turns and cycles ---- */

/* The number of turns before `round` (round >= 0). A turn is a round that trains. */
sgp_round sgp_topology_turns(const struct sgp_topology *topology, sgp_round round);
/* The least round that has that many turns before it (turns >= 0): one past the last of them. */
sgp_round sgp_topology_after_turns(const struct sgp_topology *topology, sgp_round turns);
/* Whether round `round` belongs to an exact cycle; then *ret_start (may be NULL) is the start of
 * its pass. */
bool sgp_topology_is_exact(
    const struct sgp_topology *topology, sgp_round round, sgp_round *ret_start);
/* The first start of a cycle that is not before `round`. Outside of exact cycles that is
 * `round`. */
sgp_round sgp_topology_start_from(const struct sgp_topology *topology, sgp_round round);
/* Whether any cycle is exact. */
bool sgp_topology_has_exact(const struct sgp_topology *topology);
/* Whether the nodes that train take an outer step after this round. */
bool sgp_topology_steps_after(const struct sgp_topology *topology, sgp_round round);
/* The number of rounds of averaging alone, from `round` (>= 0) on, after which the estimates of all
 * nodes are equal by this file, to the precision of a float32, whatever estimates and weights were.
 * At least 1. SGP_ROUND_NONE: two cycles do not make them equal, or the answer is not known. It is
 * not known in a prelude, for exact cycles and owners, and where it would take more than
 * SGP_AGREES_WORK_MAX edges and nodes to find. */
#define SGP_AGREES_WORK_MAX UINT64_C(100000000)
sgp_round sgp_topology_agrees_after(const struct sgp_topology *topology, sgp_round round);
/* The first digraph that asks for outer steps, or NULL. */
const struct sgp_phase *sgp_topology_outer(const struct sgp_topology *topology);
/* The weights of the parts at the end of the exact cycle of a round: `slices` values, each > 0 for
 * a node that trains. */
const double *sgp_topology_ends(
    const struct sgp_topology *topology, sgp_round round, uint32_t node);
const char *sgp_damping_name(enum sgp_damping damping); /* "divide"; static storage */
bool sgp_damping_find(const char *name, enum sgp_damping *ret_damping);
/* Whether any of its fields is set. */
bool sgp_staleness_is_said(const struct sgp_staleness *staleness);

const char *sgp_token_name(enum sgp_token token); /* "dynamic"; static storage */
bool sgp_token_find(const char *name, enum sgp_token *ret_token);
/* Whether ownership is a token. */
bool sgp_topology_has_token(const struct sgp_topology *topology);
/* How many steps a node takes without the token. */
uint32_t sgp_topology_delay_most(const struct sgp_topology *topology);

/* The node of the file: `node` itself, or the node to which this owner belongs. */
uint32_t sgp_topology_machine(const struct sgp_topology *topology, uint32_t node);
/* The owner that belongs to `node`, which trains; SGP_NODE_NONE: there is none. */
uint32_t sgp_topology_colocated_owner(const struct sgp_topology *topology, uint32_t node);

/* Whether the node keeps a copy of an owner's values: a worker does, and with a token each node
 * does. */
bool sgp_topology_has_copy(const struct sgp_topology *topology, uint32_t node);
/* The values that a node owns, of a vector of `parameters`: none, its parts, or all. */
struct sgp_slice sgp_topology_owned(
    const struct sgp_topology *topology, uint32_t node, uint64_t parameters);
/* Whether each owner has values, of a vector of `parameters`. Returns 0, or SGP_E_TOPOLOGY with
 * reason and remedy. */
int sgp_topology_check_owners(
    const struct sgp_topology *topology, uint64_t parameters, struct sgp_error *error);
/* Whether the node owns parts, and not all: the rest of its vector is unused. */
bool sgp_topology_owns_parts(const struct sgp_topology *topology, uint32_t node);
/* The weight with which a node begins: 0 or 1. If the vector has owners, they alone begin with
 * 1. */
double sgp_topology_starts(const struct sgp_topology *topology, uint32_t node);
/* The number of nodes that train. */
uint32_t sgp_topology_trainers(const struct sgp_topology *topology);

/* Whether the parts of a vector of that many values are whole blocks. */
#define SGP_PART_BLOCKED_LEAST 2048u
bool sgp_topology_is_blocked(const struct sgp_topology *topology, uint64_t parameters);

/* Whether a round is the first of a pass of its exact cycle in which any node gives. */
bool sgp_topology_opens(const struct sgp_topology *topology, sgp_round round);

/* The values of `count` parts, of a vector of `parameters`. Parts are as equal as possible, and the
 * first ones may be longer by 1. If each part has SGP_PART_BLOCKED_LEAST values or more, all but
 * the last are whole blocks (sgp/coding.h). Then a part has the same coding by itself and among
 * others. 0 parts: all values. */
struct sgp_slice sgp_topology_parts(
    const struct sgp_topology *topology, uint32_t part, uint32_t count, uint64_t parameters);
/* The values that an edge carries. */
struct sgp_slice sgp_topology_values(
    const struct sgp_topology *topology, const struct sgp_edge *edge, uint64_t parameters);

/* The fraction of its mass that a node keeps in a round of this phase: 1 - the sum of its
 * fractions, never below 0. 0 <= node < node_count. Only for phases whose edges carry all parts. */
double sgp_phase_keep(const struct sgp_phase *phase, uint32_t node);

/* One round of averaging alone, `columns` vectors at once: next = P mass. Both are row-major
 * node_count x columns and must not overlap; row i belongs to node i. Every entry of next is the
 * kept mass plus the received mass, added in order of source. (Algorithm 1 of Assran et al. 2019,
 * lines 5 to 7, without a step.) */
void sgp_phase_mix(double *next, const double *mass, const struct sgp_phase *phase,
    uint32_t node_count, uint32_t columns);

/* The first round >= from (from >= 0) in which source gives to target, or SGP_ROUND_NONE if it
 * never does again (or not before SGP_ROUND_MAX). O(phases * log outdegree). */
sgp_round sgp_topology_next_round(
    const struct sgp_topology *topology, uint32_t source, uint32_t target, sgp_round from);

/* Whether others can dial a node: it has an address, and not SGP_ADDRESS_NONE. */
bool sgp_topology_is_dialled(const struct sgp_topology *topology, uint32_t node);

/* Whether the name is a valid node name. */
bool sgp_topology_name_is_good(const char *name);

/* The index of a named node, or -ENOENT. O(log nodes). */
SGP_API int64_t sgp_topology_find(const struct sgp_topology *topology, const char *name);

/* The node that has this key, or -ENOENT. O(log nodes). */
int64_t sgp_topology_find_key(const struct sgp_topology *topology, const char *key);
/* Whether a peer with this key may speak as the node: the key is the node's own, or that of the
 * node to which this owner belongs. */
bool sgp_topology_has_key(const struct sgp_topology *topology, uint32_t node, const char *key);

/* The keys of a node as the file writes them, one or two with a blank between, or "no key". */
#define SGP_KEYS_BYTES (SGP_NODE_KEYS_MAX * SGP_KEY_BYTES)
void sgp_topology_keys_text(
    const struct sgp_topology *topology, uint32_t node, char text[SGP_KEYS_BYTES]);

/* "off", "offer", "require". Static. */
const char *sgp_tls_name(enum sgp_tls tls);

/* Run the weights alone, from the initial weights, through one pass of the prelude and ten cycles.
 * Exact cycles leave the weights unchanged. ret_least[i] is the least weight that node i held just
 * before giving (the w_min of the guard against starving). A phase whose rounds no longer change
 * any weight is not repeated. At most SGP_WEIGHT_WORK_MAX edges and nodes are processed: if that
 * ends the run early, the result is the least weights until then, the same on every node. ret_least
 * has node_count elements. Returns 0 or -ENOMEM. */
#define SGP_WEIGHT_WORK_MAX UINT64_C(2000000000)
int sgp_topology_weight_least(const struct sgp_topology *topology, double *ret_least);

/* The least and the greatest weights of the same run; either pointer may be NULL. */
int sgp_topology_weight_range(
    const struct sgp_topology *topology, double *ret_least, double *ret_greatest);

/* Split "host:port", "host" (port SGP_PORT_DEFAULT), "[v6]:port" or "[v6]" into host (without
 * brackets) and port 1 to 65535. The host need not exist. Returns 0, or SGP_E_TOPOLOGY with reason
 * and remedy in *error; then the outputs are untouched. */
int sgp_address_split(const char *address, struct sgp_error *error,
    char ret_host[SGP_ADDRESS_BYTES], uint16_t *ret_port);

/* Give node i of the file the address HOST:(PORT + i) instead of its own; `base` is "HOST:PORT+".
 * The digest, which excludes addresses, stays. Returns 0, or SGP_E_TOPOLOGY with reason and remedy
 * in *error; then nothing is changed. */
int sgp_topology_place(struct sgp_topology *topology, const char *base, struct sgp_error *error);

#endif
