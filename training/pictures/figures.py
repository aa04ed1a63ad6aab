"""Draw each noun of the world with a pen, in a main colour. One function a noun; figures fill a circle of radius one."""

from __future__ import annotations

import math
from collections.abc import Callable

from training.pictures.pen import Colour, Pen, Point, darker, lighter, mix, ring

INK: Colour = (40, 36, 46)
WOOD, BARK, SKIN, GLASS, CREAM = (128, 82, 58), (112, 76, 56), (240, 196, 160), (190, 224, 238), (250, 244, 228)
LAMP_LIGHT: Colour = (255, 216, 112)
Figure = Callable[[Pen, Colour], None]


def _star(outer: float, inner: float, n: int = 5) -> list[Point]:
    radii = [outer if i % 2 == 0 else inner for i in range(2 * n)]
    return [(r * math.sin(math.pi * i / n), 0.05 - r * math.cos(math.pi * i / n)) for i, r in enumerate(radii)]


def _heart(scale: float = 1.0) -> list[Point]:
    turn = [2 * math.pi * i / 48 for i in range(48)]
    curve = [(math.sin(a) ** 3, -(13 * math.cos(a) - 5 * math.cos(2 * a) - 2 * math.cos(3 * a) - math.cos(4 * a)) / 16) for a in turn]
    return [(1.0 * scale * x, scale * (y - 0.08)) for x, y in curve]


def circle(pen: Pen, c: Colour) -> None:
    pen.disc(c, 0, 0, 1)
    pen.disc(lighter(c, 0.25), -0.3, -0.34, 0.34)


def square(pen: Pen, c: Colour) -> None:
    pen.box(c, -0.86, -0.86, 0.86, 0.86)
    pen.box(lighter(c, 0.22), -0.66, -0.66, 0.1, -0.4)


def triangle(pen: Pen, c: Colour) -> None:
    pen.shape(c, [(0, -1), (1.05, 0.82), (-1.05, 0.82)])
    pen.shape(lighter(c, 0.22), [(0, -0.62), (0.2, -0.2), (-0.34, 0.4), (-0.5, 0.4)])


def star(pen: Pen, c: Colour) -> None:
    pen.shape(c, _star(1.12, 0.48))
    pen.shape(lighter(c, 0.3), _star(0.5, 0.24))


def heart(pen: Pen, c: Colour) -> None:
    pen.shape(c, _heart())
    pen.disc(lighter(c, 0.3), -0.42, -0.44, 0.2, 0.17)


def diamond(pen: Pen, c: Colour) -> None:
    pen.shape(c, [(-0.55, -0.75), (0.55, -0.75), (1, -0.2), (0, 1), (-1, -0.2)])
    pen.shape(lighter(c, 0.34), [(-0.55, -0.75), (0, -0.2), (-1, -0.2)])
    pen.shape(lighter(c, 0.2), [(-0.55, -0.75), (0.55, -0.75), (0, -0.2)])
    pen.shape(darker(c, 0.22), [(0, -0.2), (1, -0.2), (0, 1)])


def sun(pen: Pen, c: Colour) -> None:
    for i in range(8):
        a = math.pi * i / 4
        side = [(0.7 * math.cos(a + d), 0.7 * math.sin(a + d)) for d in (-0.3, 0.3)]
        pen.shape(c, [(1.3 * math.cos(a), 1.3 * math.sin(a)), *side], lit=True)
    pen.disc(lighter(c, 0.3), 0, 0, 0.68, lit=True)


def moon(pen: Pen, c: Colour) -> None:
    pale = lighter(c, 0.42)
    pen.disc(pale, 0, 0, 1, lit=True)
    for x, y, r in ((-0.35, -0.25, 0.22), (0.35, 0.3, 0.26), (0.25, -0.5, 0.13)):
        pen.disc(darker(pale, 0.12), x, y, r, lit=True)


def crescent_moon(pen: Pen, c: Colour) -> None:
    outer, inner = ring(1, 1, 0, 0, 50, 310), ring(0.82, 0.82, 0.42, 0, 290, 70)
    pen.shape(lighter(c, 0.42), [*outer, *inner], lit=True)


