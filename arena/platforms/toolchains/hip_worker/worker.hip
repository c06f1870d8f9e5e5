// The worker of HIP candidates: obeys the judge one message at a time, and says honestly what went wrong.
//
// Started by the fork server behind the sandbox, with the descriptors of its channel and of its flags. It holds no
// Python and no PyTorch, so that a candidate finds nothing here that computes. Honesty is not relied upon: a worker
// can only make its own candidate fail. What it computes is in the shared buffers.
#ifdef ARENA_WORKER_CPU
#include "device_cpu.h"
#else
#include "device_gpu.h"
#endif

#include <cstdlib>
#include <map>
#include <memory>
#include <new>

#include "binding.h"
#include "channel.h"
#include "confinement.h"
#include "flags.h"

namespace {

constexpr double alert_s = 0.02;
constexpr int out_of_memory = 2;  // hipErrorOutOfMemory, and cudaErrorMemoryAllocation

enum class Kind : std::uint8_t { load = 1, bind, release, call, arrange, prepare, pass, flush, report };

class Worker {
  public:
    // `flags`: those by which passes are timed; none where messages do.
    explicit Worker(std::unique_ptr<Flags> flags) : flags_(std::move(flags)) {}

    // The answer to one message, as JSON; empty where flags have said it.
    std::string answer(const std::string& frame, const std::vector<int>& files) {
        prepared_ = false;
        try {
            return obey(frame, files);
        } catch (const Failure& problem) {
            return failed(problem.blame, problem.what());
        } catch (const std::bad_alloc&) {
            return failed("out_of_memory", "the worker has no memory left");
        }
    }

    // Whether the next message is a timed one, and worth staying awake for.
    bool alert() const { return prepared_ && Device::spins; }

  private:
    std::string obey(const std::string& frame, const std::vector<int>& files) {
        Reader message(frame);
        const Kind kind = static_cast<Kind>(message.number<std::uint8_t>());
        switch (kind) {
            case Kind::load: load(message); break;
            case Kind::bind: bind(message, files); break;
            case Kind::release: release(); break;
            case Kind::call: call(message); break;
            case Kind::arrange: arrange(message); break;
            case Kind::prepare: prepare(); break;
            case Kind::pass: return timed(pass(message.text()));
            case Kind::flush: pass(message.text()); break;  // outputs were written in place
            case Kind::report: return "{\"type\":\"Kernels\",\"kernels\":[]}";
            default: throw Malformed("a message of no known kind");
        }
        return done(0.0);
    }

    void load(Reader& message) {
        const std::string path = message.text(), name = message.text();
        message.end();
        Device::fix_local_memory();
        entry_ = std::make_unique<Entry>(path, name);
    }

    void bind(Reader& message, const std::vector<int>& files) {
        release();
        binding_ = std::make_unique<Binding>(message, files, loaded());
    }

    void release() {
        passes_.clear();
        if (!binding_) return;
        Device::synchronize();
        binding_.reset();
    }

    void call(Reader& message) {
        const auto set = message.number<std::uint32_t>();
        const auto order = message.number<std::uint64_t>();
        message.end();
        issue(bound().frame(set, nullptr), order);
        Device::synchronize();
        const std::string overrun = bound().overrun();
        if (!overrun.empty()) throw Failure("launch_error", overrun);
    }

    void issue(std::uint32_t set, Device::Stream stream) {
        issue(bound().frame(set, stream));
    }

    void issue(const Frame& frame, std::uint64_t order = 0) {
        const int code = Device::call(loaded(), frame, order);
        if (code == 0) return;
        const std::string said = "`" + loaded().name() + "` returned error " + named(code);
        if (code == out_of_memory) throw Failure("out_of_memory", said + ": the device has no memory left for it");
        throw Failure("launch_error", said);
    }

    // `1 (hipErrorInvalidValue)`; only the number where the runtime does not know it.
    static std::string named(int code) {
        constexpr int unknown = 999;
        const std::string number = std::to_string(code), name = Device::error_name(code);
        const bool known = name.rfind("hip", 0) == 0 || name.rfind("cuda", 0) == 0;
        if (!known || (code != unknown && name.find("ErrorUnknown") != std::string::npos)) return number;
        return number + " (" + name + ")";
    }

