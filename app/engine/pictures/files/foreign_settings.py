"""Read the settings that A1111 and ComfyUI store in their pictures; note what cannot be restored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.base.bounded_json import Bounds, parse_json
from app.base.sentence import Sentence, say, say_to_all
from app.base.trouble import Trouble
from app.engine.jobs import schedulers
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.jobs.settings import PICTURES, Setting, weight_of
from app.engine.pictures.files.lora_tags import split_tags

ADD_IMAGE: Final = say_to_all("restore.image", "This picture was made from another picture. Add that one yourself.")
ADD_GUIDE: Final = say_to_all("restore.guide", "This picture was guided by another picture. Add that one yourself.")
ADD_REFERENCE: Final = say_to_all("restore.reference", "This picture was painted like another picture. Add that one yourself.")


@dataclass(frozen=True, slots=True)
class RestoredSettings:
    request: PictureRequest
    notes: tuple[Sentence, ...] = ()
    """Notes on what could not be restored."""


@dataclass(frozen=True, slots=True)
class Found:
    """The settings a program stored in its picture."""

    prompt: str
    negative: str
    loras: tuple[tuple[str, float], ...]
    """Names and weights."""
    numbers: dict[str, Any]
    """By Hearth's names, as the program wrote them; None where it has none."""
    sampler: str
    model: str
    strength: Any
    from_picture: bool
    masked_only: bool = False


def list_by_hand(request: PictureRequest) -> tuple[Sentence, ...]:
    """List what the settings of a picture cannot restore."""
    by_hand = ((ADD_IMAGE, request.image), (ADD_GUIDE, request.guide), (ADD_REFERENCE, request.reference))
    return tuple(note for note, given in by_hand if given)


TEXT_MOST: Final = 200_000
"""Letters of A1111's text that are read: no prompt is longer."""
GRAPH: Final = Bounds(most_bytes=8 << 20, depth=32, values=200_000)
"""The largest graph of ComfyUI that is read."""
VISITS_MOST: Final = 1000
"""Nodes looked at on the way to a prompt."""
# Linear: every quantifier is possessive, so that no letter is tried in two ways.
_SETTING: Final = re.compile(r'([^:,]*+)(?::\s*+("(?:[^"\\]|\\.)*+"|[^,]*+))?+,?+')
_STEPS: Final = re.compile(r"\s*+Steps:\s*+\d")
SAMPLERS: Final[Mapping[str, str]] = {
    "euler": "Euler", "euler a": "Euler a", "euler_ancestral": "Euler a", "heun": "Heun", "dpm++ 2m": "DPM++ 2M",
    "dpmpp_2m": "DPM++ 2M", "dpm++ 2m karras": "DPM++ 2M Karras", "dpm++ 2m sde": "DPM++ 2M SDE",
    "dpm++ 2m sde karras": "DPM++ 2M SDE", "dpmpp_2m_sde": "DPM++ 2M SDE", "dpm++ 2s a": "DPM++ 2S",
    "dpmpp_2s_ancestral": "DPM++ 2S", "ddim": "DDIM", "plms": "PNDM", "unipc": "UniPC", "uni_pc": "UniPC",
    "uni_pc_bh2": "UniPC", "lcm": "LCM", "deis": "DEIS", "euler karras": "Euler Karras",
}  # fmt: skip
"""Map A1111's and ComfyUI's sampler names to Hearth's."""
AUTOMATIC: Final = ("", "automatic")
"""Samplers that leave it to the model."""