def cloud(pen: Pen, c: Colour) -> None:
    low = darker(c, 0.1)
    for colour, lift in ((low, 0.1), (c, 0)):
        for x, y, r in ((-0.75, 0.2, 0.42), (-0.2, -0.12, 0.6), (0.45, 0.02, 0.5), (0.92, 0.28, 0.34)):
            pen.disc(colour, x, y + lift, r)
        pen.box(colour, -0.8, 0.1 + lift, 0.95, 0.58 + lift)


def balloon(pen: Pen, c: Colour) -> None:
    pen.shape(c, [*ring(0.8, 0.8, 0, -0.35, 150, 390), (0.2, 0.62), (-0.2, 0.62)])
    pen.shape(lighter(c, 0.42), [*ring(0.3, 0.8, 0, -0.35, 170, 370), (0.1, 0.62), (-0.1, 0.62)])
    pen.box(WOOD, -0.24, 0.76, 0.24, 1.14)
    pen.stroke(INK, 0.05, [(-0.2, 0.62), (-0.22, 0.8)])
    pen.stroke(INK, 0.05, [(0.2, 0.62), (0.22, 0.8)])


def kite(pen: Pen, c: Colour) -> None:
    pen.stroke(INK, 0.07, [(0, 0.5), (-0.25, 0.85), (0.1, 1.05), (-0.15, 1.35)])
    pen.shape(c, [(0, -1.1), (0.75, -0.3), (0, 0.65), (-0.75, -0.3)])
    pen.shape(lighter(c, 0.4), [(0, -1.1), (0.75, -0.3), (0, -0.3)])
    pen.shape(darker(c, 0.22), [(-0.75, -0.3), (0, -0.3), (0, 0.65)])


def bird(pen: Pen, c: Colour) -> None:
    pen.shape(darker(c, 0.15), [(-0.5, 0.1), (-1.25, -0.1), (-1.15, 0.35)])
    pen.disc(c, -0.05, 0.12, 0.72, 0.42)
    pen.disc(c, 0.62, -0.2, 0.34)
    pen.shape((240, 160, 50), [(0.9, -0.28), (1.3, -0.12), (0.88, -0.02)])
    pen.shape(lighter(c, 0.3), [(0.25, 0), (-0.55, -0.95), (-0.6, 0.12)])
    pen.disc(INK if sum(c) > 250 else CREAM, 0.7, -0.26, 0.08)


def butterfly(pen: Pen, c: Colour) -> None:
    for side in (-1, 1):
        pen.disc(c, side * 0.56, -0.4, 0.52, 0.5)
        pen.disc(darker(c, 0.18), side * 0.44, 0.42, 0.4, 0.42)
        pen.disc(lighter(c, 0.5), side * 0.6, -0.42, 0.22)
    pen.disc(INK, 0, 0, 0.11, 0.75)
    for side in (-1, 1):
        pen.stroke(INK, 0.06, [(0, -0.65), (side * 0.25, -1.05)])


def house(pen: Pen, c: Colour) -> None:
    pen.box(c, -0.82, -0.2, 0.82, 1)
    pen.shape((142, 74, 62) if c[0] < 180 or c[1] > 90 else (92, 72, 76), [(-1.05, -0.18), (0, -1.05), (1.05, -0.18)])
    pen.box(WOOD if sum(c) > 260 else (196, 150, 110), -0.5, 0.32, -0.08, 1)
    pen.box(LAMP_LIGHT if pen.tint[0] < 0.7 else GLASS, 0.18, 0.12, 0.62, 0.56, lit=pen.tint[0] < 0.7)


def castle(pen: Pen, c: Colour) -> None:
    pen.box(c, -0.75, -0.1, 0.75, 1)
    for x in (-0.85, 0.85):
        pen.box(darker(c, 0.12), x - 0.28, -0.5, x + 0.28, 1)
        pen.shape((176, 66, 62), [(x - 0.38, -0.48), (x, -1.1), (x + 0.38, -0.48)])
    for x in (-0.42, 0, 0.42):
        pen.box(c, x - 0.13, -0.32, x + 0.13, -0.05)
    pen.shape(darker(WOOD, 0.3), [(-0.24, 1), *ring(0.24, 0.3, 0, 0.55, 180, 360), (0.24, 1)])


