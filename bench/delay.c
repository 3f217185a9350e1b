/* SPDX-License-Identifier: Apache-2.0 */
/* A switch of Ethernet that holds every frame: `delay MILLISECONDS DEVICE...`.
 *
 * What comes in by a device leaves, so much later and in the same order, by the device behind which its
 * target was last seen, or by all others while it was not seen. Frames are as large as the sender's kernel
 * makes them (64 KiB with segmentation offload), so few are handled. Runs until it is killed; says
 * what failed. Frames beyond FRAMES_MAX under way are dropped, as a switch would. */
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define DEVICES_MAX 16u
#define FRAMES_MAX 16384u
#define FRAME_BYTES (sizeof(struct virtio_net_hdr) + 65536u + 256u)
#define SOCKET_BYTES (64 << 20)
#define SECOND 1000000000

struct frame {
    int64_t due;
    uint32_t from;
    size_t bytes;
    unsigned char *data; /* the kernel's note on checksum and segments, then the frame */
};

static struct pollfd devices[DEVICES_MAX];
static unsigned char behind[DEVICES_MAX][ETH_ALEN]; /* the address last seen there */
static uint32_t device_count;
static struct frame queue[FRAMES_MAX];
static uint64_t queued, sent; /* numbers of frames since the start */

static _Noreturn void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int64_t now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * SECOND + time.tv_nsec;
}

static struct pollfd open_device(const char *name)
{
    int on = 1, bytes = SOCKET_BYTES;
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    int descriptor = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    address.sll_ifindex = (int)if_nametoindex(name);
    if (descriptor < 0 || address.sll_ifindex == 0 ||
        setsockopt(descriptor, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) < 0 ||
        setsockopt(descriptor, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) < 0 ||
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) < 0 ||
        setsockopt(descriptor, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) < 0 ||
        bind(descriptor, (struct sockaddr *)&address, sizeof address) < 0)
        fail(name);
    return (struct pollfd){.fd = descriptor, .events = POLLIN};
}

/* What is lost would be measured as delay. */
static void tell_dropped(void)
{
    static bool told;
    if (!told)
        (void)fprintf(stderr, "delay: frames are dropped: this is delay and loss\n");
    told = true;
}

static void take_frames(uint32_t from, int64_t due)
{
    static unsigned char frame[FRAME_BYTES];
    ssize_t bytes;
    while ((bytes = recv(devices[from].fd, frame, sizeof frame, MSG_TRUNC)) > 0) {
        const unsigned char *source = frame + sizeof(struct virtio_net_hdr) + ETH_ALEN;
        if (queued - sent == FRAMES_MAX || (size_t)bytes > sizeof frame) {
            tell_dropped();
            continue;
        }
        unsigned char *data = malloc((size_t)bytes);
        if (data == NULL)
            fail("memory");
        memcpy(data, frame, (size_t)bytes);
        memcpy(behind[from], source, ETH_ALEN);
        queue[queued++ % FRAMES_MAX] =
            (struct frame){.due = due, .from = from, .bytes = (size_t)bytes, .data = data};
    }
    if (bytes < 0 && errno != EAGAIN && errno != EINTR)
        fail("recv");
}

static void send_frame(const struct frame *frame)
{
    const unsigned char *target = frame->data + sizeof(struct virtio_net_hdr);
    uint32_t to = 0;
    while (to < device_count && memcmp(behind[to], target, ETH_ALEN) != 0)
        to++;
    for (uint32_t i = 0; i < device_count; i++)
        if (i != frame->from && (to == i || to == device_count) &&
            send(devices[i].fd, frame->data, frame->bytes, 0) < 0) {
            if (errno != EAGAIN && errno != ENOBUFS)
                fail("send");
            tell_dropped();
        }
    free(frame->data);
}

static void forward(int64_t delay)
{
    for (;;) {
        int64_t wait = queued == sent ? SECOND : queue[sent % FRAMES_MAX].due - now();
        struct timespec time = {.tv_nsec = wait < 0 ? 0 : wait < SECOND ? wait : SECOND - 1};
        if (ppoll(devices, device_count, &time, NULL) < 0 && errno != EINTR)
            fail("poll");
        int64_t due = now() + delay;
        for (uint32_t i = 0; i < device_count; i++)
            if (devices[i].revents != 0)
                take_frames(i, due);
        while (sent < queued && queue[sent % FRAMES_MAX].due <= now())
            send_frame(&queue[sent++ % FRAMES_MAX]);
    }
}

int main(int count, char **arguments)
{
    double milliseconds = count < 4 ? 0 : strtod(arguments[1], NULL);
    if (!(milliseconds > 0 && milliseconds <= 1000) || count - 2 > (int)DEVICES_MAX) {
        (void)fprintf(stderr, "Usage: %s MILLISECONDS DEVICE DEVICE...\n", arguments[0]);
        return 2;
    }
    while ((int)device_count < count - 2) {
        devices[device_count] = open_device(arguments[2 + device_count]);
        device_count++;
    }
    (void)puts("ready");
    (void)fflush(stdout);
    forward((int64_t)(milliseconds * 1e6));
    return 0;
}
