"""The text of the kernels: one to four lines by a weight, which is read once for all of them. One text for Metal and CUDA, after each one's words.

A group of 32 threads takes ROWS rows of the weight. Each thread reads STEP numbers of each row at a time, multiplies them with those of every line, and
the group adds up what its threads have. The lines are read from a cache, so that the weight is all that comes from memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Language = Literal["metal", "cuda"]
Bits = Literal[16, 8, 4]
"""A number of the weight has so many bits: halves, whole numbers with a scale a row, or whole numbers with a scale and a zero for each group of a row."""
MOST_LINES: Final = 4
ROWS: Final = 4
LANES: Final = 32
THREADS: Final = 128
STEP: Final = 8
GROUP: Final = 32


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a kernel is written for: the dtype of the lines and their products, and that of halves and scales."""

    lines: Literal["float32", "float16", "bfloat16"]
    halves: Literal["float16", "bfloat16"]


METAL: Final = """
#include <metal_stdlib>
using namespace metal;
#define INLINE inline
#define DEVICE device
#define OWN thread
#define READ(TYPE, PLACE) (*(device const TYPE *)(PLACE))
#define INDEX index
#define KERNEL(NAME) kernel void NAME(device const uchar *lines, device const uchar *weight, device const uchar *scales, device uchar *made, \\
    constant uint &rows, constant uint &columns, uint index [[thread_position_in_grid]])
INLINE float float_of(uint bits) { return as_type<float>(bits); }
INLINE uint bits_of(float number) { return as_type<uint>(number); }
INLINE float widen_half(ushort bits) { return float(as_type<half>(bits)); }
INLINE ushort narrow_half(float number) { return as_type<ushort>(half(number)); }
INLINE float sum_lanes(float number) { return simd_sum(number); }
"""
CUDA: Final = """
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
#define INLINE __device__ __forceinline__
#define DEVICE
#define OWN
#define READ(TYPE, PLACE) __ldg((const TYPE *)(PLACE))
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
#define KERNEL(NAME) extern "C" __global__ void NAME(const uchar *lines, const uchar *weight, const uchar *scales, uchar *made, \\
    uint rows, uint columns)
INLINE float float_of(uint bits) { return __uint_as_float(bits); }
INLINE uint bits_of(float number) { return __float_as_uint(number); }
INLINE float widen_half(ushort bits) { float wide; asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits)); return wide; }
INLINE ushort narrow_half(float number) { ushort bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(number)); return bits; }
INLINE float sum_lanes(float number) {
    for (int far = 16; far; far /= 2)
        number += __shfl_xor_sync(0xffffffff, number, far);
    return number;
}
"""
"""It does without a header: no wheel of torch has the one that knows halves."""