def lighthouse(pen: Pen, c: Colour) -> None:
    pen.shape((120, 110, 106), [(-0.75, 1.05), (-0.5, 0.78), (0.5, 0.78), (0.75, 1.05)])
    half = (0.38, 0.35, 0.32, 0.29, 0.26)
    for i in range(4):
        top, low = 0.8 - 0.34 * (i + 1), 0.8 - 0.34 * i
        pen.shape(c if i % 2 == 0 else CREAM, [(-half[i], low), (half[i], low), (half[i + 1], top), (-half[i + 1], top)])
    pen.box(LAMP_LIGHT, -0.2, -0.84, 0.2, -0.56, lit=True)
    pen.shape(darker(c, 0.2), [(-0.34, -0.82), (0, -1.16), (0.34, -0.82)])


def windmill(pen: Pen, c: Colour) -> None:
    pen.shape(c, [(-0.3, -0.35), (0.3, -0.35), (0.5, 1), (-0.5, 1)])
    pen.shape((142, 74, 62), [(-0.36, -0.33), (0, -0.72), (0.36, -0.33)])
    pen.box(WOOD, -0.15, 0.55, 0.15, 1)
    for turn in (25, 115, 205, 295):
        a = math.radians(turn)
        dx, dy = math.cos(a), math.sin(a)
        tip, side = (0.88 * dx, -0.4 + 0.88 * dy), (-0.2 * dy, 0.2 * dx)
        pen.shape(
            (206, 186, 158),
            [(0.12 * dx, -0.4 + 0.12 * dy), tip, (tip[0] + side[0], tip[1] + side[1]), (0.3 * dx + side[0], -0.4 + 0.3 * dy + side[1])],
        )
    pen.disc(INK, 0, -0.4, 0.08)


def tent(pen: Pen, c: Colour) -> None:
    pen.shape(c, [(0, -0.8), (1.1, 0.9), (-1.1, 0.9)])
    pen.shape(darker(c, 0.45), [(0, -0.35), (0.36, 0.9), (-0.36, 0.9)])
    pen.shape(lighter(c, 0.3), [(0, -0.8), (-0.42, 0.9), (-1.1, 0.9)])
    pen.shape(darker(c, 0.5), [(0, -0.2), (0.3, 0.9), (-0.3, 0.9)])


def bridge(pen: Pen, c: Colour) -> None:
    pen.shape(
        c,
        [
            (-1.1, -0.12),
            *ring(1.1, 0.28, 0, -0.12, 180, 360),
            (1.1, 0.2),
            (1.1, 0.85),
            (0.8, 0.85),
            *ring(0.8, 0.6, 0, 0.85, 360, 180),
            (-1.1, 0.85),
        ],
    )
    pen.stroke(darker(c, 0.35), 0.09, ring(1.1, 0.28, 0, -0.08, 180, 360))


def tree(pen: Pen, c: Colour) -> None:
    pen.shape(BARK, [(-0.13, 0), (0.13, 0), (0.18, 1), (-0.18, 1)])
    for x, y, r in ((-0.42, 0.02, 0.46), (0.42, 0.02, 0.46), (0, -0.42, 0.62)):
        pen.disc(c, x, y, r)
    pen.disc(lighter(c, 0.2), -0.2, -0.55, 0.28)


def pine(pen: Pen, c: Colour) -> None:
    deep = mix(c, (20, 70, 70), 0.35) if c[1] > c[0] + 30 else c
    pen.box(BARK, -0.12, 0.6, 0.12, 1)
    for foot, half, top in ((0.72, 0.78, -0.05), (0.2, 0.62, -0.55), (-0.3, 0.46, -1.08)):
        pen.shape(deep, [(-half, foot), (0, top), (half, foot)])
        pen.shape(lighter(deep, 0.14), [(-half, foot), (0, top), (-0.1, foot)])


def palm(pen: Pen, c: Colour) -> None:
    pen.shape(BARK, [(-0.02, -0.45), (0.14, -0.45), (0.02, 0.3), (0.06, 1), (-0.2, 1), (-0.18, 0.3)])
    for tip, bend in (
        ((-0.98, -0.2), (-0.6, -0.85)),
        ((-0.55, 0.1), (-0.5, -0.45)),
        ((0.98, -0.2), (0.65, -0.85)),
        ((0.6, 0.12), (0.55, -0.45)),
        ((0.05, -1.15), (-0.2, -0.9)),
    ):
        pen.shape(c, [(0.06, -0.5), bend, tip, (bend[0] * 0.75, bend[1] + 0.28)])
    pen.disc(darker(BARK), 0.06, -0.45, 0.12)


