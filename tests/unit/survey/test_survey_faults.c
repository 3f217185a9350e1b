/* SPDX-License-Identifier: Apache-2.0 */
/* Surveys of 3 to 12 nodes under random schedules: deaths, returns with and without the state, rows
 * that change, members that are struck, members that join, files that go back. At the end all nodes
 * are there with the last file, and all must have one result, of figures that were told. */
#include "sgp/random.h"
#include "sgp/survey.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES 24u
#define FILES 32u
#define EVENTS 4096u
#define RESULT_BYTES 4096u
#define SETTLE 400.0 /* seconds from the last fault to one result */

struct file {
    uint32_t members[NODES]; /* in order */
    bool member[NODES];
    bool edge[NODES][NODES];
    uint32_t count;
    uint64_t version;
};

struct node {
    struct sgp_survey *survey; /* NULL: not running */
    uint32_t life;
    uint32_t rows; /* which rows it has; other rows have other figures */
    double skew;   /* of its clock */
    uint32_t file;
    bool has_file, known;
    char kept[RESULT_BYTES]; /* its state: the result; "": none */
    uint64_t kept_version;
};

struct piece {
    struct sgp_bulletin bulletin;
    char author[SGP_NAME_BYTES];
    char text[SGP_BULLETIN_PIECE_MAX + 1];
};

struct answer {
    uint32_t count;
    struct piece *pieces;
};

enum kind { START, TICK, ASKED, ANSWERED, KILL, BACK, LOAD, SETTLED };

struct event {
    double at;
    uint64_t serial;
    enum kind kind;
    uint32_t node, life, other, other_life;
    uint32_t file;
    bool state, rows;
    struct answer answer;
};

struct world {
    struct sgp_random random;
    double now, end, slow;
    uint64_t serial;
    struct event *events;
    uint32_t event_count;
    struct node nodes[NODES];
    uint32_t node_count;
    struct file files[FILES];
    uint32_t file_count, present;
    uint64_t versions;
    bool votes; /* false, a planted fault: freeze as soon as the figures are complete */
};

/* ---- chance ---- */

static double between(struct world *world, double least, double most)
{
    return least + (most - least) * sgp_random_double(&world->random);
}

static uint32_t below(struct world *world, uint32_t bound)
{
    return (uint32_t)sgp_random_below(&world->random, bound);
}

static double delay(struct world *world)
{
    const double chance = sgp_random_double(&world->random);
    return world->slow * (1 / (1 - 0.95 * chance) - 1) + 0.001;
}

/* ---- events ---- */

static struct event *post(struct world *world, double at, enum kind kind, uint32_t node)
{
    sgp_assert(world->event_count < EVENTS);
    struct event *event = &world->events[world->event_count++];
    *event = (struct event){.at = at,
        .serial = world->serial++,
        .kind = kind,
        .node = node,
        .life = world->nodes[node].life};
    return event;
}

static struct event take_first(struct world *world)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < world->event_count; i++) {
        const struct event *one = &world->events[i], *other = &world->events[first];
        if (one->at < other->at || (one->at == other->at && one->serial < other->serial))
            first = i;
    }
    const struct event event = world->events[first];
    world->events[first] = world->events[--world->event_count];
    return event;
}

/* ---- files ---- */

/* A ring of the members in random order, and some more edges. */
static uint32_t make_file(struct world *world, const uint32_t *members, uint32_t count)
{
    sgp_assert(world->file_count < FILES);
    struct file *file = &world->files[world->file_count];
    uint32_t order[NODES];
    *file = (struct file){.count = count, .version = ++world->versions};
    memcpy(file->members, members, count * sizeof *members);
    memcpy(order, members, count * sizeof *members);
    sgp_random_shuffle(&world->random, order, count);
    for (uint32_t i = 0; i < count; i++) {
        file->member[members[i]] = true;
        file->edge[order[i]][order[(i + 1) % count]] = true;
    }
    for (uint32_t more = below(world, count + 1); more > 0; more--) {
        const uint32_t from = below(world, count), to = below(world, count);
        if (from != to)
            file->edge[members[from]][members[to]] = true;
    }
    world->present = world->file_count;
    return world->file_count++;
}

/* The members of a file once more, in a later version. */
static uint32_t make_again(struct world *world, uint32_t former)
{
    sgp_assert(world->file_count < FILES);
    world->files[world->file_count] = world->files[former];
    world->files[world->file_count].version = ++world->versions;
    world->present = world->file_count;
    return world->file_count++;
}

/* ---- nodes ---- */

static void name_of(uint32_t node, char name[SGP_NAME_BYTES])
{
    (void)snprintf(name, SGP_NAME_BYTES, "n%u", node);
}

