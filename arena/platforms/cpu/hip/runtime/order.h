// The order in which blocks, the waves of a block and the lanes of a wave begin: a GPU may choose any.
#pragma once

#include <cstdint>

namespace hip_cpu {

class Order {
  public:
    // `seed`: 0 for ascending order, 1 for descending order, 2 and 3 where nothing runs, else that of a shuffle. Mirrors `Call.order` of
    // `arena/processes/protocol.py`.
    explicit Order(std::uint64_t seed = 0) : seed_(seed) {
        for (std::uint64_t& key : keys_) {
            seed += 0x9e3779b97f4a7c15ull;  // SplitMix64
            key = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9ull;
            key = (key ^ key >> 27) * 0x94d049bb133111ebull;
            key ^= key >> 31;
        }
    }

    // The number of the item that begins at this turn; every item of `count` has one turn.
    std::uint64_t at(std::uint64_t turn, std::uint64_t count) const {
        if (seed_ == 0) return turn;
        if (seed_ == 1) return count - 1 - turn;
        if (count < 2) return turn;
        const unsigned bits = 64 - static_cast<unsigned>(__builtin_clzll(count - 1));
        do turn = mixed(turn, bits);
        while (turn >= count);  // a permutation of the next power of two, followed until it is back among `count`
        return turn;
    }

    bool runs_nothing() const { return seed_ == 2 || seed_ == 3; }

    bool lanes_descend() const { return seed_ == 1 || (seed_ != 0 && (keys_[0] >> 63) != 0); }

  private:
    static constexpr unsigned rounds = 4;

    // A permutation of the numbers of so many bits: each step can be undone.
    std::uint64_t mixed(std::uint64_t value, unsigned bits) const {
        const std::uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
        for (const std::uint64_t key : keys_) {
            value = (value * (key | 1) + (key >> 32)) & mask;
            value ^= value >> (bits / 2 + 1);
        }
        return value;
    }

    std::uint64_t seed_;
    std::uint64_t keys_[rounds];
};

}  // namespace hip_cpu