def cactus(pen: Pen, c: Colour) -> None:
    pen.stroke(c, 0.28, [(-0.1, 0.3), (-0.62, 0.25), (-0.62, -0.3)])
    pen.stroke(c, 0.28, [(0.1, 0.05), (0.62, 0), (0.62, -0.5)])
    pen.stroke(c, 0.46, [(0, 0.85), (0, -0.72)])
    pen.stroke(lighter(c, 0.25), 0.08, [(-0.08, 0.8), (-0.08, -0.7)])


def flower(pen: Pen, c: Colour) -> None:
    pen.stroke((74, 140, 74), 0.12, [(0, -0.2), (0, 1)])
    pen.shape((74, 140, 74), [(0, 0.75), (0.5, 0.3), (0.42, 0.72)])
    for i in range(6):
        a = math.pi * i / 3
        pen.disc(c, 0.4 * math.cos(a), -0.42 + 0.4 * math.sin(a), 0.29)
    pen.disc((250, 206, 80) if c[2] > 100 or c[1] < 150 else (150, 90, 50), 0, -0.42, 0.24)


def mushroom(pen: Pen, c: Colour) -> None:
    pen.shape(CREAM, [(-0.28, 0), (0.28, 0), (0.36, 0.95), (-0.36, 0.95)])
    pen.shape(c, [*ring(1, 0.95, 0, 0.12, 180, 360), (1, 0.2), (-1, 0.2)])
    for x, y, r in ((-0.5, -0.18, 0.16), (0.08, -0.5, 0.18), (0.55, -0.12, 0.15)):
        pen.disc(CREAM if sum(c) < 640 else (206, 60, 56), x, y, r)


def person(pen: Pen, c: Colour) -> None:
    for x in (-0.17, 0.17):
        pen.stroke((62, 60, 84), 0.22, [(x, 0.4), (x * 1.3, 0.95)])
    for side in (-1, 1):
        pen.stroke(SKIN, 0.15, [(side * 0.3, -0.2), (side * 0.62, 0.28)])
    pen.shape(c, [(-0.34, -0.32), (0.34, -0.32), (0.42, 0.5), (-0.42, 0.5)])
    pen.disc(SKIN, 0, -0.68, 0.34)
    pen.shape((96, 62, 44), [*ring(0.36, 0.38, 0, -0.7, 175, 365)])


def _head(pen: Pen, c: Colour, x: float, y: float, r: float) -> None:
    pen.disc(c, x, y, r)
    for side in (-1, 1):
        pen.disc(INK if sum(c) > 250 else CREAM, x + side * 0.4 * r, y - 0.05 * r, 0.14 * r)


def cat(pen: Pen, c: Colour) -> None:
    pen.stroke(c, 0.16, [(0.5, 0.8), (1.0, 0.6), (0.95, 0.05)])
    pen.disc(c, 0.05, 0.42, 0.56, 0.6)
    for side in (-1, 1):
        pen.shape(darker(c, 0.15), [(-0.2 + side * 0.12, -0.62), (-0.2 + side * 0.5, -1.1), (-0.2 + side * 0.5, -0.4)])
    _head(pen, c, -0.2, -0.35, 0.5)
    pen.shape((226, 120, 130), [(-0.3, -0.26), (-0.1, -0.26), (-0.2, -0.14)])
    pen.disc(lighter(c, 0.4), -0.05, 0.6, 0.25, 0.36)


def dog(pen: Pen, c: Colour) -> None:
    pen.stroke(c, 0.14, [(0.7, 0.1), (1.05, -0.35)])
    for x in (-0.45, -0.2, 0.4, 0.62):
        pen.stroke(darker(c, 0.12), 0.17, [(x, 0.3), (x, 0.92)])
    pen.disc(c, 0.1, 0.2, 0.7, 0.36)
    pen.disc(c, -0.62, -0.3, 0.4, 0.38)
    pen.disc(lighter(c, 0.25), -0.92, -0.14, 0.24, 0.18)
    pen.disc(INK, -1.1, -0.2, 0.09)
    pen.disc(darker(c, 0.35), -0.38, -0.26, 0.15, 0.36)
    pen.disc(INK if sum(c) > 250 else CREAM, -0.7, -0.4, 0.07)