    // A pass; and, beside the first, one of next to nothing, by which the way to the device is gone beforehand.
    void arrange(Reader& message) {
        const std::string name = message.text();
        const bool graph = message.number<std::uint8_t>() != 0;
        std::vector<std::uint32_t> sets(message.number<std::uint32_t>());
        for (std::uint32_t& set : sets) set = message.number<std::uint32_t>();
        message.end();
        if (!rehearsal_) {
            Device::wait_until_idle();
            rehearsal_ = std::make_unique<Device::Pass>(Device::touching(), graph);
        }
        const auto issue_all = [this, frames = frames(sets), sets](Device::Stream stream) {
            if (!stream) {
                for (const Frame& frame : frames) issue(frame);
            } else {
                for (const std::uint32_t set : sets) issue(set, stream);
            }
        };
        passes_.erase(name);
        passes_[name] = std::make_unique<Device::Pass>(issue_all, graph);
    }

    // Worked out beforehand: nothing but the calls is in a timed pass.
    std::vector<Frame> frames(const std::vector<std::uint32_t>& sets) {
        std::vector<Frame> result;
        for (const std::uint32_t set : sets) result.push_back(bound().frame(set, nullptr));
        return result;
    }

    void prepare() {
        Device::fix_local_memory();
        if (binding_) binding_->resolve_addresses();
        Device::wait_until_idle();
        if (rehearsal_) rehearsal_->run();
        prepared_ = true;
    }

    Device::Pass& pass(const std::string& name) {
        const auto found = passes_.find(name);
        if (found == passes_.end()) throw Failure("launch_error", "no pass was arranged as " + name);
        return *found->second;
    }

    std::string timed(Device::Pass& chosen) {
        if (!flags_) return done(chosen.run());
        const bool began = flags_->run([&] { return chosen.run(); });
        if (!began) throw Failure("launch_error", "the judge did not let a pass begin");
        return "";
    }

    const Entry& loaded() const {
        if (!entry_) throw Failure("launch_error", "nothing is loaded");
        return *entry_;
    }

    Binding& bound() {
        if (!binding_) throw Failure("launch_error", "nothing is bound");
        return *binding_;
    }

    static std::string done(double seconds) {
        char number[64];
        std::snprintf(number, sizeof number, "%.9g", seconds);
        return std::string("{\"type\":\"Done\",\"worker_s\":") + number + "}";
    }

    static std::string failed(const char* blame, const std::string& detail) {
        return "{\"type\":\"Failed\",\"blame\":\"" + std::string(blame) + "\",\"detail\":" + quoted(detail) + "}";
    }

    std::unique_ptr<Flags> flags_;
    std::unique_ptr<Entry> entry_;
    std::unique_ptr<Binding> binding_;
    std::map<std::string, std::unique_ptr<Device::Pass>> passes_;
    std::unique_ptr<Device::Pass> rehearsal_;
    bool prepared_ = false;
};

}  // namespace

int main(int count, char** arguments) {
    if (count != 2 && count != 3) {
        std::fputs("usage: hip_worker CHANNEL [FLAGS]\n", stderr);
        return 2;
    }
    refuse_programs();
    try {
        Channel channel(std::atoi(arguments[1]));
        Worker worker(count == 3 ? std::make_unique<Flags>(std::atoi(arguments[2])) : nullptr);
        std::string frame;
        std::vector<int> files;
        while (channel.receive(frame, files, worker.alert() ? alert_s : 0.0)) {
            const std::string answer = worker.answer(frame, files);
            for (const int file : files) close(file);
            if (!answer.empty()) channel.send(answer);
        }
        _exit(0);  // what a candidate has registered for an ordinary end is not run
    } catch (const Malformed& problem) {
        std::fprintf(stderr, "the judge's message cannot be read: %s\n", problem.what());
        _exit(70);
    }
}
