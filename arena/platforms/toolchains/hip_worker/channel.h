// The worker's end of the socket to the judge: frames with their length before them, descriptors beside them.
#pragma once

#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "frames.h"

class Channel {
  public:
    explicit Channel(int socket) : socket_(socket) {}

    // The next frame; false when the judge has closed its end. Polls without sleeping for `alert_s` first.
    bool receive(std::string& frame, std::vector<int>& files, double alert_s) {
        files_.clear();
        std::uint32_t size = 0;
        if (!take(reinterpret_cast<char*>(&size), sizeof size, alert_s)) return false;
        size = ntohl(size);
        if (size > most_bytes) throw Malformed("a frame is too long");
        frame.resize(size);
        if (!take(&frame[0], size, 0.0)) throw Malformed("a frame was cut short");
        files = files_;
        return true;
    }

    void send(const std::string& body) {
        const std::uint32_t size = htonl(static_cast<std::uint32_t>(body.size()));
        const std::string whole = std::string(reinterpret_cast<const char*>(&size), sizeof size) + body;
        std::size_t done = 0;
        while (done < whole.size()) {
            const ssize_t sent = ::send(socket_, whole.data() + done, whole.size() - done, MSG_NOSIGNAL);
            if (sent > 0) done += static_cast<std::size_t>(sent);
            else if (!may_go_on(POLLOUT)) _exit(0);
        }
    }

  private:
    static constexpr std::uint32_t most_bytes = 16 << 20;
    static constexpr std::size_t most_files = 4;

    // Whether a call that did not get through is worth repeating; waits until it is.
    bool may_go_on(short event) {
        if (errno == EINTR) return true;
        if (errno != EAGAIN && errno != EWOULDBLOCK) return false;
        pollfd waiting{socket_, event, 0};
        return poll(&waiting, 1, -1) >= 0 || errno == EINTR;
    }

    bool take(char* to, std::size_t count, double alert_s) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(alert_s);
        std::size_t done = 0;
        while (done < count) {
            const ssize_t got = read_some(to + done, count - done);
            if (got == 0) return false;
            if (got > 0) done += static_cast<std::size_t>(got);
            else if (errno == EAGAIN && std::chrono::steady_clock::now() < until) continue;
            else if (!may_go_on(POLLIN)) return false;
        }
        return true;
    }

    ssize_t read_some(char* to, std::size_t count) {
        alignas(cmsghdr) char beside[CMSG_SPACE(most_files * sizeof(int))];
        iovec piece{to, count};
        msghdr message{};
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        message.msg_control = beside;
        message.msg_controllen = sizeof beside;
        const ssize_t got = recvmsg(socket_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (got <= 0) return got;
        for (cmsghdr* one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
            if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
            const std::size_t number = (one->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (std::size_t i = 0; i < number; ++i) {
                int file;
                std::memcpy(&file, CMSG_DATA(one) + i * sizeof file, sizeof file);
                files_.push_back(file);
            }
        }
        return got;
    }

    int socket_;
    std::vector<int> files_;
};

// A JSON string of printable ASCII; what is neither becomes a question mark, but for the ends of lines.
inline std::string quoted(const std::string& text) {
    static constexpr std::size_t most = 4000;
    std::string result = "\"";
    for (const char letter : text.size() > most ? text.substr(text.size() - most) : text) {
        if (letter == '\n') result += "\\n";
        else if (letter == '"' || letter == '\\') (result += '\\') += letter;
        else result += letter >= ' ' && letter <= '~' ? letter : '?';
    }
    return result + '"';
}
