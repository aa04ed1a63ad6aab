// A group of 32 lanes on a processor: each lane runs by itself, and is begun anew once all have given what one of them asks for.
#pragma once
#include <array>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

constexpr int LANES_OF_A_GROUP = 32;
using Given = std::array<float, LANES_OF_A_GROUP>;

struct Group {
    std::vector<Given> given; // at each exchange, by each lane
    size_t known = 0, met = 0;
    int lane = 0;
    std::jmp_buf back;

    const Given &exchange(float number) {
        if (met < known)
            return given[met++];
        given[met][lane] = number;
        std::longjmp(back, 1);
    }
};
inline Group group;

template <typename Run> void run_group(Run run) {
    group.given.clear();
    for (group.known = 0;; group.known++) {
        group.given.emplace_back();
        volatile int waiting = 0;
        for (group.lane = 0; group.lane < LANES_OF_A_GROUP; group.lane++) {
            group.met = 0;
            if (setjmp(group.back))
                waiting = waiting + 1;
            else
                run(group.lane);
        }
        if (!waiting)
            return;
        if (waiting != LANES_OF_A_GROUP) {
            std::fprintf(stderr, "only %d lanes of a group take part in a sum\n", waiting);
            std::exit(3);
        }
    }
}

struct uint2 { alignas(8) uint32_t x; uint32_t y; };
struct uint4 { alignas(16) uint32_t x; uint32_t y, z, w; };

template <typename To, typename From> To same_bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To made;
    std::memcpy(&made, &from, sizeof made);
    return made;
}

inline float half_to_float(uint16_t bits) {
    uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
    float size = exponent == 31 ? same_bits<float>(0x7f800000u | fraction << 13)
        : exponent             ? same_bits<float>((exponent + 112) << 23 | fraction << 13)
                               : fraction * 0x1p-24f;
    return bits & 0x8000 ? -size : size;
}

inline uint16_t float_to_half(float number) {
    uint32_t bits = same_bits<uint32_t>(number), size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
    if (size > 0x7f800000)
        return 0x7e00;
    if (size >= 0x477ff000)
        return sign | 0x7c00;
    if (size < 0x38800000) // subnormal: whole numbers of 2 to the -24th, to the nearest even one by adding 2 to the -1st
        return sign | (same_bits<uint32_t>(same_bits<float>(size) + 0.5f) & 0xffff);
    return sign | ((size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13);
}