TEXT: Final = """
#define UNROLL _Pragma("unroll")

INLINE float widen(uint bits) {
    return HALF_IS_BFLOAT ? float_of(bits << 16) : widen_half(ushort(bits));
}

INLINE ushort narrow(float number) {
    if (!HALF_IS_BFLOAT)
        return narrow_half(number);
    uint bits = bits_of(number);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return 0x7fff;
    return ushort((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// What a thread reads of a row at a time, and the numbers in it. Four bits lie in pairs, the earlier one in the upper half of a byte.
#if BITS == 16
typedef uint4 Packed;
#elif BITS == 8
typedef uint2 Packed;
#else
typedef uint Packed;
#endif

INLINE void unpack(uint4 packed, OWN float (&numbers)[STEP]) {
    uint words[4] = {packed.x, packed.y, packed.z, packed.w};
    UNROLL for (int at = 0; at < STEP; at++)
        numbers[at] = widen(words[at / 2] >> at % 2 * 16 & 0xffff);
}

// 0x4b000000 is 2 to the 23rd, a float whose last bits count ones: two quick steps in place of a conversion, which old cards are slow at.
INLINE void unpack(uint2 packed, OWN float (&numbers)[STEP]) {
    uint words[2] = {packed.x ^ 0x80808080, packed.y ^ 0x80808080};
    UNROLL for (int at = 0; at < STEP; at++)
        numbers[at] = float_of(0x4b000000 | (words[at / 4] >> at % 4 * 8 & 255)) - 8388736.0f;
}

INLINE void unpack(uint packed, OWN float (&numbers)[STEP]) {
    UNROLL for (int at = 0; at < STEP; at++)
        numbers[at] = float_of(0x4b000000 | (packed >> (at ^ 1) * 4 & 15)) - 8388616.0f;
}

INLINE void read_line(DEVICE const uchar *lines, size_t at, OWN float (&numbers)[STEP]) {
#if LINE_BYTES == 2
    unpack(READ(uint4, lines + at * 2), numbers);
#else
    uint4 first = READ(uint4, lines + at * 4), second = READ(uint4, lines + at * 4 + 16);
    uint words[STEP] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
    UNROLL for (int each = 0; each < STEP; each++)
        numbers[each] = float_of(words[each]);
#endif
}

INLINE void write(DEVICE uchar *made, size_t at, float number) {
#if LINE_BYTES == 2
    ((DEVICE ushort *)made)[at] = narrow(number);
#else
    ((DEVICE float *)made)[at] = number;
#endif
}

// Read from memory while the numbers before are multiplied. Beyond the last column the last ones are read again, for nothing.
INLINE void read_ahead(
    DEVICE const uchar *weight, DEVICE const uchar *scales, OWN const size_t (&its)[ROWS], uint rows, uint columns, uint column,
    OWN Packed (&packed)[ROWS], OWN uint (&pairs)[ROWS]
) {
    column = column < columns ? column : columns - STEP;
    UNROLL for (int row = 0; row < ROWS; row++) {
        packed[row] = READ(Packed, weight + (its[row] * columns + column) / 8 * BITS);
        pairs[row] = BITS == 4 ? READ(uint, scales + (column / GROUP * size_t(rows) + its[row]) * 4) : 0;
    }
}

KERNEL(multiply) {
    uint lane = INDEX % LANES, first = INDEX / LANES * ROWS;
    if (first >= rows)
        return;
    float sums[ROWS][LINES];
    size_t its[ROWS]; // the last row stands for those beyond it
    UNROLL for (int row = 0; row < ROWS; row++) {
        its[row] = first + row < rows ? first + row : rows - 1;
        UNROLL for (int line = 0; line < LINES; line++)
            sums[row][line] = 0;
    }
    Packed ahead[ROWS];
    uint pairs_ahead[ROWS];
    read_ahead(weight, scales, its, rows, columns, lane * STEP, ahead, pairs_ahead);
    for (uint column = lane * STEP; column < columns; column += LANES * STEP) {
        Packed packed[ROWS];
        uint pairs[ROWS];
        UNROLL for (int row = 0; row < ROWS; row++)
            packed[row] = ahead[row], pairs[row] = pairs_ahead[row];
        read_ahead(weight, scales, its, rows, columns, column + LANES * STEP, ahead, pairs_ahead);
        float given[LINES][STEP], total[LINES];
        UNROLL for (int line = 0; line < LINES; line++) {
            read_line(lines, size_t(line) * columns + column, given[line]);
            total[line] = 0;
            UNROLL for (int at = 0; at < STEP; at++)
                total[line] += given[line][at];
        }
        UNROLL for (int row = 0; row < ROWS; row++) {
            float numbers[STEP], step = widen(pairs[row] & 0xffff), eight = widen(pairs[row] >> 16); // what one counts, and what 8 stands for
            unpack(packed[row], numbers);
            UNROLL for (int line = 0; line < LINES; line++) {
                float sum = 0;
                UNROLL for (int at = 0; at < STEP; at++)
                    sum += given[line][at] * numbers[at];
                sums[row][line] += BITS == 4 ? sum * step + total[line] * eight : sum;
            }
        }
    }
    UNROLL for (int row = 0; row < ROWS; row++)
        UNROLL for (int line = 0; line < LINES; line++) {
            float sum = sum_lanes(sums[row][line]);
            if (lane == 0 && first + row < rows)
                write(made, size_t(line) * rows + its[row], BITS == 8 ? sum * widen(READ(ushort, scales + its[row] * 2)) : sum);
        }
}
"""
"""A number of the weight takes BITS bits; where it takes 4, GROUP numbers of a row share a scale and a zero, which lie as (groups, rows, 2)."""


def write_source(language: Language, numbers: Numbers, lines: int, bits: Bits) -> str:
    """Return the whole text of the kernel `multiply` for so many lines, and a weight of so many bits a number."""
    known = {
        "LINES": lines, "BITS": bits, "ROWS": ROWS, "LANES": LANES, "STEP": STEP, "GROUP": GROUP,
        "LINE_BYTES": 4 if numbers.lines == "float32" else 2, "HALF_IS_BFLOAT": int(numbers.halves == "bfloat16"),
    }  # fmt: skip
    return {"metal": METAL, "cuda": CUDA}[language] + "".join(f"#define {name} {value}\n" for name, value in known.items()) + TEXT


def count_threads(rows: int) -> int:
    """Return how many threads a weight of so many rows takes: whole blocks of THREADS."""
    return -(-rows // (ROWS * THREADS // LANES)) * THREADS
