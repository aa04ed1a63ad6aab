"""The small words of English by what they do in a description of a picture. A table alone."""

from __future__ import annotations

from typing import Final

_LINES: Final = """
article: a an the this that these those my your his her our their its some any every each another other
no: no without not never neither isnt arent dont doesnt wasnt minus lacking except cannot cant hardly zero 0 sans
or: or nor
and: and plus
break: but with while where as has have having containing featuring alongside then also who which wearing holding carrying
is: is are was were be looks seems coloured colored colour color painted of
on: on against onto upon riding
preposition: in beside besides near next by close together alongside at around along from to into through across beyond
hidden: behind front inside
between: between
one: one 1 single
both: both all
it: it them him
silent: nobody none nothing please me i we you he she they us am would like want wants let see can could for when if whose
silent: paint paints draw draws drawn show shows make makes create give there here picture pictures image images drawing illustration painting
silent: photo photograph scene view poster art artwork something thing things style kind type form shape shaped size sized called named
silent: very so really quite just only too bit much more nice beautiful pretty cute lovely sweet good simple peaceful colourful colorful
silent: stands stand standing stood sits sit sitting sat lies lie lying lay flies fly flying swims swim swimming sails sailing floats float floating
silent: drifts grows grow growing grazing graze grazes shines shine shining rising hanging hangs waits waiting goes going comes coming falls falling
silent: drives driving seen alone place placed side corner row air full up down away out off own distance foreground
silent: masterpiece best quality detailed high resolution hd 4k 8k
"""
PREDICATES: Final = ("is", "are", "was", "were", "be", "looks", "seems")
"""What is said after them is said of a thing before."""
ROLE_OF: Final = {word: line.split(":")[0] for line in _LINES.split("\n") if line for word in line.split(":")[1].split()}
NUMBERS: Final = {
    "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "hundred": 100, "thousand": 1000,
}  # fmt: skip
