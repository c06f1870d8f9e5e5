// Where the lanes of a wave meet: who goes on together, and what each lane gets.
#include "scheduler.h"

namespace hip_cpu {

LaneMask Scheduler::wave_operation(WaveOp op, unsigned line, LaneMask mask, LaneMask value, unsigned source,
                                   LaneMask* collected) {
    const unsigned number = current_->linear / launch_->wave_size;
    const unsigned lane = current_->linear % launch_->wave_size;
    Wave& wave = waves_[number];
    const std::uint64_t key = static_cast<std::uint64_t>(line) << 8 | static_cast<unsigned>(op);
    if (mask != active_lanes && !(mask >> lane & 1)) {
        std::fprintf(stderr,
                     "HIP on CPU: line %u: lane %u of a wave of %u calls a _sync operation whose mask 0x%llx does "
                     "not name it.\n",
                     line, lane, launch_->wave_size, mask);
        std::abort();
    }
    if (wave.waiting == 0) {
        wave.key = key;
        wave.mask = mask;
        wave.mixed = false;
    }
    wave.mixed |= key != wave.key || mask != wave.mask;
    wave.lanes[lane] = {current_, key, mask, value, 0, collected, source};
    wave.waiting |= 1ull << lane;
    if (!try_release(wave, true)) suspend();
    return wave.lanes[lane].result;
}

// Lets the waiting lanes go on if whoever they wait for is there; whether the current lane was among them.
bool Scheduler::try_release(Wave& wave, bool keep_current) {
    if (wave.waiting == wave.live && !wave.mixed) {
        release(wave, wave.waiting, keep_current);
        return true;
    }
    if (!keep_current) return false;
    const unsigned lane = current_->linear % launch_->wave_size;
    const LaneMask mask = wave.lanes[lane].mask;
    if (mask == active_lanes || (mask & wave.live & ~wave.waiting)) return false;
    const LaneMask group = group_of(wave, lane);
    if (mask & wave.live & ~group) return false;
    release(wave, group, true);
    return true;
}

// The waiting lanes that are at the same operation with the same mask as `lane`.
LaneMask Scheduler::group_of(const Wave& wave, unsigned lane) const {
    LaneMask group = 0;
    for (LaneMask left = wave.waiting; left; left &= left - 1) {
        const int other = __builtin_ctzll(left);
        if (wave.lanes[other].key == wave.lanes[lane].key && wave.lanes[other].mask == wave.lanes[lane].mask) {
            group |= 1ull << other;
        }
    }
    return group;
}

void Scheduler::release(Wave& wave, LaneMask group, bool keep_current) {
    LaneMask ballot = 0;
    for (LaneMask left = group; left; left &= left - 1) {
        const int lane = __builtin_ctzll(left);
        ballot |= static_cast<LaneMask>(wave.lanes[lane].value != 0) << lane;
    }
    if (static_cast<WaveOp>(wave.lanes[__builtin_ctzll(group)].key & 0xff) == WaveOp::together) {
        run_together(wave, group);
    }
    for (LaneMask left = group; left; left &= left - 1) {
        const int lane = __builtin_ctzll(left);
        wave.lanes[lane].result = result_of(wave, group, lane, ballot);
        if (!(keep_current && wave.lanes[lane].fiber == current_)) make_ready(wave.lanes[lane].fiber);
    }
    wave.waiting &= ~group;
}

// The lanes wait in their calls, so what they brought is still there, and they find the results in it.
void Scheduler::run_together(const Wave& wave, LaneMask group) const {
    Together* lanes[64];
    unsigned count = 0;
    bool same = true;
    for (LaneMask left = group; left; left &= left - 1) {
        lanes[count] = reinterpret_cast<Together*>(wave.lanes[__builtin_ctzll(left)].value);
        same &= lanes[count++]->run == lanes[0]->run;
    }
    if (same && count == lanes[0]->lanes && count == launch_->wave_size) {
        lanes[0]->run(lanes);
        return;
    }
    const uint3 b = context.block_index;
    const unsigned line = static_cast<unsigned>(wave.lanes[__builtin_ctzll(group)].key >> 8);
    std::fprintf(stderr,
                 "HIP on CPU: block (%u, %u, %u): %u lanes of a wave of %u are at the %s operation of line %u, which "
                 "takes a wave of %u with all lanes%s. On a GPU the result is undefined.\n",
                 b.x, b.y, b.z, count, launch_->wave_size, lanes[0]->name, line, lanes[0]->lanes,
                 same ? "" : " at the same operation");
    std::abort();
}

LaneMask Scheduler::result_of(const Wave& wave, LaneMask group, unsigned lane, LaneMask ballot) const {
    const Wave::Lane& self = wave.lanes[lane];
    switch (static_cast<WaveOp>(self.key & 0xff)) {
        case WaveOp::shuffle:
            return self.source < 64 && (group >> self.source & 1) ? wave.lanes[self.source].value : 0;
        case WaveOp::ballot:
            return ballot;
        case WaveOp::any:
            return ballot != 0;
        case WaveOp::all:
            return ballot == group;
        case WaveOp::collect:
            for (LaneMask left = group; left; left &= left - 1) {
                const int other = __builtin_ctzll(left);
                self.collected[other] = wave.lanes[other].value;
            }
            return group;
        case WaveOp::active:
        case WaveOp::sync:
        case WaveOp::together:
            break;
    }
    return group;
}

// Of the diverged groups of a wave, the one earliest in the source that may go on: loops finish before what
// follows them, as on a GPU. A group with a mask may go on only when every live lane of the mask is in it.
LaneMask Scheduler::releasable_group(const Wave& wave) const {
    LaneMask best = 0;
    std::uint64_t best_key = ~0ull;
    for (LaneMask left = wave.waiting; left;) {
        const unsigned lane = __builtin_ctzll(left);
        const LaneMask group = group_of(wave, lane);
        left &= ~group;
        const bool complete = (wave.lanes[lane].mask & wave.live & ~group) == 0;
        if (complete && wave.lanes[lane].key < best_key) {
            best = group;
            best_key = wave.lanes[lane].key;
        }
    }
    return best;
}

// Nobody can go on: every live thread waits, and some meeting is not complete.
void Scheduler::resolve_stall() {
    const unsigned waves = (threads_ + launch_->wave_size - 1) / launch_->wave_size;
    bool progress = false;
    unsigned stuck = waves;
    for (unsigned w = 0; w < waves; ++w) {
        if (waves_[w].waiting == 0) continue;
        const LaneMask group = releasable_group(waves_[w]);
        if (group) {
            release(waves_[w], group, false);
            progress = true;
        } else {
            stuck = w;
        }
    }
    if (!progress) fail_wave(stuck);
}

void Scheduler::fail_wave(unsigned wave_number) {
    const uint3 b = context.block_index;
    const Wave& wave = waves_[wave_number];
    const int lane = __builtin_ctzll(wave.waiting);
    std::fprintf(stderr,
                 "HIP on CPU: block (%u, %u, %u), wave %u: lane %d waits at the _sync operation of line %u for lanes "
                 "0x%llx, of which 0x%llx are somewhere else. On a GPU this hangs.\n",
                 b.x, b.y, b.z, wave_number, lane, static_cast<unsigned>(wave.lanes[lane].key >> 8),
                 wave.lanes[lane].mask, wave.lanes[lane].mask & wave.live & ~group_of(wave, lane));
    std::abort();
}

LaneMask wave_operation(WaveOp op, unsigned line, LaneMask mask, LaneMask value, unsigned source,
                        LaneMask* collected) noexcept {
    return active->wave_operation(op, line, mask, value, source, collected);
}

}  // namespace hip_cpu
