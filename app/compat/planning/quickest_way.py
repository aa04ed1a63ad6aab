"""Choose the way to compute one attention call: the fastest measured for its shape, else by a rule. Pure, no torch."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, get_args

from app.compat.machine.verdicts import Subject

By = Literal["torch", "native", "folded", "own"]


class Shape(NamedTuple):
    """The properties that decide how fast a call is."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    head_dim: int
    masked: bool
    causal: bool
    dtype: str
    """It computes in this dtype, by torch's name."""

    @property
    def groups(self) -> int:
        return self.heads // self.kv_heads


class Way(NamedTuple):
    """torch's kernel, with grouped heads native or folded into the queries; or Hearth's own arithmetic."""

    by: By
    rows: int = 0
    """So many queries are taken at a time; 0: all at once with torch's kernels, as many as are fast in own arithmetic."""


OWN: Final = Way("own")
FEW_ROWS: Final = 8
MANY_NUMBERS: Final = 1 << 20
BRIEF_NUMBERS: Final = 1 << 18
"""Under one query of grouped heads in float32 torch is the fastest with cold caches up to so many keys."""
LONG_QUERIES: Final = 128
CAUSAL_ROWS: Final = 64
SMALL_SCORES: Final = 1 << 19


def is_reading_bound(rows: int, numbers: int) -> bool:
    """Return whether reading keys dominates: few queries over keys too large for a cache."""
    return rows <= FEW_ROWS and numbers >= MANY_NUMBERS


def is_brief(rows: int, numbers: int) -> bool:
    """Return whether one query has so few keys that folding costs more than it saves."""
    return rows == 1 and numbers <= BRIEF_NUMBERS


def has_choice(shape: Shape) -> bool:
    """Return whether there is a choice; small calls go straight to torch."""
    few = is_reading_bound(shape.queries, shape.batch * shape.kv_heads * shape.keys * shape.head_dim // 2)
    return shape.groups > 1 or few or shape.batch * shape.heads * shape.queries * shape.keys > SMALL_SCORES


def round_up_lengths(shape: Shape) -> Shape:
    """Round lengths up to the next power of two, so that a growing cache is measured a few times, not a thousand."""
    return shape._replace(queries=_up(shape.queries), keys=_up(shape.keys))


def _up(count: int) -> int:
    return 1 << (count - 1).bit_length()


def choose_by_rule(shape: Shape, folds: bool, native: bool, fast_bfloat16: bool) -> Way:
    """Choose the way on a CPU if none was measured. `folds`: grouped heads may be folded into the queries; `native`:
    torch's own grouped attention is correct.

    Figures are times relative to torch's own kernel on two Zen 4 cores with torch 2.13, batch 2, medians of interleaved
    runs. A step of 16 heads over 1024 keys of width 128: float32 own 0.73 to 1.0, but 1.6 on a Xeon, with AVX512 and
    without, so torch's until the machine has measured it; bfloat16 own 0.35 to 0.7; over 256 keys 1.5 and 1.1. Over 4
    shared heads of 1024 and 3072 keys: float32 own 0.56 and 0.47, folded 0.64 and 0.63;
    bfloat16 folded 0.15 and 0.13, own 0.21 and 0.18; masked alike. A causal clip over 4 shared heads: of 512 folded in
    chunks of 64 0.72 and 0.65, of 1024 0.90 and 0.84, of 128 1.1 and 1.0; folded at once 1.0 to 1.2. A prompt of 512
    without a causal mask: folded 0.96 and 0.88. Pictures of 4096 and 9216 tokens: own 1.2 to 1.4 in float32, 0.91
    (width 128) to 1.1 (width 40) in bfloat16; torch's kernel in chunks 1.0 to 1.4.
    """
    numbers = shape.batch * shape.kv_heads * shape.keys * shape.head_dim
    few = is_reading_bound(shape.groups * shape.queries, numbers if shape.groups > 1 else numbers // 2)
    if shape.groups > 1:
        if not folds:
            return Way("torch")
        if few and shape.dtype == "float32":
            return OWN
        if native and shape.dtype == "float32" and not shape.masked and not shape.causal and is_brief(shape.queries, numbers):
            return Way("native")
        if shape.causal and not shape.masked and shape.queries >= LONG_QUERIES:
            # Masked keys are skipped: by torch's kernel, and better still chunk by chunk.
            return Way("folded", CAUSAL_ROWS) if shape.queries >= 2 * LONG_QUERIES else Way("native" if native else "folded")
        return Way("folded")
    return OWN if few and shape.dtype == "bfloat16" and fast_bfloat16 else Way("torch")


def way_subject(shape: Shape) -> Subject:
    """Return the subject of the verdict that names the fastest way for this shape."""
    flags = [name for name, on in (("masked", shape.masked), ("causal", shape.causal)) if on]
    return Subject.way(" ".join(["x".join(map(str, shape[:6])), shape.dtype, *flags]))


def parse_shape(subject: Subject) -> Shape | None:
    """Return the shape, or None if the subject is not a shape's."""
    sizes, *rest = subject.name.split(" ")
    numbers = sizes.split("x")
    if subject.kind != "way" or not rest or len(numbers) != 6 or not all(map(str.isdecimal, numbers)):
        return None
    batch, heads, kv_heads, queries, keys, head_dim = map(int, numbers)
    return Shape(batch, heads, kv_heads, queries, keys, head_dim, "masked" in rest, "causal" in rest, rest[0])


def way_words(way: Way) -> str:
    return f"{way.by} {way.rows}"


def parse_way(words: str) -> Way | None:
    by, _, rows = words.partition(" ")
    return Way(by, int(rows)) if by in get_args(By) and rows.isdecimal() else None  # type: ignore[arg-type]
