// Messages of the judge's: flat, little-endian, every read checked against the end of the frame.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

// Raised where the judge's end says something that is no message: the process ends.
struct Malformed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Reader {
  public:
    explicit Reader(const std::string& frame) : at_(frame.data()), end_(frame.data() + frame.size()) {}

    template <class T> T number() {
        T value;
        std::memcpy(&value, take(sizeof(T)), sizeof(T));
        return value;
    }

    std::string text() {
        const std::uint32_t size = number<std::uint32_t>();
        return std::string(take(size), size);
    }

    void end() const {
        if (at_ != end_) throw Malformed("a frame is longer than its message");
    }

  private:
    const char* take(std::size_t size) {
        if (size > static_cast<std::size_t>(end_ - at_)) throw Malformed("a frame is shorter than its message");
        const char* const from = at_;
        at_ += size;
        return from;
    }

    const char* at_;
    const char* end_;
};