/* What a node tells about its rows: long enough for several pieces, now and then. */
static void figures_of(uint32_t node, uint32_t rows, char text[RESULT_BYTES])
{
    const uint32_t bytes = 40 + rows * 701 % 1500;
    (void)snprintf(text, RESULT_BYTES, "figures of n%u, rows %u ", node, rows);
    const size_t used = strlen(text);
    memset(text + used, '.', bytes);
    text[used + bytes] = '\0';
}

/* Members with the digest of their figures, which stands for all of the figures. */
static void combine(const struct world *world, const struct node *node, char text[RESULT_BYTES])
{
    const struct file *file = &world->files[node->file];
    size_t used = (size_t)snprintf(text, RESULT_BYTES, "v%u", (unsigned)file->version);
    for (uint32_t i = 0; i < file->count; i++) {
        const char *figures = sgp_survey_figures(node->survey, i);
        cr_assert(figures != NULL);
        used += (size_t)snprintf(text + used, RESULT_BYTES - used, " n%u:%016llx", file->members[i],
            (unsigned long long)sgp_bulletin_digest(figures, (uint32_t)strlen(figures)));
    }
}

static void keep(struct node *node)
{
    const char *result = sgp_survey_result(node->survey, &node->kept_version);
    if (result != NULL)
        (void)snprintf(node->kept, sizeof node->kept, "%s", result);
}

static void think(struct world *world, struct node *node)
{
    const enum sgp_survey_stage stage = sgp_survey_stage(node->survey);
    if (stage == SGP_SURVEY_COMPLETE || (stage == SGP_SURVEY_VOTING && !world->votes)) {
        char text[RESULT_BYTES];
        combine(world, node, text);
        cr_assert_eq(sgp_survey_freeze(node->survey, world->files[node->file].version, text), 0);
    }
    keep(node);
}

static void use(struct world *world, struct node *node)
{
    const struct file *file = &world->files[node->file];
    char names[NODES][SGP_NAME_BYTES];
    const char *members[NODES];
    for (uint32_t i = 0; i < file->count; i++) {
        name_of(file->members[i], names[i]);
        members[i] = names[i];
    }
    const struct sgp_survey_file used = {
        .members = members, .count = file->count, .version = file->version};
    cr_assert_eq(sgp_survey_use(node->survey, &used), 0);
}

static void tell(struct world *world, uint32_t index)
{
    struct node *node = &world->nodes[index];
    char text[RESULT_BYTES];
    if (!world->files[node->file].member[index])
        return;
    figures_of(index, node->rows, text);
    cr_assert_eq(
        sgp_survey_tell(node->survey, (uint64_t)(1000 * (world->now + node->skew + 1000)), text),
        0);
}

static void start(struct world *world, uint32_t index)
{
    struct node *node = &world->nodes[index];
    char name[SGP_NAME_BYTES];
    if (node->survey != NULL)
        return;
    name_of(index, name);
    node->life++;
    node->survey = sgp_survey_create(name, SGP_SUBJECT_SCALING);
    use(world, node);
    tell(world, index);
    if (node->kept[0] != '\0')
        cr_assert_eq(sgp_survey_freeze(node->survey, node->kept_version, node->kept), 0);
    think(world, node);
    (void)post(world, world->now + between(world, 0, 1), TICK, index);
}

static void load(struct world *world, uint32_t index, uint32_t file)
{
    struct node *node = &world->nodes[index];
    if (world->files[file].version < world->files[node->file].version)
        return;
    const bool was = world->files[node->file].member[index];
    node->file = file;
    if (node->survey == NULL)
        return;
    use(world, node);
    if (!was) /* it is a member again, so it tells again */
        tell(world, index);
    think(world, node);
}

/* A node that has not begun begins with this file. */
static void boot(struct world *world, uint32_t index, uint32_t file, double at)
{
    struct node *node = &world->nodes[index];
    *node = (struct node){.rows = below(world, 1000), .skew = between(world, -5, 5), .file = file};
    post(world, at, START, index)->file = file;
}

/* ---- questions and answers ---- */

static void tick(struct world *world, uint32_t index)
{
    const struct node *node = &world->nodes[index];
    const struct file *file = &world->files[node->file];
    uint64_t version;
    for (uint32_t source = 0; source < world->node_count; source++) {
        if (!file->edge[source][index])
            continue;
        struct event *event = post(world, world->now + delay(world), ASKED, source);
        event->other = index;
        event->other_life = node->life;
    }
    const double pace = sgp_survey_result(node->survey, &version) != NULL ? 5 : 1;
    (void)post(world, world->now + pace * between(world, 0.8, 1.2), TICK, index);
}

