/* What the kernel's sockets allow: the bytes of a round in the pattern of a round, by plain blocking calls
 * and nothing else. A second thread writes while this one reads, unless a share is so small that it
 * surely fits into the socket. */
#include "ring.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/socket.h>

#define FITS_BYTES 16384u

struct giver {
    const struct ring_node *node;
    const float *vector;
    sem_t begin, end;
};

static void write_all(int descriptor, const void *data, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes;) {
        ssize_t count = send(descriptor, (const char *)data + done, bytes - done, MSG_NOSIGNAL);
        if (count <= 0)
            ring_fail("send");
        done += (uint64_t)count;
    }
}

static void read_all(int descriptor, void *data, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes;) {
        ssize_t count = recv(descriptor, (char *)data + done, bytes - done, 0);
        if (count <= 0)
            ring_fail("recv");
        done += (uint64_t)count;
    }
}

static void *give(void *argument)
{
    struct giver *giver = argument;
    const struct ring_node *node = giver->node;
    for (uint64_t round = 0; round < node->warmup + node->rounds; round++) {
        (void)sem_wait(&giver->begin);
        write_all(node->out[round % node->hops], giver->vector, node->bytes);
        (void)sem_post(&giver->end);
    }
    return NULL;
}

static struct stopwatch run(const struct ring_node *node)
{
    float *memory = ring_memory(node, 1 + node->hops);
    struct giver giver = {.node = node, .vector = memory};
    struct stopwatch start = {0};
    pthread_t thread;
    int threaded = node->bytes > FITS_BYTES;
    (void)sem_init(&giver.begin, 0, 0);
    (void)sem_init(&giver.end, 0, 0);
    if (threaded && pthread_create(&thread, NULL, give, &giver) != 0)
        ring_fail("thread");
    for (uint64_t round = 0; round < node->warmup + node->rounds; round++) {
        uint64_t hop = round % node->hops;
        char *into = (char *)memory + (1 + hop) * node->bytes;
        if (round == node->warmup)
            start = stopwatch_now();
        if (threaded)
            (void)sem_post(&giver.begin);
        else
            write_all(node->out[hop], memory, node->bytes);
        read_all(node->in[hop], into, node->bytes);
        if (threaded)
            (void)sem_wait(&giver.end);
    }
    return stopwatch_since(start, node->rounds);
}

int main(int count, char **arguments)
{
    return ring_main(count, arguments, run);
}
