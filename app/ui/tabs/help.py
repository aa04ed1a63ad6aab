"""Help: its topics in a person's language, and what the models that are here read, sound and paint like, by their own files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.base.sentence import Sentence, Value, say, shorten_list
from app.engine.models import catalog
from app.engine.models.catalog import name_model
from app.engine.models.model import Model
from app.engine.models.model_names import word_name
from app.engine.models.picture_families import FAMILIES
from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.text.likely_language import name_language
from app.ui.page.help_topics import PAINTERS, TOPICS, VOICES, Line, Topic
from app.ui.page.translate import Language, language, translate
from app.ui.page.view_types.making import TopicsView, TopicView
from app.ui.state.desk import Desk
from app.ui.state.person import who

NAMED_MOST: Final = 12
"""So many voices and sounds of one model are listed."""


def send_help(desk: Desk, request: Request) -> Response:
    return JSONResponse(TopicsView(topics=list(list_topics(desk, who(request).owner, language(request)))))


def list_topics(desk: Desk, owner: bool, spoken: Language) -> Iterator[TopicView]:
    """Yield each topic that a person may read; to guests what is said of no machine and no model of the owner's."""
    made = {VOICES.id: describe_voices, PAINTERS.id: describe_painters}
    for topic in TOPICS:
        if owner and topic.id in made:
            topic = replace(topic, lines=tuple(made[topic.id](desk)))
        lines = [each for each in topic.lines if owner or (each[1] if isinstance(each, tuple) else each).for_all]
        if lines:
            yield view_topic(topic, lines, spoken)


def view_topic(topic: Topic, lines: list[Line], spoken: Language) -> TopicView:
    return {
        "id": topic.id,
        "title": translate(topic.title, spoken),
        "lines": [
            {"term": translate(each[0], spoken), "text": translate(each[1], spoken)}
            if isinstance(each, tuple)
            else {"text": translate(each, spoken)}
            for each in lines
        ],
    }


def describe_voices(desk: Desk) -> Iterator[Line]:
    for _, id_ in desk.models.list_choices("speech"):
        model, limits = desk.models.read_limits(id_)
        if model is not None:
            yield name(id_), describe_voice(limits)


def describe_voice(limits: VoiceLimits) -> Sentence:
    """Say what a voice reads, whom it imitates, and which sounds it makes."""
    spoken = tuple(name_language(each.lower().partition("-")[0]) for each in limits.languages)
    return say(
        "help.voice",
        "Reads {languages}. {speakers} {sounds} {imitates}",
        languages=spoken,
        speakers=say_speakers(limits),
        sounds=say_sounds(limits),
        imitates=say_imitates(limits),
    )


def say_speakers(limits: VoiceLimits) -> Sentence:
    ready = tuple(shorten_list([each.replace("_", " ") for each in limits.brought], NAMED_MOST))
    if ready:
        return say("help.voice.ready", "Ready voices: {names}.", names=ready)
    return say("help.voice.speakers", "Knows {tags} by itself; more speakers, also by name, get voices in the cast.", tags=limits.tags)


def say_sounds(limits: VoiceLimits) -> Sentence:
    if limits.nonverbals:
        marks = tuple(f"({each})" for each in sorted(limits.nonverbals))
        return say("help.voice.sounds", "Sounds it makes, written in round brackets: {sounds}.", sounds=marks)
    return say("help.voice.no-sounds", "It makes no laughs or sighs: write them as words, or leave them out.")


def say_imitates(limits: VoiceLimits) -> Sentence:
    if not limits.imitates or limits.own_voices is not None:
        return say("help.voice.own", "It has its own voices only.")
    if limits.needs_transcript:
        return say("help.voice.words", "It imitates a recording of 5 to 10 seconds, with exactly the words that are said in it.")
    return say("help.voice.clip", "It imitates a recording, without its words.")


def describe_painters(desk: Desk) -> Iterator[Line]:
    for _, id_ in desk.models.list_choices("picture"):
        yield name(id_), describe_painter(catalog.find(id_))


def describe_painter(model: Model) -> Sentence:
    """Say how a painter wants its prompt, and what its makers recommend."""
    recommended, family = model.settings, FAMILIES[model.family]
    if model.starter:
        wants: Sentence = say(
            "help.painter.starter", "Short English captions of the few things it knows; other words are named under the prompt."
        )
    elif family.prompt_weights:
        wants = say("help.painter.clip", "Short phrases with commas, in English, the most important first.")
    elif family.chat_template:
        wants = say("help.painter.chat", "Whole sentences, in English or Chinese; text to be written in the picture stands in quotes.")
    else:
        wants = say("help.painter.t5", "Whole sentences, in English; it follows long ones well.")
    reads_negative = family.negative_prompts and recommended.guidance > 1
    return say(
        "help.painter",
        "{wants} Negative prompt: {negative}. Recommended: {width} x {height} pixels, {steps} {steps:step|steps}.",
        wants=wants,
        negative=say("help.painter.yes", "yes") if reads_negative else say("help.painter.no", "none"),
        width=recommended.width,
        height=recommended.height,
        steps=recommended.steps,
    )


def name(id_: str) -> Value:
    return word_name(name_model(id_))