/* All pieces of an answer. */
static struct answer all_of(struct sgp_answering *answering)
{
    struct answer answer = {.count = 0};
    uint32_t room = 0;
    struct piece piece;
    while (sgp_answering_next(answering, &piece.bulletin, piece.text)) {
        (void)snprintf(piece.author, sizeof piece.author, "%s", piece.bulletin.author);
        if (answer.count == room) {
            room = 2 * room + 4;
            answer.pieces = realloc(answer.pieces, room * sizeof *answer.pieces);
            sgp_assert(answer.pieces != NULL);
        }
        answer.pieces[answer.count++] = piece;
    }
    return answer;
}

static void asked(struct world *world, const struct event *event)
{
    const struct node *node = &world->nodes[event->node], *asker = &world->nodes[event->other];
    if (!world->files[node->file].member[event->other] || asker->survey == NULL ||
        asker->life != event->other_life)
        return;
    struct sgp_answering *answering = sgp_answering_create(node->survey);
    struct sgp_survey_cursor cursor = {0};
    struct sgp_bulletin bulletin;
    while (sgp_survey_next_head(asker->survey, &cursor, &bulletin))
        sgp_answering_holds(answering, &bulletin);
    const struct answer answer = all_of(answering);
    sgp_answering_destroy(answering);
    struct event *reply = post(world, world->now + delay(world), ANSWERED, event->other);
    reply->other = event->node;
    reply->answer = answer;
}

static void answered(struct world *world, const struct event *event)
{
    struct node *node = &world->nodes[event->node];
    struct sgp_arriving arriving = {0};
    for (uint32_t i = 0; i < event->answer.count; i++) {
        struct piece *piece = &event->answer.pieces[i];
        piece->bulletin.author = piece->author;
        piece->bulletin.text = piece->bulletin.kind == SGP_BULLETIN_VOTE ? "" : piece->text;
        cr_assert(ge(int, sgp_survey_piece(node->survey, &arriving, &piece->bulletin), 0));
        think(world, node);
    }
    sgp_arriving_drop(&arriving);
}

/* ---- what goes wrong ---- */

static void note(struct world *world, double at)
{
    world->end = at > world->end ? at : world->end;
}

static void restart(struct world *world, uint32_t node, double at, bool state, bool rows)
{
    const double back = at + between(world, 0.1, 20);
    (void)post(world, at, KILL, node);
    struct event *event = post(world, back, BACK, node);
    event->state = state;
    event->rows = rows;
    note(world, back);
}

/* A member goes for good: dead or not, the next file does not name it. */
static void strike(struct world *world, double at, bool dead)
{
    struct file file = world->files[world->present];
    if (file.count <= 3)
        return;
    const uint32_t place = below(world, file.count), node = file.members[place];
    if (dead)
        (void)post(world, at, KILL, node);
    memmove(&file.members[place], &file.members[place + 1],
        (file.count - place - 1) * sizeof *file.members);
    const uint32_t next = make_file(world, file.members, file.count - 1);
    for (uint32_t i = 0; i < file.count - 1; i++)
        post(world, at + between(world, 1, 20), LOAD, file.members[i])->file = next;
    note(world, at + 20);
}

static void join(struct world *world, double at)
{
    struct file file = world->files[world->present];
    const uint32_t node = world->node_count++;
    sgp_assert(node < NODES && file.count < NODES);
    file.members[file.count] = node;
    const uint32_t next = make_file(world, file.members, file.count + 1);
    for (uint32_t i = 0; i < file.count; i++)
        post(world, at + between(world, 0, 15), LOAD, file.members[i])->file = next;
    boot(world, node, next, at + between(world, 0, 15));
    note(world, at + 15);
}

/* The operator goes back to the former members within seconds. */
static void go_back(struct world *world)
{
    const uint32_t former = world->present;
    const struct file file = world->files[former];
    const double at = between(world, 0, 8);
    const uint32_t without = make_file(world, file.members, file.count - 1);
    const uint32_t again = make_again(world, former);
    for (uint32_t i = 0; i < file.count; i++) {
        post(world, at + between(world, 0, 6), LOAD, file.members[i])->file = without;
        post(world, at + 6 + between(world, 0, 6), LOAD, file.members[i])->file = again;
    }
    note(world, at + 12);
}

static void go_wrong(struct world *world)
{
    const struct file *file = &world->files[world->present];
    const double at = between(world, 0, 15);
    const uint32_t node = file->members[below(world, file->count)];
    switch (below(world, 8)) {
    case 0:
        restart(world, node, at, true, false);
        break;
    case 1:
        restart(world, node, at, false, false);
        break;
    case 2:
    case 3:
        restart(world, node, at, false, true);
        break;
    case 4:
        strike(world, at, true);
        break;
    case 5:
        strike(world, at, false);
        break;
    case 6:
        join(world, at);
        break;
    default:
        join(world, at + 60);
    }
}

