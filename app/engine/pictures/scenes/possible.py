"""Make of what was read the nearest scene that the painter can paint, and say what that changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app.base.sentence import Sentence, say_to_all
from app.engine.pictures.scenes.drafts import Denied, Draft, Reading
from app.engine.pictures.scenes.scene import Group, Scene

COLUMNS = ("left", "middle", "right")


@dataclass(slots=True)
class Fitted:
    scene: Scene
    lost: list[str] = field(default_factory=list)
    """The prompt's words tell what is changed or left out."""
    reasons: list[Sentence] = field(default_factory=list)
    changed: bool = False
    """True: something unwanted was taken out."""
    times: tuple[str, ...] = ()
    """These times fit as well, if none was said."""
    unwanted: frozenset[str] = frozenset()
    """None of these values may be chosen for what was not said."""


def fit(found: Reading, denied: list[Denied], grammar: Mapping[str, Any]) -> Fitted:
    """Fit what was read to what the painter can paint. `denied`: what is unwanted besides."""
    fitting = _Fitting(found, [*found.denied, *denied], grammar)
    scene = fitting.make()
    return Fitted(
        scene, list(dict.fromkeys(fitting.lost)), fitting.reasons, fitting.changed, fitting.open_times(scene), fitting.list_unwanted()
    )