def read_a1111(text: str) -> RestoredSettings:
    """Parse A1111's format: the prompt, "Negative prompt:" with its lines, and a last line that begins with Steps."""
    prompt, negative, written = split_a1111(text)
    settings = {name.lower(): value for name, value in written.items()}
    width, _, height = settings.get("size", "").partition("x")
    sampler = settings.get("sampler", "")
    if settings.get("schedule type", "automatic").lower() not in ("automatic", ""):
        sampler = f"{sampler} {settings['schedule type']}"
    bare, loras = split_tags(prompt)
    return restore(Found(
        bare.strip(), negative.strip(), loras=loras, sampler=sampler,
        numbers={"steps": settings.get("steps"), "guidance": settings.get("cfg scale"), "seed": settings.get("seed"), "width": width, "height": height,
                 "upscale": settings.get("hires upscale"), "mask_blur": settings.get("mask blur"), "masked_padding": settings.get("masked area padding")},
        model=settings.get("model", ""), strength=settings.get("denoising strength"),
        from_picture="denoising strength" in settings and "hires upscale" not in settings,
        masked_only=settings.get("inpaint area", "").lower() == "only masked",
    ))  # fmt: skip


def split_a1111(text: str) -> tuple[str, str, dict[str, str]]:
    """Return the prompt, the negative prompt and the settings by A1111's names."""
    *lines, last = text[:TEXT_MOST].strip().split("\n")
    if not _STEPS.match(last):
        lines, last = [*lines, last], ""
    body = "\n".join(lines)
    prompt, _, negative = body.partition("\nNegative prompt:") if "\nNegative prompt:" in body else (body, "", "")
    if prompt.startswith("Negative prompt:"):
        prompt, negative = "", prompt.removeprefix("Negative prompt:")
    return prompt, negative, {name.strip(): value.strip().strip('"') for name, value in _SETTING.findall(last) if name.strip()}


def read_comfyui(text: str) -> RestoredSettings:
    """Read a graph of nodes: the sampler holds the settings, or leads to the nodes that do, and its conditionings lead to the prompts."""
    graph: dict[str, Any] = parse_json(text, GRAPH)
    sampler = _gather_settings(graph)
    latent = _inputs(_find_node(graph, sampler.get("latent_image")))
    loaders = [_inputs(node) for node in graph.values() if "Loader" in _class_of(node)]
    named = next((str(each[key]) for each in loaders for key in ("ckpt_name", "unet_name") if key in each), "")
    name = str(sampler.get("sampler_name", "")).removesuffix("_gpu")
    if sampler.get("scheduler") == "karras":
        name = f"{SAMPLERS.get(name, name)} Karras"
    denoise = sampler.get("denoise", 1)
    positive = sampler.get("positive", sampler.get("conditioning"))
    guidance = _find_value(graph, positive, ("guidance",), float | int)
    return restore(Found(
        _find_text(graph, positive), _find_text(graph, sampler.get("negative")),
        loras=tuple((str(each["lora_name"]), each.get("strength_model", 1.0)) for each in loaders if "lora_name" in each),
        numbers={"steps": _read_plain(sampler.get("steps")), "guidance": _read_plain(sampler.get("cfg")) if guidance is None else guidance,
                 "seed": _read_plain(sampler.get("seed", sampler.get("noise_seed"))), "width": _read_plain(latent.get("width")),
                 "height": _read_plain(latent.get("height"))},
        sampler=name, model=Path(named).stem, strength=_read_plain(denoise),
        from_picture=isinstance(denoise, int | float) and denoise < 1,
    ))  # fmt: skip


_PARTS: Final = ("noise", "guider", "sampler", "sigmas")
"""Links of a custom sampler to the nodes that hold a part of its settings each."""