/* ---- one schedule ---- */

static void kill_node(struct world *world, uint32_t index)
{
    sgp_survey_destroy(world->nodes[index].survey);
    world->nodes[index].survey = NULL;
}

static void return_node(struct world *world, const struct event *event)
{
    struct node *node = &world->nodes[event->node];
    if (node->survey != NULL)
        return;
    if (!event->state)
        node->kept[0] = '\0';
    if (event->rows)
        node->rows = below(world, 1000);
    start(world, event->node);
}

static void happen(struct world *world, const struct event *event)
{
    const struct node *node = &world->nodes[event->node];
    const bool same = node->survey != NULL && node->life == event->life;
    switch (event->kind) {
    case START:
        start(world, event->node);
        break;
    case TICK:
        if (same)
            tick(world, event->node);
        break;
    case ASKED:
        if (same)
            asked(world, event);
        break;
    case ANSWERED:
        if (same && world->files[node->file].member[event->other])
            answered(world, event);
        break;
    case KILL:
        kill_node(world, event->node);
        break;
    case BACK:
        return_node(world, event);
        break;
    case LOAD:
        load(world, event->node, event->file);
        break;
    case SETTLED:
        load(world, event->node, event->file);
        start(world, event->node);
    }
    free(event->answer.pieces);
}

/* Whether all members of the last file have one result. *ret_differs: two have different ones. */
static bool agree(const struct world *world, bool *ret_differs)
{
    const struct file *file = &world->files[world->present];
    const char *first = NULL;
    uint64_t version;
    bool all = true;
    *ret_differs = false;
    for (uint32_t i = 0; i < file->count; i++) {
        const struct sgp_survey *survey = world->nodes[file->members[i]].survey;
        const char *result = survey != NULL ? sgp_survey_result(survey, &version) : NULL;
        all = all && result != NULL;
        if (first != NULL && result != NULL && strcmp(first, result) != 0)
            *ret_differs = true;
        first = first != NULL ? first : result;
    }
    return all && !*ret_differs;
}

static void build(struct world *world, uint64_t seed)
{
    static const double slow[] = {0.01, 0.1, 0.5};
    uint32_t members[NODES];
    sgp_random_init(&world->random, seed, 0);
    world->events = calloc(EVENTS, sizeof *world->events);
    world->node_count = 3 + below(world, 10);
    world->slow = slow[below(world, 3)];
    for (uint32_t i = 0; i < world->node_count; i++)
        members[i] = i;
    const uint32_t file = make_file(world, members, world->node_count);
    for (uint32_t i = 0; i < world->files[file].count; i++)
        boot(world, i, file, between(world, 0, 5));
    for (uint32_t faults = below(world, 5); faults > 0; faults--)
        go_wrong(world);
    if (below(world, 4) == 0)
        go_back(world);
    for (uint32_t i = 0; i < world->files[world->present].count; i++)
        post(world, world->end, SETTLED, world->files[world->present].members[i])->file =
            world->present;
}

static void finish(struct world *world)
{
    for (uint32_t i = 0; i < world->event_count; i++)
        free(world->events[i].answer.pieces);
    for (uint32_t i = 0; i < world->node_count; i++)
        kill_node(world, i);
    free(world->events);
    free(world);
}

enum verdict { GOOD, STUCK, DIFFER };

static enum verdict run(uint64_t seed, bool votes)
{
    struct world *world = calloc(1, sizeof *world);
    bool differs = false, agreed = false;
    world->votes = votes;
    build(world, seed);
    while (world->event_count > 0 && world->now < world->end + SETTLE && !agreed) {
        const struct event event = take_first(world);
        world->now = event.at;
        happen(world, &event);
        agreed = world->now > world->end && agree(world, &differs);
    }
    finish(world);
    return agreed ? GOOD : differs ? DIFFER : STUCK;
}

static uint32_t seeds(uint32_t few)
{
    return getenv("SGP_LONG") != NULL ? 8 * few : few;
}

Test(survey_faults, all_nodes_agree_on_one_result)
{
    for (uint32_t seed = 1; seed <= seeds(2000); seed++)
        cr_assert(eq(int, run(seed, true), GOOD), "seed %u", seed);
}

/* The schedules can show a fault: without votes some nodes freeze different sets. */
Test(survey_faults, a_freeze_without_votes_is_found)
{
    uint32_t differ = 0;
    for (uint32_t seed = 1; seed <= 500; seed++)
        differ += run(seed, false) != GOOD;
    cr_assert(gt(u32, differ, 0));
}
