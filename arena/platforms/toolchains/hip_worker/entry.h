// A candidate's C function: found in its library, and called with arguments that only the judge knows the types of.
#pragma once

#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// What the judge is told: whose fault, and what happened.
struct Failure : std::runtime_error {
    Failure(const char* blame, const std::string& detail) : std::runtime_error(detail), blame(blame) {}
    const char* blame;
};

struct Argument {
    std::uint64_t bits;
    bool floating;
};

// Both conventions in use (x86-64 System V, AArch64 Linux) give integers and pointers the integer registers in order,
// floats the floating registers in order, and whatever is left a stack word each, in order. So one prototype with all
// registers and enough stack words serves every signature of such arguments.
class Frame {
  public:
    explicit Frame(const std::vector<Argument>& arguments) {
        std::size_t integers = 0, doubles = 0, words = 0;
        for (const Argument& one : arguments) {
            if (one.floating && doubles < most_doubles) std::memcpy(&doubles_[doubles++], &one.bits, sizeof one.bits);
            else if (!one.floating && integers < most_integers) integers_[integers++] = one.bits;
            else if (words < most_words) words_[words++] = one.bits;
            else throw Failure("load_error", "the entry has more arguments than the worker can pass");
        }
        has_words_ = words != 0;
    }

    // What the function returns; a narrower result leaves the upper half undefined.
    template <class Result> Result call(void* function) const {
        return has_words_ ? with_words<Result>(function, std::make_index_sequence<most_words>())
                          : with_words<Result>(function, std::make_index_sequence<0>());
    }

  private:
#if defined(__aarch64__)
    static constexpr std::size_t most_integers = 8;
#else
    static constexpr std::size_t most_integers = 6;
#endif
    static constexpr std::size_t most_doubles = 8, most_words = 48;
    using Word = std::uint64_t;

    template <std::size_t> using WordAt = std::uint64_t;

    template <class Result, std::size_t... W> Result with_words(void* function, std::index_sequence<W...> words) const {
        return in_registers<Result>(function, words, std::make_index_sequence<most_integers>());
    }

    template <class Result, std::size_t... W, std::size_t... I>
    Result in_registers(void* function, std::index_sequence<W...>, std::index_sequence<I...>) const {
        using Function = Result (*)(WordAt<I>..., double, double, double, double, double, double, double, double,
                                    WordAt<W>...);
        const double* d = doubles_;
        return reinterpret_cast<Function>(function)(integers_[I]..., d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7],
                                                    words_[W]...);
    }

    Word integers_[most_integers] = {};
    double doubles_[most_doubles] = {};
    Word words_[most_words] = {};
    bool has_words_ = false;
};

class Entry {
  public:
    Entry(const std::string& path, const std::string& name) : name_(name) {
        library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library_) throw Failure("load_error", dlerror());
        function_ = dlsym(library_, name.c_str());
        if (!function_) throw Failure("load_error", dlerror());
        size_function_ = dlsym(library_, (name + "_workspace").c_str());
    }

    // How much scratch memory it asks for with these axes; asks for none where it exports no such function.
    bool scratch_bytes(const std::vector<std::int64_t>& axes, std::size_t& bytes) const {
        if (!size_function_) return false;
        std::vector<Argument> arguments;
        for (const std::int64_t axis : axes) arguments.push_back({static_cast<std::uint64_t>(axis), false});
        bytes = Frame(arguments).call<std::size_t>(size_function_);
        return true;
    }

    int call(const Frame& frame) const { return frame.call<int>(function_); }
    const std::string& name() const { return name_; }

  private:
    std::string name_;
    void* library_ = nullptr;
    void* function_ = nullptr;
    void* size_function_ = nullptr;
};
