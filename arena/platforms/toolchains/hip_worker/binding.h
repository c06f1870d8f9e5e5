// The arguments of every set, as the C function takes them, and scratch memory where it asks for some.
#pragma once

#include <algorithm>
#include <memory>

#include "frames.h"

class Binding {
  public:
    Binding(Reader& message, const std::vector<int>& files, const Entry& entry) {
        num_bytes_ = message.number<std::uint64_t>();
        handle_ = message.text();
        lasting_ = message.number<std::uint8_t>() != 0;
        sets_ = message.number<std::uint32_t>();
        const auto count = message.number<std::uint32_t>();
        for (std::uint32_t i = 0; i < count; ++i) arguments_.push_back(argument(message));
        const auto axes = message.number<std::uint32_t>();
        for (std::uint32_t i = 0; i < axes; ++i) axes_.push_back(message.number<std::int64_t>());
        message.end();
        base_ = Device::open(handle_, lasting_, num_bytes_, files);
        try {
            make_scratch(entry);
            for (Passed& one : arguments_) make_private(one);
        } catch (...) {
            release();
            throw;
        }
    }
    Binding(const Binding&) = delete;
    Binding& operator=(const Binding&) = delete;
    ~Binding() { release(); }

    // The call on one set, on a stream; the stream comes last.
    Frame frame(std::uint32_t set, Device::Stream stream) const {
        if (set >= sets_) throw Malformed("a set that is not bound");
        std::vector<Argument> passed;
        for (const Passed& one : arguments_) passed.push_back(value(one, set));
        for (const std::int64_t axis : axes_) passed.push_back({static_cast<std::uint64_t>(axis), false});
        if (scratch_) passed.push_back({address(scratch_ + set % regions_ * step_), false});
        passed.push_back({reinterpret_cast<std::uintptr_t>(Device::passed(stream)), false});
        return Frame(passed);
    }

    // Turns byte offsets, as the judge wrote them, into addresses of this process.
    void resolve_addresses() {
        for (const Passed& one : arguments_) {
            if (one.kind != Kind::addresses) continue;
            std::vector<std::uint64_t> values(one.span * sets_);
            const std::size_t width = one.span * sizeof(std::uint64_t);
            Device::read(values.data(), base_ + one.offset, one.pitch, width, sets_);
            for (std::size_t i = 0; i < values.size(); ++i) {
                values[i] += address(base_ + one.of_offset + i / one.span * one.of_pitch);
            }
            Device::write(one.own, width, values.data(), width, sets_);
        }
    }

    // Where something was written behind the scratch memory that was asked for; empty where nothing was.
    std::string overrun() const {
        if (!scratch_ || Device::spins) return "";
        std::vector<unsigned char> rest(step_ - asked_);
        for (std::size_t region = 0; region < regions_; ++region) {
            Device::read(rest.data(), scratch_ + region * step_ + asked_, rest.size(), rest.size(), 1);
            const auto odd = std::find_if(rest.begin(), rest.end(), [](unsigned char one) { return one != poison; });
            if (odd != rest.end()) {
                return "it wrote byte " + std::to_string(asked_ + static_cast<std::size_t>(odd - rest.begin())) +
                       " of its scratch memory, of which it asked for " + std::to_string(asked_) + " bytes";
            }
        }
        return "";
    }

  private:
    static constexpr int poison = 0xFF;  // NaN, as whatever float it is read
    static constexpr std::size_t align = 256, most_scratch = 256u << 20;
    enum class Kind : std::uint8_t { tensor, integer, floating, addresses };

    struct Passed {
        Kind kind;
        std::uint64_t offset, pitch;  // of a scalar the first is its bits
        std::uint64_t span = 0, of_offset = 0, of_pitch = 0;
        char* own = nullptr;
    };

    static std::uint64_t address(const char* at) { return reinterpret_cast<std::uintptr_t>(at); }

    Passed argument(Reader& message) {
        Passed one{static_cast<Kind>(message.number<std::uint8_t>()), message.number<std::uint64_t>(), 0};
        if (one.kind > Kind::addresses) throw Malformed("an argument of no known kind");
        if (one.kind == Kind::integer || one.kind == Kind::floating) return one;
        one.pitch = message.number<std::uint64_t>();
        inside(one.offset, one.pitch, 0);
        if (one.kind == Kind::tensor) return one;
        one.span = message.number<std::uint64_t>();
        one.of_offset = message.number<std::uint64_t>();
        one.of_pitch = message.number<std::uint64_t>();
        if (one.span > num_bytes_ / sizeof(std::uint64_t)) throw Malformed("more addresses than the buffer holds");
        inside(one.offset, one.pitch, one.span * sizeof(std::uint64_t));
        return one;
    }

    void inside(std::uint64_t offset, std::uint64_t pitch, std::uint64_t bytes) const {
        const bool fits = offset <= num_bytes_ && (sets_ < 2 || pitch <= num_bytes_ / (sets_ - 1)) &&
                          bytes <= num_bytes_ && (sets_ ? (sets_ - 1) * pitch : 0) + offset + bytes <= num_bytes_;
        if (!fits) throw Malformed("an argument lies outside of the buffer");
    }

    Argument value(const Passed& one, std::uint32_t set) const {
        if (one.kind == Kind::tensor) return {address(base_ + one.offset + set * one.pitch), false};
        if (one.kind == Kind::addresses) return {address(one.own + set * one.span * sizeof(std::uint64_t)), false};
        return {one.offset, one.kind == Kind::floating};
    }

    // Poisoned scratch memory for every set. A single one would stay in one slice of the device's cache, near to or far
    // from the block that reads it: that alone moved a 5 us kernel by 2 %. Where that is too much, sets share.
    void make_scratch(const Entry& entry) {
        if (!entry.scratch_bytes(axes_, asked_)) return;
        const std::size_t guard = Device::spins ? 0 : align;
        if (asked_ > static_cast<std::size_t>(-1) / 4) throw Failure("out_of_memory", "scratch of an impossible size");
        step_ = (std::max<std::size_t>(1, asked_) + guard + align - 1) / align * align;
        regions_ = std::max<std::size_t>(1, std::min<std::size_t>(sets_, most_scratch / step_));
        scratch_ = Device::allocate(regions_ * step_, poison);
    }

    void make_private(Passed& one) {
        if (one.kind == Kind::addresses) one.own = Device::allocate(std::max<std::size_t>(8, own_bytes(one)), 0);
    }

    std::size_t own_bytes(const Passed& one) const { return one.span * sets_ * sizeof(std::uint64_t); }

    void release() {
        for (Passed& one : arguments_) {
            if (one.own) Device::free(std::exchange(one.own, nullptr), std::max<std::size_t>(8, own_bytes(one)));
        }
        if (scratch_) Device::free(std::exchange(scratch_, nullptr), regions_ * step_);
        if (base_) Device::close(std::exchange(base_, nullptr), lasting_, num_bytes_);
    }

    std::uint64_t num_bytes_ = 0;
    std::string handle_;
    bool lasting_ = false;
    std::uint32_t sets_ = 0;
    std::vector<Passed> arguments_;
    std::vector<std::int64_t> axes_;
    char* base_ = nullptr;
    char* scratch_ = nullptr;
    std::size_t asked_ = 0, step_ = 0, regions_ = 0;
};
