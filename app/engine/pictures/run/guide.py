"""Make the map by which a picture guides another: as it is, its edges, its depth, or the poses of its people."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter
from PIL.PngImagePlugin import PngInfo

from app.base.atomic_write import replacing
from app.base.foreign_formats import decode, open_picture
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.parts import GUIDE
from app.engine.models.on_disk import Located
from app.engine.models.picture_readers import FINDER
from app.engine.pictures.families.depth_file import see_depth
from app.engine.pictures.families.pose_file import see_poses
from app.engine.pictures.run.input_images import crop_to, have_one_shape
from app.engine.pictures.run.skeleton import draw_poses

Floats = NDArray[np.float32]
MADE_OF: Final = "Made of"
"""Under this name a kept map tells of the picture that it was made of."""
WEAK: Final = 100 / 255
STRONG: Final = 200 / 255
"""An edge has these slopes, as everybody takes for Canny's: one that reaches the second is drawn as far as it stays above the first."""
BLUR_PIXELS: Final = 0.8
NOTHING_SEEN: Final[Mapping[str, Sentence]] = {
    "edges": say("guide.empty", "No edges were found in the guide. Choose a picture with clearer shapes, or use it as it is."),
    "depth": say("guide.flat", "No depth was seen in the guide. Choose a picture of a scene, or use it as it is."),
    "pose": say("guide.nobody", "No people were seen in the guide. Choose a picture that shows them larger, or use it as it is."),
}
_NEXT: Final = ((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1))


def keep_guide(job: Path, picture: Image.Image, made: str, width: int, height: int, reader: Located | None = None) -> Image.Image:
    """Return the map for a picture of this size, which lies beside what it guides, where the page shows it: made once for a job, however often that is
    resumed."""
    fitted = crop_to(picture, width, height)
    made_of = f"{made} {width}x{height} {hashlib.sha256(fitted.tobytes()).hexdigest()}"
    with suppress(OSError), open_picture(job / GUIDE, ("PNG",)) as kept:
        if kept.info.get(MADE_OF) == made_of:
            return decode(kept, "RGB")
    guide, told = make_guide(fitted, made, reader), PngInfo()
    told.add_text(MADE_OF, made_of)
    with replacing(job / GUIDE) as unfinished:
        guide.save(unfinished, "PNG", pnginfo=told)
    return guide


def make_guide(fitted: Image.Image, made: str, reader: Located | None = None) -> Image.Image:
    """Return the map of a picture; raise a Trouble if it shows nothing to go by. `reader`: where the model lies that sees it."""
    seen = _make(fitted, made, reader)
    if seen is None:
        raise Trouble(NOTHING_SEEN[made])
    return seen


def _make(fitted: Image.Image, made: str, reader: Located | None) -> Image.Image | None:
    if reader is not None and made == "depth":
        return see_depth(reader.folder, fitted)
    if reader is not None and made == "pose":
        return draw_poses(see_poses(reader.folder, reader.companions[FINDER], fitted), fitted.size)
    if made != "edges":
        return fitted
    edges = find_edges(fitted)
    return Image.fromarray(np.where(edges, np.uint8(255), np.uint8(0))).convert("RGB") if edges.any() else None


def note_cut(picture: Image.Image, width: int, height: int) -> Sentence | None:
    """Say so if the guide has another shape, as its edge is cut off then."""
    if have_one_shape(picture, width, height):
        return None
    return say(
        "guide.cut",
        "The guide is {own} and the picture {size}, so the guide was cut to its shape.",
        own=f"{picture.width} x {picture.height}",
        size=f"{width} x {height}",
    )


def find_edges(picture: Image.Image) -> NDArray[np.bool_]:
    """Find edges as Canny does: the ridges of the slope, strong ones with the weak ones that hang on to them."""
    colours = np.asarray(picture.convert("RGB").filter(ImageFilter.GaussianBlur(BLUR_PIXELS)), np.float32) / 255
    slope, ridge = _find_ridges(np.pad(colours, ((1, 1), (1, 1), (0, 0)), mode="edge"))
    return _hang_on(ridge & (slope >= STRONG), ridge & (slope >= WEAK))


def _find_ridges(colours: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the slope (Sobel's) of the colour that changes most, and where it is steepest across the edge. `colours` have a border of one pixel."""
    around = {(down, across): _shift(colours, down, across) for down in (-1, 0, 1) for across in (-1, 0, 1)}
    rise = around[1, -1] + 2 * around[1, 0] + around[1, 1] - around[-1, -1] - 2 * around[-1, 0] - around[-1, 1]
    run = around[-1, 1] + 2 * around[0, 1] + around[1, 1] - around[-1, -1] - 2 * around[0, -1] - around[1, -1]
    steepest = (np.abs(rise) + np.abs(run)).argmax(-1)[..., None]
    rise, run = (np.take_along_axis(each, steepest, -1)[..., 0] for each in (rise, run))
    slope: Floats = np.abs(rise) + np.abs(run)
    wide = np.pad(slope, 1)
    toward = np.round(np.arctan2(rise, run) / (np.pi / 4)).astype(int) % len(_NEXT)
    ahead = np.choose(toward, [_shift(wide, *each) for each in _NEXT])
    behind = np.choose((toward + 4) % len(_NEXT), [_shift(wide, *each) for each in _NEXT])
    return slope, (slope > behind) & (slope >= ahead)


def _shift(wide: Any, down: int, across: int) -> Any:
    return wide[1 + down : wide.shape[0] - 1 + down, 1 + across : wide.shape[1] - 1 + across]


def _hang_on(strong: NDArray[np.bool_], weak: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the strong pixels and all weak ones that touch them, directly or through others."""
    width = strong.shape[1] + 2
    left, found = np.pad(weak & ~strong, 1).ravel(), np.pad(strong, 1).ravel()
    steps = np.array([down * width + across for down, across in _NEXT])
    front = np.flatnonzero(found)
    while front.size:
        near = np.unique((front[:, None] + steps).ravel())
        front = near[left[near]]
        found[front], left[front] = True, False
    return found.reshape(strong.shape[0] + 2, width)[1:-1, 1:-1]
