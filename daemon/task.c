/* The fixed stock of jobs; see task.h. */
#include "task.h"

#include <errno.h>
#include <stdlib.h>

/* TRAIN, PUBLISH, a copy for a neighbour, ADOPT, two saves and two measurements at the end, a checkpoint,
 * and one to spare. SCALE comes at most once for each out-link and once at the start. */
#define TASKS_OF_ROUND 11u

int tasks_init(struct daemon *daemon)
{
    uint32_t count = TASKS_OF_ROUND + daemon->prepared->needs.receives + 2 * daemon->out_count +
                     DAEMON_CHORES_MAX;
    daemon->tasks = calloc(count, sizeof *daemon->tasks);
    if (daemon->tasks == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        daemon->tasks[i].daemon = daemon;
        task_give(&daemon->tasks[i]);
    }
    return 0;
}

void tasks_finish(struct daemon *daemon)
{
    free(daemon->tasks);
    daemon->tasks = NULL;
    daemon->free_tasks = NULL;
}

struct task *task_take(
    struct daemon *daemon, void (*run)(struct job *), void (*done)(struct job *, bool))
{
    struct task *task = daemon->free_tasks;
    if (task == NULL)
        return NULL;
    daemon->free_tasks = task->next;
    *task = (struct task){
        .job = {.run = run, .done = done},
        .daemon = daemon,
        .trainer = daemon->prepared->trainer,
    };
    return task;
}

void task_give(struct task *task)
{
    task->next = task->daemon->free_tasks;
    task->daemon->free_tasks = task;
}
