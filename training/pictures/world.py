"""Say what can be in a picture: the nouns with their colours and zones, lands, times, weather, styles. Tables alone."""

from __future__ import annotations

from dataclasses import dataclass

COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "grey", "white", "black")
SIZES = {"small": 0.78, "": 1.0, "big": 1.3}
PLACES = {
    "middle": (0.5, 0.5), "left": (0.22, 0.5), "right": (0.78, 0.5), "top": (0.5, 0.23), "bottom": (0.5, 0.77),
    "top left": (0.23, 0.24), "top right": (0.77, 0.24), "bottom left": (0.23, 0.76), "bottom right": (0.77, 0.76),
}  # fmt: skip
COLUMNS = ("left", "middle", "right")
TIMES = ("day", "sunset", "night")
GROUNDS = ("hills", "snow", "desert", "sea")
WEATHERS = ("", "clouds", "rain", "snowfall", "rainbow")
STYLES = ("", "watercolour", "pencil", "lamp")
MOST_THINGS = 4
BACKGROUNDS = ("white", "blue", "pink", "yellow", "green", "orange", "grey", "purple")
"""One of them is behind things whose background is not said."""
OPEN_TIMES = ("day", "sunset")
"""One of them is painted where no time is said; night only where it is asked for."""
FAINT = {"hills": ("green",), "snow": ("white",), "desert": ("yellow", "orange", "brown"), "sea": ("blue",)}
"""Before a land these colours are lost: no thing gets them that did not ask for them."""


@dataclass(frozen=True, slots=True)
class Noun:
    """`natural` are the colours it has where none is said, `zones` where it stands in a landscape: sky, land or sea; none: plain
    backgrounds alone. `scale` is its size beside other nouns."""

    natural: tuple[str, ...]
    zones: tuple[str, ...] = ()
    scale: float = 1.0


LAND, SKY, SEA = ("land",), ("sky",), ("sea",)
NOUNS = {
    "circle": Noun(COLOURS), "square": Noun(COLOURS), "triangle": Noun(COLOURS), "star": Noun(("yellow",)), "heart": Noun(("red",)),
    "diamond": Noun(("blue",)),
    "sun": Noun(("yellow",), SKY), "moon": Noun(("yellow",), SKY, 0.9), "crescent moon": Noun(("yellow",), SKY),
    "cloud": Noun(("white",), SKY), "balloon": Noun(("red", "orange", "blue"), SKY), "kite": Noun(("red", "yellow", "green"), SKY),
    "bird": Noun(("blue", "black", "red"), SKY), "butterfly": Noun(("orange", "blue", "purple"), SKY),
    "house": Noun(("red", "white", "yellow", "blue"), LAND, 1.15), "castle": Noun(("grey",), LAND, 1.3),
    "lighthouse": Noun(("red",), ("land", "sea"), 1.35), "windmill": Noun(("white",), LAND, 1.3), "tent": Noun(("orange", "green"), LAND),
    "bridge": Noun(("brown", "red", "grey"), ("land", "sea"), 1.35),
    "tree": Noun(("green",), LAND, 1.2), "pine": Noun(("green",), LAND, 1.25), "palm": Noun(("green",), LAND, 1.3),
    "cactus": Noun(("green",), LAND), "flower": Noun(("red", "pink", "purple", "yellow"), LAND), "mushroom": Noun(("red",), LAND),
    "person": Noun(("blue", "red", "green"), LAND, 1.1), "cat": Noun(("orange", "black", "grey"), LAND),
    "dog": Noun(("brown", "black", "white"), LAND), "horse": Noun(("brown", "black", "white"), LAND, 1.15),
    "rabbit": Noun(("white", "brown", "grey"), LAND), "snowman": Noun(("white",), LAND, 1.1), "car": Noun(("red", "blue", "yellow"), LAND),
    "boat": Noun(("white", "red", "yellow"), SEA, 1.15), "fish": Noun(("orange", "blue"), SEA), "duck": Noun(("yellow", "white"), SEA),
    "whale": Noun(("blue", "grey"), SEA, 1.1), "apple": Noun(("red", "green")), "cup": Noun(("white", "blue", "red")),
}  # fmt: skip
SHAPES = ("circle", "square", "triangle", "star", "heart", "diamond")
LIGHTS = {"day": ("sun",), "sunset": ("sun",), "night": ("moon", "crescent moon")}


def zone_of(kind: str, ground: str) -> str:
    """Return where this noun stands in a landscape of this ground: sky, land or sea; empty where it cannot."""
    zones = NOUNS[kind].zones
    here = "sea" if ground == "sea" else "land"
    return "sky" if "sky" in zones else here if here in zones else ""