class _Fitting:
    def __init__(self, found: Reading, denied: list[Denied], grammar: Mapping[str, Any]) -> None:
        self.grammar, self.nouns = grammar, grammar["nouns"]
        self.denied, self.lost = denied, list(found.lost)
        self.reasons: list[Sentence] = []
        self.drafts = [draft for draft in found.drafts if not self._is_denied(draft)]
        self.said = {slot: [each for each in said if Denied(slot, each.value) not in self.denied] for slot, said in found.whole.items()}
        self.changed = len(self.drafts) < len(found.drafts) or self.said != found.whole

    def _is_denied(self, draft: Draft) -> bool:
        return any(each.slot == "noun" and each.value == draft.kind and each.colour in ("", draft.of("colour")) for each in self.denied)

    def make(self) -> Scene:
        time, weather, ground = self._one("time"), self._one("weather"), ""
        if weather == "" and self._one("mountains") == "" and not time and not self._one("ground") and not self.said.get("outdoors"):
            pairs = [(draft, self._group(draft)) for draft in self.drafts]
        else:
            ground = self._choose_ground()
            if ground:
                pairs = self._stand(ground)
            else:
                pairs = [(draft, self._group(draft)) for draft in self.drafts]
                self._lose("time", "weather", "mountains", "ground")
        scene = self._land(pairs, ground) if ground else self._plain(pairs)
        return replace(scene, style=self._single("style"))

    def open_times(self, scene: Scene) -> tuple[str, ...]:
        """List the times of a landscape whose time was not said, with the same light and in the same weather."""
        if not scene.ground or self.said.get("time"):
            return ()
        lights, only = self.grammar["lights"], self.grammar["only_at"].get(scene.weather, self.grammar["open_times"])
        shining = {group.kind for group in scene.groups} & {kind for kinds in lights.values() for kind in kinds}
        return tuple(time for time in self.grammar["open_times"] if time in only and shining <= {*lights[time]})

    def list_unwanted(self) -> frozenset[str]:
        return frozenset(name for each in self.denied for name in (each.value, self.nouns.get(each.value, {}).get("plural", each.value)))

    def _one(self, slot: str) -> str:
        return self.said[slot][0].value if self.said.get(slot) else ""

    def _single(self, slot: str) -> str:
        """Return the first value that was said, and name the others."""
        value = self._one(slot)
        self.lost += [each.typed for each in self.said.get(slot, []) if each.value != value]
        return value

    def _lose(self, *slots: str) -> None:
        self.lost += [each.typed for slot in slots for each in self.said.pop(slot, [])]

    def _group(self, draft: Draft) -> Group:
        return Group(draft.kind, self._colour(draft), draft.of("size"), int(draft.of("count") or 1), draft.of("place"))

    def _colour(self, draft: Draft) -> str:
        """Return the colour that was said; if it or the usual one is unwanted, another."""
        unwanted = {each.value for each in self.denied if each.slot == "colour"}
        own = self.nouns[draft.kind]["natural"]
        colour = draft.of("colour")
        if (colour or own[0]) not in unwanted:
            return colour
        return (
            next(each for each in (*own, *self.grammar["colours"]) if each not in unwanted) if unwanted < {*self.grammar["colours"]} else ""
        )

    def _zone(self, kind: str, ground: str) -> str:
        """Return where a thing is in a landscape: sky, land or sea; "" where it cannot be."""
        zones, here = self.nouns[kind]["zones"], "sea" if ground == "sea" else "land"
        return "sky" if "sky" in zones else here if here in zones else ""

    def _choose_ground(self) -> str:
        """Return the land that keeps the most of what was said; "" for a plain background."""
        said, weather = self._one("ground"), self._one("weather")
        usual = self.grammar["usual_ground"].get(weather, self.grammar["usual_ground"][""])
        named = [each.value for each in self.said.get("ground", [])]
        lands = [*named, usual, *self.grammar["ground"]]
        shown = self._shown(self._one("time"), weather)
        things = [draft for draft in self.drafts if draft.kind not in shown or draft.of("colour")]

        def cost(ground: str) -> float:
            if not ground:
                return 3.0 * bool(said) + bool(weather) + bool(self._one("mountains")) + bool(self._one("time")) + 0.5
            standing = [draft for draft in things if self._zone(draft.kind, ground)]
            gone = 3 * (len(things) - len(standing)) + 2 * (bool(things) and not standing)
            return gone + 2 * (bool(said) and ground != said)

        best: str = min([*dict.fromkeys(lands), ""], key=cost)
        return best

    def _shown(self, *around: str) -> set[str]:
        """Return what is seen anyhow at such a time and in such a weather."""
        return {kind for each in around for kind in self.grammar["shows"].get(each, ())}

    def _stand(self, ground: str) -> list[tuple[Draft, Group]]:
        """Keep the things that can be in this landscape, and name the others and their land."""
        shown = self._shown(self._one("time"), self._one("weather"))
        outside = [draft for draft in self.drafts if not self._zone(draft.kind, ground) and (draft.kind not in shown or draft.of("colour"))]
        said = self._one("ground")
        self.lost += [each.typed for each in self.said.get("ground", []) if each.value != ground]
        if said and said != ground:
            self._refuse(said, [draft for draft in self.drafts if not self._zone(draft.kind, said)])
        self.lost += [draft.typed for draft in outside]
        self._refuse(ground, outside)
        return [(draft, self._group(draft)) for draft in self.drafts if self._zone(draft.kind, ground)]

    def _refuse(self, ground: str, drafts: list[Draft]) -> None:
        if drafts:
            things = tuple(dict.fromkeys(draft.kind for draft in drafts))
            land = self.grammar["ground"][ground][0]
            self.reasons.append(say_to_all("starter.no-place", '"{ground}" has no place for: {things}.', ground=land, things=things))

    def _reduce(self, pairs: list[tuple[Draft, Group]]) -> list[tuple[Draft, Group]]:
        """Leave at most as many things as fit, one of each kind first."""
        most, found = self.grammar["most"], list(pairs)
        if sum(group.count for _, group in found) <= most:
            return found
        self.reasons.append(say_to_all("starter.most", "At most {most} things fit into a picture.", most=most))
        self.lost += [draft.typed for draft, _ in found[most:]]
        found = found[:most]
        while sum(group.count for _, group in found) > most:
            at = max(range(len(found)), key=lambda i: found[i][1].count)
            draft, group = found[at]
            self.lost.append(draft.said["count"].typed)
            over = sum(each.count for _, each in found) - most
            second = max([each.count for i, (_, each) in enumerate(found) if i != at], default=1)
            found[at] = draft, replace(group, count=max(1, group.count - max(1, min(over, group.count - second))))
        return found

    def _land(self, pairs: list[tuple[Draft, Group]], ground: str) -> Scene:
        time, weather = self._time(pairs), self._weather(ground)
        if time not in self.grammar["only_at"].get(weather, [time]):
            self._lose("weather")
            names = {"weather": self.grammar["weather"][weather][0], "time": self.grammar["time"][time][0]}
            self.reasons.append(say_to_all("starter.not-then", '"{weather}" is not painted {time}.', **names))
            weather = ""
        shown = self._shown(time, weather)
        lights = {kind for kinds in self.grammar["lights"].values() for kind in kinds}
        kept: list[tuple[Draft, Group]] = []
        taken: set[tuple[str, str]] = set()
        for draft, group in pairs:
            has_light = any(each.kind in lights for _, each in kept)
            if group.kind in shown:
                self.lost += [draft.typed] if {"colour", "size", "place"} & {*draft.said} else []
                continue
            if group.kind in lights and (group.kind not in self.grammar["lights"][time] or has_light):
                self.lost.append(draft.typed)
                shines = tuple(self.grammar["lights"][time])
                spoken = self.grammar["time"][time][0]
                self.reasons.append(
                    say_to_all("starter.light", "A landscape {time} has one light at most: {lights}.", time=spoken, lights=shines)
                )
                continue
            if group.kind in lights and group.count > 1:
                self.lost.append(draft.said["count"].typed)
                group = replace(group, count=1)
            zone = self._zone(group.kind, ground)
            column = next((each for each in COLUMNS if each in group.place), "")
            level = next((each for each in ("top", "bottom") if each in group.place), "")
            if (level and (level == "top") != (zone == "sky")) or (column and (zone, column) in taken):
                self.lost.append(draft.said["place"].typed)
                column = "" if (zone, column) in taken else column
            taken.add((zone, column))
            kept.append((draft, replace(group, place=column)))
        self._lose("background")
        groups = tuple(group for _, group in self._reduce(kept))
        return Scene(groups, "", ground, time, weather, bool(self._one("mountains")))

    def _time(self, pairs: list[tuple[Draft, Group]]) -> str:
        said = self._single("time")
        kinds = {group.kind for _, group in pairs}
        lights = self.grammar["lights"]
        return said or next((time for time in lights if kinds & {*lights[time]}), "day")

    def _weather(self, ground: str) -> str:
        """Return the weather that shows the most of what was said, and name what it does not show."""
        said = [each.value for each in self.said.get("weather", [])]
        shows = self.grammar["shows"]
        best = max(dict.fromkeys(said), key=lambda value: sum(other in (value, *shows.get(value, ())) for other in said), default="")
        self.lost += [each.typed for each in self.said.get("weather", []) if each.value not in (best, *shows.get(best, ()))]
        return best

    def _plain(self, pairs: list[tuple[Draft, Group]]) -> Scene:
        background = self._single("background")
        kept: list[tuple[Draft, Group]] = []
        taken: Counter[str] = Counter()
        for draft, group in self._reduce(pairs):
            if group.place and taken[group.place]:
                self.lost.append(draft.said["place"].typed)
                group = replace(group, place="")
            taken[group.place] += 1
            kept.append((draft, group))
        if background and any(group.colour == background for _, group in kept):
            self._lose("background")
            self.reasons.append(say_to_all("starter.unseen", "Nothing is seen on a background of its own colour."))
            background = ""
        groups = []
        for _, group in kept:
            own = self.nouns[group.kind]["natural"]
            other = next((each for each in own if each != background), "")
            if background and not group.colour and own[0] == background and other:
                group = replace(group, colour=other)
            elif background and not group.colour and own[0] == background:
                self._lose("background")
                self.reasons.append(say_to_all("starter.unseen", "Nothing is seen on a background of its own colour."))
                background = ""
            groups.append(group)
        return Scene(tuple(groups), background, style="")
