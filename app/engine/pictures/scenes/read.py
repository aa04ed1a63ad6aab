"""Read the phrases of a prompt: which things are asked for, each with what is said of it, what is around them, and what is not wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.engine.pictures.scenes.ahead import OF_A_THING, another_follows, look_ahead, thing_follows
from app.engine.pictures.scenes.drafts import Denied, Draft, Reading, Said
from app.engine.pictures.scenes.tables import Mark
from app.engine.pictures.scenes.words import Phrase

LIKENESSES: Final = ("shaped", "coloured", "colored")
"""What is named before them is not in the picture: "a heart-shaped balloon"."""
OPPOSITE: Final = {"left": "right", "right": "left", "top": "bottom", "bottom": "top"}


def read(phrases: Sequence[Phrase], unwanted: bool = False) -> Reading:
    """Read a prompt; or, if it lists what is unwanted, a negative prompt."""
    reader = _Reader(phrases, unwanted)
    for at in range(len(phrases)):
        reader.step(at)
    reader.end_sentence()
    return reader.found


class _Reader:
    def __init__(self, phrases: Sequence[Phrase], unwanted: bool) -> None:
        self.phrases, self.unwanted, self.denying = phrases, unwanted, unwanted
        self.found = Reading()
        self.pending: dict[str, Said] = {}
        self.last: Draft | None = None
        """The thing that a colour after it is of."""
        self.item: Draft | None = None
        """The same, until something else than a thing is said: what "left of" begins at."""
        self.relation: Said | None = None
        """Where the item stands of the thing that follows: "left of"."""
        self.between: list[str] = []
        """These places are still to be given to things, after "between"."""
        self.open_place: Said | None = None
        """A place that was said before its thing."""
        self.opened: Draft | None = None
        """The thing without its noun that is being described."""
        self.in_clause = False
        """A thing was named since the last comma: a place that follows is its own."""
        self.in_noun = False
        """An article or a number was said: a quality that follows may be of a thing still to be named."""
        self.known_thing = False
        """The article was "the", "that" or "this": the thing may be one that was named before."""
        self.on = self.awaits_background = False
        """"on" was said, or "background" without its colour: a colour that follows is the background's."""
        self.of_all = False
        """"both" was said: qualities that follow are of all things."""

    def step(self, at: int) -> None:
        phrase = self.phrases[at]
        if phrase.role in ("and", "comma", "article", "one", "stop"):
            self.opened = None
        match phrase.role:
            case "mark" if self._next_typed(at) in LIKENESSES and phrase.marks[-1].slot != "colour":
                self.found.lost.append(phrase.typed)
            case "mark":
                for place, mark in enumerate(phrase.marks):
                    if mark.slot in OF_A_THING and any(each.slot == "noun" for each in phrase.marks[place:]):
                        self.pending[mark.slot] = Said(mark.value, phrase.typed)
                    else:
                        self._take(at, phrase, mark)
                if self.denying and phrase.marks[-1].slot not in OF_A_THING:
                    self._go_on_denying(at)
            case "unknown" if self.denying:
                self._go_on_denying(at)
            case "unknown":
                self.found.lost.append(phrase.typed)
                self.on = False
            case "article":
                self.in_noun, self.known_thing = True, phrase.typed.lower() in ("the", "that", "this")
            case "one":
                self.in_noun = True
            case "no":
                self.denying = True
            case "is":
                self.in_noun = False
            case "hidden" if not self.denying:
                self.found.lost.append(phrase.typed)  # things stand side by side, never one behind another
            case "it":
                self._put_beside_it()
            case "both":
                self.of_all = True
            case "on":
                self.on = True
            case "between":
                if self.item is not None:
                    self.item.said.setdefault("place", Said("middle", phrase.typed))
                    self.between = ["left", "right"]
            case "comma" | "break" | "stop":
                self.in_clause = self.in_noun = False
                self.denying = self.unwanted
                if phrase.role == "stop":
                    self.end_sentence()

    def _next_typed(self, at: int) -> str:
        return self.phrases[at + 1].typed.lower() if at + 1 < len(self.phrases) else ""

    def _list_open(self) -> list[Draft]:
        """List the things that wait for their noun."""
        return [draft for draft in self.found.drafts if not draft.kind]

    def end_sentence(self) -> None:
        self._drop_pending()
        self._share_out()
        self.relation, self.between, self.awaits_background, self.on, self.of_all = None, [], False, False, False
        if self.open_place:
            self.found.lost.append(self.open_place.typed)
            self.open_place = None

    def _share_out(self) -> None:
        """Take things without a noun of their own out of those named before: "two boats, one red and one white"."""
        waiting, last = self._list_open(), self.last
        count = int(last.of("count") or 1) if last is not None else 0
        taken = sum(int(draft.of("count") or 1) for draft in waiting)
        if not waiting:
            return
        if last is None or taken > count or last.of("colour"):
            self.found.lost += [said.typed for draft in waiting for said in draft.said.values()]
            self.found.drafts = [draft for draft in self.found.drafts if draft.kind]
            return
        for draft in waiting:
            draft.kind, draft.typed = last.kind, last.typed
            draft.said = {**last.said, "count": Said("1", last.typed), **draft.said}
        last.said["count"] = Said(str(count - taken), last.typed)
        if count == taken:
            self.found.drafts.remove(last)
            self.last = self.item = None

    def _drop_pending(self) -> None:
        self.found.lost += [said.typed for said in self.pending.values()]
        self.pending = {}

    def _go_on_denying(self, at: int) -> None:
        """Deny the next thing too after "or", and after "and" without an article."""
        roles = [each.role for each in self.phrases[at + 1 : at + 3]]
        joined = roles[:1] == ["or"] or roles == ["comma", "or"] or (roles[:1] == ["and"] and roles[1:] not in (["article"], ["one"]))
        self.denying = self.unwanted or joined or (roles[:1] == ["unknown"] and self.phrases[at].role == "unknown")

    def _take(self, at: int, phrase: Phrase, mark: Mark) -> None:
        said = Said(mark.value, phrase.typed)
        match mark.slot:
            case "noun":
                self._take_thing(at, said, mark)
            case "colour" | "size" | "count":
                self._take_quality(at, mark.slot, said)
            case "place":
                self._take_place(at, said)
            case "relation":
                self.relation = said if self.item is not None else None
            case "background":
                colour = self.pending.pop("colour", None)
                self._drop_pending()
                if colour:
                    self._add_whole("background", colour)
                self.awaits_background, self.on = colour is None, False
            case _ if mark.thing and self.pending:
                self._take_thing(at, Said(mark.thing, phrase.typed), Mark("noun", mark.thing, many=True))
            case slot:
                self._drop_pending()
                self._add_whole(slot, said)
                self.relation, self.on, self.item, self.in_clause = None, False, None, self.in_clause and mark.beside

    def _add_whole(self, slot: str, said: Said) -> None:
        if self.denying:
            self.found.denied.append(Denied(slot, said.value))
        else:
            self.found.whole.setdefault(slot, []).append(said)

    def _take_thing(self, at: int, said: Said, mark: Mark) -> None:
        drafts, pending = self.found.drafts, {} if mark.beside else self.pending
        if not mark.beside:
            self.pending = {}
        if self.denying:
            self.found.denied.append(Denied("noun", said.value, pending["colour"].value if "colour" in pending else ""))
            return
        same = [draft for draft in drafts if draft.kind == said.value]
        if mark.beside and same:
            return
        if same and not pending and self.known_thing and "count" not in same[-1].said:  # "A tree. The tree is big."
            self.last = self.item = same[-1]
            return
        if (besides := [draft for draft in same if draft.beside]) and not mark.beside:
            besides[0].said |= pending
            besides[0].beside, self.last, self.item = False, besides[0], besides[0]
            return
        before = self.phrases[at - 1].marks[-1:] if at else ()
        if before and before[0].slot == "noun" and not before[0].many and not mark.beside and not pending and self.item is not None:
            self.found.lost.append(self.item.typed)  # of two nouns side by side the last is the thing: "apple pie"
            self.item.kind, self.item.typed = said
            draft = self.item
        else:
            draft = Draft(said.value, said.typed, dict(pending), mark.beside)
            drafts.append(draft)
        if mark.many and "count" not in draft.said:
            draft.said["count"] = Said("2", said.typed)
        for waiting in self._list_open():
            waiting.kind, waiting.typed = said
        if not mark.beside:
            self._put(draft)
            self.last, self.item = draft, draft
            self.in_clause, self.in_noun, self.known_thing, self.on, self.of_all, self.relation = True, False, False, False, False, None

    def _put(self, draft: Draft) -> None:
        """Give a new thing the place that was said before it, or by what it stands beside."""
        before = self.item if self.item is not draft else None
        relation = self.relation or (Said("top", "on") if self.on and before else None)
        if self.open_place:
            draft.said["place"], self.open_place = self.open_place, None
        elif self.between:
            place = self.between.pop(0)
            draft.said["place"] = Said(place, draft.typed)
            if draft.of("count") == "2" and self.between:
                del draft.said["count"]
                self.found.drafts.append(
                    Draft(draft.kind, draft.typed, dict(draft.said) | {"place": Said(self.between.pop(), draft.typed)})
                )
        elif relation and before is not None:
            opposite = OPPOSITE[relation.value]
            if before.of("place") == opposite:  # "a cat left of a dog left of a horse"
                before.said["place"] = Said("middle", relation.typed)
            before.said.setdefault("place", relation)
            draft.said.setdefault("place", Said(opposite, relation.typed))

    def _put_beside_it(self) -> None:
        """Read "left of it": the last thing stands there of the one before."""
        drafts = [draft for draft in self.found.drafts if draft.kind]
        if self.relation is not None and len(drafts) > 1 and drafts[-1] is self.item:
            drafts[-1].said.setdefault("place", self.relation)
            drafts[-2].said.setdefault("place", Said(OPPOSITE[self.relation.value], self.relation.typed))
            self.relation = None

    def _take_quality(self, at: int, slot: str, said: Said) -> None:
        towards, stopped = look_ahead(self.phrases, at)
        self.in_noun |= slot == "count"
        if towards == "noun" or (towards == "background" and slot == "colour"):
            if slot == "count":
                self.pending.pop(slot, None)  # "a row of four trees"
            elif slot in self.pending and self.pending[slot].value != said.value:
                self.found.lost.append(said.typed)
            self.pending.setdefault(slot, said)
        elif towards:
            self.found.lost += [] if self.denying else [said.typed]
        elif self.denying:
            self.found.denied.append(Denied(slot, said.value))
            self.denying = self.unwanted
        elif slot == "colour" and (self.on or self.awaits_background):
            self._add_whole("background", said)
            self.on = self.awaits_background = False
        elif self.in_noun and (self._list_open() or another_follows(self.phrases, stopped)):
            if self.opened is None:
                self.opened = Draft("", said.typed)
                self.found.drafts.append(self.opened)
            self.opened.said |= {**self.pending, slot: said}
            self.pending = {}
        elif self.last is not None:
            for draft in [each for each in self.found.drafts if each.kind] if self.of_all else [self.last]:
                self._tell_after(draft, slot, said)
        else:
            self.found.lost.append(said.typed)

    def _tell_after(self, draft: Draft, slot: str, said: Said) -> None:
        """Take a quality that was said after its thing; of several colours each is of one of the things."""
        if slot == "colour" and draft.coloured_after and draft.of("colour") != said.value and int(draft.of("count") or 1) > 1:
            draft.said["count"] = draft.said["count"]._replace(value=str(int(draft.of("count")) - 1))
            self.found.drafts.append(Draft(draft.kind, draft.typed, {**draft.said, "colour": said, "count": Said("1", draft.typed)}))
        elif draft.of(slot) in ("", said.value) or draft.said[slot].typed == draft.typed:
            draft.said[slot] = said
            draft.coloured_after |= slot == "colour"
        else:
            self.found.lost.append(said.typed)

    def _take_place(self, at: int, said: Said) -> None:
        if self.denying:
            return
        if not self.in_clause and thing_follows(self.phrases, at):
            self.open_place = said
        elif self.last is not None:
            had = self.last.of("place")
            both = f"{had} {said.value}" if had in ("top", "bottom") else f"{said.value} {had}"
            if not had:
                self.last.said["place"] = said
            elif {had, said.value} & {"top", "bottom"} and {had, said.value} & {"left", "right"}:
                self.last.said["place"] = Said(both, said.typed)
            elif thing_follows(self.phrases, at):
                self.open_place = said
            elif had != said.value:
                self.found.lost.append(said.typed)
        else:
            self.open_place = said
