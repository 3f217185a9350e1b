/* SPDX-License-Identifier: Apache-2.0 */
/* One frame is one datagram; see sgp/attach.h. */
#include "sgp/attach.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

_Static_assert(sizeof(struct sgp_attach_frame) == 512, "frames have no gaps");

union control { /* aligned room for one descriptor */
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

int sgp_attach_path(const char *node, char path[SGP_ATTACH_PATH_BYTES])
{
    const char *name = node != NULL ? node : getenv("SGP_SOCKET");
    if (name == NULL || *name == '\0')
        return SGP_E_STATE;
    bool is_path = strchr(name, '/') != NULL;
    int length = is_path ? snprintf(path, SGP_ATTACH_PATH_BYTES, "%s", name)
                         : snprintf(path, SGP_ATTACH_PATH_BYTES, "/run/sgpd/%s/attach.sock", name);
    return length < (int)SGP_ATTACH_PATH_BYTES ? 0 : -ENAMETOOLONG;
}

static int failed(void)
{
    return errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN ? SGP_E_CLOSED : -errno;
}

int sgp_attach_send(int socket, struct sgp_attach_frame *frame, int descriptor)
{
    frame->magic = SGP_ATTACH_MAGIC;
    frame->version = SGP_ATTACH_VERSION;
    union control control = {.bytes = {0}};
    struct iovec part = {.iov_base = frame, .iov_len = sizeof *frame};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof descriptor);
        memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? failed() : 0;
}

/* Return the first received descriptor. There is room for only one. */
static int take_descriptor(struct msghdr *message)
{
    int descriptor = -1;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header != NULL;
         header = CMSG_NXTHDR(message, header))
        if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
            header->cmsg_len == CMSG_LEN(sizeof descriptor))
            memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    return descriptor;
}

int sgp_attach_receive(int socket, struct sgp_attach_frame *ret_frame, int *ret_descriptor)
{
    union control control;
    struct iovec part = {.iov_base = ret_frame, .iov_len = sizeof *ret_frame};
    struct msghdr message = {.msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = CMSG_LEN(sizeof(int))}; /* CMSG_SPACE would admit a second one */
    ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (got < 0)
        return failed();
    if (got == 0)
        return SGP_E_CLOSED;
    *ret_descriptor = take_descriptor(&message);
    bool whole =
        got == (ssize_t)sizeof *ret_frame && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
    if (whole && ret_frame->magic == SGP_ATTACH_MAGIC && ret_frame->version == SGP_ATTACH_VERSION &&
        memchr(ret_frame->text, 0, sizeof ret_frame->text) != NULL)
        return 0;
    if (*ret_descriptor >= 0)
        (void)close(*ret_descriptor);
    *ret_descriptor = -1;
    return SGP_E_PROTOCOL;
}