def horse(pen: Pen, c: Colour) -> None:
    pen.stroke(darker(c, 0.4), 0.16, [(0.85, -0.05), (1.1, 0.55)])
    for x in (-0.5, -0.3, 0.5, 0.7):
        pen.stroke(darker(c, 0.12), 0.15, [(x, 0.2), (x, 0.98)])
    pen.disc(c, 0.12, 0.08, 0.78, 0.38)
    pen.shape(c, [(-0.62, 0.15), (-0.1, -0.15), (-0.48, -0.95), (-0.8, -0.8)])
    pen.shape(c, [(-0.5, -1.0), (-0.42, -0.7), (-1.1, -0.38), (-1.16, -0.58)])
    pen.shape(darker(c, 0.4), [(-0.46, -1.05), (-0.3, -0.95), (0.02, -0.2), (-0.2, -0.2)])
    pen.disc(INK if sum(c) > 250 else CREAM, -0.72, -0.72, 0.06)


def rabbit(pen: Pen, c: Colour) -> None:
    for x in (-0.36, -0.06):
        pen.disc(c, x, -0.82, 0.14, 0.42)
        pen.disc((240, 170, 176), x, -0.8, 0.06, 0.28)
    pen.disc(c, 0.2, 0.45, 0.62, 0.5)
    pen.disc(lighter(c, 0.5), 0.85, 0.4, 0.2)
    _head(pen, c, -0.24, -0.16, 0.42)
    pen.disc((226, 120, 130), -0.24, -0.04, 0.07)
    pen.disc(lighter(c, 0.3), -0.1, 0.88, 0.3, 0.12)


def snowman(pen: Pen, c: Colour) -> None:
    pen.disc(c, 0, 0.5, 0.6)
    pen.disc(darker(c, 0.05), 0, -0.22, 0.42)
    pen.disc(c, 0, -0.72, 0.3)
    pen.box(INK, -0.36, -1.0, 0.36, -0.9)
    pen.box(INK, -0.22, -1.3, 0.22, -0.95)
    pen.shape((240, 140, 52), [(0, -0.74), (0.42, -0.66), (0, -0.6)])
    pen.box((206, 62, 58), -0.36, -0.5, 0.36, -0.36)
    for y in (0.3, 0.6):
        pen.disc(INK, 0, y, 0.08)


def car(pen: Pen, c: Colour) -> None:
    pen.shape(c, [(-0.62, -0.05), (-0.4, -0.55), (0.38, -0.55), (0.68, -0.05)])
    pen.shape(GLASS, [(-0.46, -0.06), (-0.3, -0.42), (-0.04, -0.42), (-0.04, -0.06)])
    pen.shape(GLASS, [(0.06, -0.06), (0.06, -0.42), (0.3, -0.42), (0.5, -0.06)])
    pen.shape(c, [(-1.1, 0.0), (1.0, -0.06), (1.15, 0.2), (1.1, 0.5), (-1.12, 0.5)])
    for x in (-0.58, 0.6):
        pen.disc(INK, x, 0.5, 0.29)
        pen.disc((190, 190, 196), x, 0.5, 0.13)


def boat(pen: Pen, c: Colour) -> None:
    pen.stroke(BARK, 0.08, [(0, 0.35), (0, -1.1)])
    pen.shape(c, [(0.08, -1.1), (0.08, 0.25), (0.85, 0.25)])
    pen.shape(darker(c, 0.1), [(-0.1, -0.8), (-0.1, 0.25), (-0.7, 0.25)])
    pen.shape(WOOD, [(-1.05, 0.36), (1.1, 0.36), (0.7, 0.82), (-0.7, 0.82)])


