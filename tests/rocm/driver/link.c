// The connection of a process to the device process, which listens at /dev/kfd, a Unix socket. One request at a time.
#define _GNU_SOURCE
#include "driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int connection = -1;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

int link_open(void) {
    int file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "/dev/kfd"};
    if (file >= 0 && connect(file, (struct sockaddr *)&name, sizeof name) != 0) {
        int problem = errno;
        close(file);
        errno = problem;
        return -1;
    }
    return file;
}

void link_use(int file) { connection = file; }

static void lost(const char *what) {
    fprintf(stderr, "simulated GPU: the device process is gone (%s: %s)\n", what, strerror(errno));
    abort();
}

struct reply link_ask(struct request asked, int file) {
    struct iovec part = {&asked, sizeof asked};
    char room[CMSG_SPACE(sizeof file)] = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (file >= 0) {
        message.msg_control = room;
        message.msg_controllen = sizeof room;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof file), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(header), &file, sizeof file);
    }
    struct reply answer;
    pthread_mutex_lock(&one_at_a_time);
    while (sendmsg(connection, &message, MSG_NOSIGNAL) < 0) {
        if (errno != EINTR) lost("sendmsg");
    }
    ssize_t got;
    while ((got = recv(connection, &answer, sizeof answer, 0)) != sizeof answer) {
        if (got >= 0 || errno != EINTR) lost("recv");
    }
    pthread_mutex_unlock(&one_at_a_time);
    return answer;
}
