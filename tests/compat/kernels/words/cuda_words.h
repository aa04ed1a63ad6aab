// The words of CUDA that Hearth's kernels use.
#pragma once
#include "lanes.h"

#define __device__
#define __forceinline__ inline
#define __global__ static

struct Place { unsigned x; };
inline Place blockIdx, blockDim, threadIdx;

template <typename T> T __ldg(const T *place) { return *place; }
inline float __uint_as_float(unsigned bits) { return same_bits<float>(bits); }
inline unsigned __float_as_uint(float number) { return same_bits<unsigned>(number); }
inline float __shfl_xor_sync(unsigned mask, float number, int far) {
    if (mask != 0xffffffff) {
        std::fprintf(stderr, "a shuffle without all lanes\n");
        std::exit(4);
    }
    int lane = group.lane;
    return group.exchange(number)[lane ^ far];
}