def _gather_settings(graph: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of the node that samples, with those of the nodes that it is put together from; raise StopIteration if there is none."""
    whole = (_inputs(node) for node in graph.values() if "KSampler" in _class_of(node) or "SamplerCustom" in _class_of(node))
    sampler = next(each for each in whole if "positive" in each or "guider" in each)
    gathered: dict[str, Any] = {}
    for link in _PARTS:
        gathered |= _inputs(_find_node(graph, sampler.get(link)))
    return gathered | sampler


def _read_plain(value: Any) -> Any:
    """Return a plain value; a link to another node counts as none."""
    return None if isinstance(value, list | dict) else value


def _find_node(graph: Mapping[str, Any], link: Any) -> Mapping[str, Any]:
    found = graph.get(str(link[0])) if isinstance(link, list) and link else None
    return found if isinstance(found, dict) else {}


def _class_of(node: Any) -> str:
    kind = node.get("class_type") if isinstance(node, dict) else None
    return kind if isinstance(kind, str) else ""


def _inputs(node: Any) -> dict[str, Any]:
    inputs = node.get("inputs") if isinstance(node, dict) else None
    return inputs if isinstance(inputs, dict) else {}


TEXTS: Final = ("text", "text_g", "t5xxl", "prompt", "string", "value")


def _find_text(graph: Mapping[str, Any], link: Any) -> str:
    """Find the first text upstream; conditionings pass through other nodes (ControlNet, combine, zero out)."""
    return _find_value(graph, link, TEXTS, str) or ""


def _find_value(graph: Mapping[str, Any], link: Any, keys: Sequence[str], kind: Any) -> Any:
    """Find the first such input upstream; None if there is none.

    Depth first, each node once and VISITS_MOST of them at most: a graph may link to itself."""
    waiting, visited = [link], set[str]()
    while waiting and len(visited) < VISITS_MOST:
        found = waiting.pop()
        name = str(found[0]) if isinstance(found, list) and found and isinstance(found[0], str | int) else ""
        if not name or name in visited:
            continue
        visited.add(name)
        inputs = _inputs(graph.get(name))
        links = []
        for key in keys:
            value = inputs.get(key)
            if isinstance(value, kind):
                return value
            if isinstance(value, list):
                links = [value]
                break
        waiting += reversed(links or [each for each in inputs.values() if isinstance(each, list)])
    return None


def restore(found: Found) -> RestoredSettings:
    """Build the request, with a note for each setting that could not be restored."""
    if not found.prompt:
        raise Trouble(say_to_all("restore.no-prompt", "This picture's settings contain no prompt, so nothing can be restored."))
    wanted = "" if found.sampler.lower() in AUTOMATIC else found.sampler
    scheduler = SAMPLERS.get(wanted.lower(), wanted)
    known = scheduler in schedulers.SCHEDULERS
    given = found.numbers | ({"strength": found.strength} if found.from_picture else {})
    given |= {"hires_strength": found.strength} if found.numbers.get("upscale") else {}
    numbers = {name: number for name, value in given.items() if (number := _read_number(value, PICTURES[name])) is not None}
    loras = tuple(Lora(name, weight) for name, given in found.loras if (weight := _read_number(given, weight_of(name))) is not None)
    request = PictureRequest(
        found.prompt,
        negative=found.negative,
        scheduler=scheduler if known else None,
        loras=loras,
        hires=numbers.get("upscale", 1) > 1,
        masked_only=found.masked_only,
        **numbers,
    )
    unused = [name for name, value in found.numbers.items() if name not in numbers and value not in (None, "")]
    return RestoredSettings(request, tuple(_list_notes(found, known, unused)))


def _list_notes(found: Found, sampler_known: bool, unused: list[str]) -> Iterator[Sentence]:
    if found.model:
        yield say("owner.model", "This was made with {model}. Choose the model to use.", model=found.model)
    if found.from_picture:
        yield ADD_IMAGE
    if found.sampler.lower() not in AUTOMATIC and not sampler_known:
        yield say_to_all("restore.sampler", "Hearth does not know the sampler {name}; the model's own is used.", name=found.sampler)
    for name in unused:
        value = str(found.numbers[name])[:40]
        yield say_to_all("restore.number", "{name} {value} cannot be used here and was left out.", name=PICTURES[name].said, value=value)


def _read_number(value: Any, setting: Setting) -> Any:
    try:
        number = int(value) if setting.whole else float(value)
        setting.check(number)
    except (TypeError, ValueError, OverflowError, Trouble):
        return None
    return number
