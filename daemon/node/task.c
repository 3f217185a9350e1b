/* SPDX-License-Identifier: Apache-2.0 */
/* The fixed pool of tasks; see task.h. */
#include "task.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* TRAIN, OUTER, PUBLISH, SKETCH, a copy for a neighbour, ADOPT, two saves and two measurements at
 * the end, a checkpoint, and a spare. SCALE occurs at most once for each out-link, and once at the
 * start. At the end of an exact cycle, and in the first round of the next, it occurs once for each
 * part. COMPENSATE comes before ABSORB, of one slot. A coded update has an additional PUBLISH for
 * each part. */
#define TASKS_OF_ROUND 13u

struct task_block { /* allocated together */
    struct task_block *next;
    struct task tasks[];
};

int tasks_reserve(struct daemon *daemon, const struct sgp_node_needs *needs)
{
    uint32_t count = TASKS_OF_ROUND + 2 * needs->receives + 2 * needs->links + 2 * needs->slices +
                     TASK_BACKGROUND_MAX;
    if (count <= daemon->task_count)
        return 0;
    uint32_t more = count - daemon->task_count;
    struct task_block *block = calloc(1, sizeof *block + more * sizeof block->tasks[0]);
    if (block == NULL)
        return -ENOMEM;
    block->next = daemon->task_blocks;
    daemon->task_blocks = block;
    daemon->task_count = count;
    for (uint32_t i = 0; i < more; i++) {
        block->tasks[i].daemon = daemon;
        task_give(&block->tasks[i]);
    }
    return 0;
}

void tasks_finish(struct daemon *daemon)
{
    while (daemon->task_blocks != NULL) {
        struct task_block *block = daemon->task_blocks;
        daemon->task_blocks = block->next;
        free(block);
    }
    daemon->free_tasks = NULL;
}

/* With its first bytes cleared. */
static struct task *take(struct daemon *daemon, size_t cleared, void (*run)(struct job *),
    void (*done)(struct job *, bool))
{
    struct task *task = daemon->free_tasks;
    if (task == NULL)
        return NULL;
    daemon->free_tasks = task->next;
    memset(task, 0, cleared);
    task->job = (struct job){.run = run, .done = done};
    task->daemon = daemon;
    task->trainer = daemon->prepared->trainer;
    return task;
}

struct task *task_take_work(
    struct daemon *daemon, void (*run)(struct job *), void (*done)(struct job *, bool))
{
    struct task *task = take(daemon, offsetof(struct task, work), run, done);
    if (task != NULL)
        atomic_init(&task->enough, false);
    return task;
}

struct task *task_take(
    struct daemon *daemon, void (*run)(struct job *), void (*done)(struct job *, bool))
{
    struct task *task = take(daemon, offsetof(struct task, error), run, done);
    if (task != NULL) { /* most of a task is the room of a text */
        task->error.code = 0;
        task->error.text[0] = '\0';
    }
    return task;
}

void task_give(struct task *task)
{
    task->next = task->daemon->free_tasks;
    task->daemon->free_tasks = task;
}