def fish(pen: Pen, c: Colour) -> None:
    pen.shape(darker(c, 0.16), [(-0.55, 0), (-1.2, -0.52), (-1.02, 0), (-1.2, 0.52)])
    pen.shape(darker(c, 0.16), [(-0.2, -0.4), (0.12, -0.82), (0.4, -0.36)])
    pen.disc(c, 0.15, 0, 0.88, 0.52)
    pen.disc(lighter(c, 0.4), 0.05, 0.22, 0.5, 0.2)
    pen.disc(CREAM, 0.66, -0.14, 0.15)
    pen.disc(INK, 0.7, -0.14, 0.08)


def duck(pen: Pen, c: Colour) -> None:
    pen.shape(c, [*ring(0.9, 0.62, -0.1, 0.25, 0, 180), (-1.15, -0.1)])
    pen.disc(c, 0.5, -0.42, 0.4)
    pen.shape(c, [(0.15, -0.4), (0.8, -0.4), (0.8, 0.35), (0.1, 0.35)])
    pen.shape((240, 140, 46), [(0.82, -0.5), (1.25, -0.34), (0.82, -0.22)])
    pen.disc(darker(c, 0.14), -0.2, 0.32, 0.45, 0.25)
    pen.disc(INK if sum(c) > 250 else CREAM, 0.6, -0.5, 0.08)


def whale(pen: Pen, c: Colour) -> None:
    for side in (-1, 1):
        pen.stroke((214, 234, 244), 0.09, [(0.35, -0.5), (0.35 + side * 0.05, -0.85), (0.35 + side * 0.3, -0.95)])
    pen.shape(c, [(-0.7, 0.3), (-1.15, -0.1), (-1.3, -0.6), (-0.95, -0.45), (-0.7, -0.65), (-0.72, -0.2), (-0.5, 0.0)])
    pen.shape(c, [*ring(0.95, 0.68, 0.15, 0.25, 180, 360), *ring(0.95, 0.45, 0.15, 0.25, 0, 180)])
    pen.shape(lighter(c, 0.5), [*ring(0.85, 0.42, 0.2, 0.28, 10, 170)])
    pen.disc(INK if sum(c) > 250 else CREAM, 0.72, 0.08, 0.08)


def apple(pen: Pen, c: Colour) -> None:
    for x in (-0.34, 0.34):
        pen.disc(c, x, 0.15, 0.6, 0.75)
    pen.stroke(BARK, 0.12, [(0, -0.4), (0.1, -0.9)])
    pen.shape((92, 160, 80), [(0.1, -0.62), (0.42, -1.0), (0.78, -0.86), (0.5, -0.6)])
    pen.disc(lighter(c, 0.4), -0.46, -0.12, 0.16, 0.24)


def cup(pen: Pen, c: Colour) -> None:
    pen.stroke(c, 0.17, ring(0.36, 0.36, 0.68, 0.1, -80, 80))
    pen.shape(c, [(-0.75, -0.55), (0.75, -0.55), (0.6, 0.8), (-0.6, 0.8)])
    pen.disc(darker(c, 0.15), 0, -0.55, 0.75, 0.2)
    pen.disc((110, 70, 50), 0, -0.53, 0.6, 0.13)
    pen.shape(lighter(c, 0.3), [(-0.6, -0.3), (-0.4, -0.28), (-0.34, 0.6), (-0.5, 0.6)])


FIGURES: dict[str, Figure] = {
    "circle": circle, "square": square, "triangle": triangle, "star": star, "heart": heart, "diamond": diamond, "sun": sun, "moon": moon,
    "crescent moon": crescent_moon, "cloud": cloud, "balloon": balloon, "kite": kite, "bird": bird, "butterfly": butterfly,
    "house": house, "castle": castle, "lighthouse": lighthouse, "windmill": windmill, "tent": tent, "bridge": bridge, "tree": tree,
    "pine": pine, "palm": palm, "cactus": cactus, "flower": flower, "mushroom": mushroom, "person": person, "cat": cat, "dog": dog,
    "horse": horse, "rabbit": rabbit, "snowman": snowman, "car": car, "boat": boat, "fish": fish, "duck": duck, "whale": whale,
    "apple": apple, "cup": cup,
}  # fmt: skip
MIRRORED = {
    "bird",
    "cat",
    "dog",
    "horse",
    "rabbit",
    "fish",
    "duck",
    "whale",
    "car",
    "cup",
    "crescent moon",
    "kite",
    "house",
    "boat",
    "palm",
}
"""These may look to either side."""
