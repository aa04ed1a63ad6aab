"""Test how poses are drawn: the pixels and the colour of a limb, what is left out, several people, any size."""

from __future__ import annotations

import numpy as np
from PIL import Image

from app.engine.pictures.run.skeleton import COLOURS, draw_poses

RIGHT_SHOULDER, RIGHT_ELBOW, LEFT_SHOULDER = 6, 8, 5


def pose(**points: tuple[float, float, float]) -> np.ndarray:
    """Make a pose of points by COCO's numbers (`p6`), each with how certain it is; all others are not."""
    made = np.zeros((17, 3), np.float32)
    for name, values in points.items():
        made[int(name[1:])] = values
    return made


def draw(*poses: np.ndarray, size: tuple[int, int] = (512, 512)) -> np.ndarray:
    drawn = draw_poses(np.stack(poses), size)
    assert drawn is not None and drawn.size == size
    return np.asarray(drawn)


def test_a_limb_has_its_pixels_and_its_colour() -> None:
    """The right upper arm is OpenPose's third limb: an ellipse from joint to joint, four pixels to either side, darker than its points."""
    pixels = draw(pose(p6=(100, 200, 0.9), p8=(200, 200, 0.9)))
    rows, columns = np.mgrid[:512, :512]
    ellipse = ((columns - 150) / 50) ** 2 + ((rows - 200) / 4) ** 2 <= 1
    joints = [(rows - 200) ** 2 + (columns - x) ** 2 <= 16 for x in (100, 200)]
    np.testing.assert_array_equal((pixels == (153, 102, 0)).all(-1), ellipse & ~joints[0] & ~joints[1])
    assert [*np.flatnonzero(ellipse[:, 150])] == list(range(196, 205)), "as wide as it was when control models were trained"
    for joint, colour in zip(joints, ((255, 170, 0), (255, 255, 0)), strict=True):
        np.testing.assert_array_equal((pixels == colour).all(-1), joint)
    assert not pixels[~(ellipse | joints[0] | joints[1])].any(), "all else is black"


def test_all_points_and_limbs_are_drawn_in_their_own_colours() -> None:
    head = {"p0": (256, 80, 1.0), "p1": (276, 60, 1.0), "p2": (236, 60, 1.0), "p3": (300, 70, 1.0), "p4": (212, 70, 1.0)}
    arms = {
        "p5": (320, 150, 1.0),
        "p6": (190, 150, 1.0),
        "p7": (350, 230, 1.0),
        "p8": (160, 230, 1.0),
        "p9": (360, 310, 1.0),
        "p10": (150, 310, 1.0),
    }
    legs = {"p11": (290, 300, 1.0), "p12": (220, 300, 1.0), "p13": (300, 390, 1.0), "p14": (210, 390, 1.0)}
    feet = {"p15": (305, 480, 1.0), "p16": (205, 480, 1.0)}
    colours = {tuple(each) for each in draw(pose(**head, **arms, **legs, **feet)).reshape(-1, 3).tolist()}
    limbs = {tuple(int(each * 0.6) for each in colour) for colour in COLOURS[:17]}
    assert colours >= {*COLOURS} and colours - {*COLOURS, (0, 0, 0)} == limbs


def test_the_neck_is_between_the_shoulders_and_needs_both() -> None:
    assert tuple(draw(pose(p5=(300, 100, 0.8), p6=(200, 120, 0.8)))[110, 250]) == COLOURS[1]
    one = draw(pose(p5=(300, 100, 0.8), p6=(200, 120, 0.29)))
    assert tuple(one[100, 300]) == COLOURS[5] and not one[:, :290].any(), "an uncertain point is left out with the limbs that end in it"


def test_several_people_are_drawn_as_large_as_the_picture_asks() -> None:
    one, other = pose(p0=(100, 100, 0.9)), pose(p0=(900, 500, 0.9))
    pixels = draw(one, other, size=(2048, 1024))
    nose = (pixels == COLOURS[0]).all(-1)
    assert nose[100, 92:109].all() and nose[500, 892:909].all() and nose.sum() < 2 * 17 * 17


def test_nobody_is_no_map() -> None:
    assert draw_poses(np.zeros((0, 17, 3), np.float32), (64, 64)) is None
    assert draw_poses(np.stack([pose(p0=(10, 10, 0.2))]), (64, 64)) is None
    assert isinstance(draw_poses(np.stack([pose(p0=(-90, 10, 0.9))]), (64, 64)), Image.Image), "outside of the picture is no fault"
