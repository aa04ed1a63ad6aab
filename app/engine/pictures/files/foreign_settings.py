"""Read the settings that A1111 and ComfyUI store in their pictures; note what cannot be restored."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.base.bounded_json import Bounds, parse_json
from app.base.sentence import Sentence, say_to_all
from app.base.trouble import Trouble
from app.engine.jobs import schedulers
from app.engine.jobs.outward import public_name
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.jobs.settings import PICTURES, Setting, weight_of
from app.engine.models.detect import name_path
from app.engine.pictures.files.lora_tags import split_tags

ADD_IMAGE: Final = say_to_all("restore.image", "This picture was made from another picture. Add that one yourself.")
ADD_GUIDE: Final = say_to_all("restore.guide", "This picture was guided by another picture. Add that one yourself.")
ADD_REFERENCE: Final = say_to_all("restore.reference", "This picture was painted like another picture. Add that one yourself.")


@dataclass(frozen=True, slots=True)
class RestoredSettings:
    request: PictureRequest
    notes: tuple[Sentence, ...] = ()
    """They tell what could not be restored."""


@dataclass(frozen=True, slots=True)
class Guide:
    """How another picture guided this one, through the first of its control models."""

    control: str = ""
    """Its file's name, as the program wrote it."""
    made: str = ""
    """What was made of the picture first, in the program's words."""


@dataclass(frozen=True, slots=True)
class Found:
    """The settings a program stored in its picture."""

    prompt: str
    negative: str
    loras: tuple[tuple[str, float], ...]
    numbers: dict[str, Any]
    """Hearth's names lead to what the program wrote; None where it has none."""
    sampler: str
    model: str
    """Its file's name or path, as the program wrote it."""
    strength: Any
    from_picture: bool
    masked_only: bool = False
    guide: Guide | None = None
    """None: no other picture guided this one."""
    referenced: bool = False
    """True: this one was painted like another picture."""
    lost: tuple[str, ...] = ()
    """This changed the picture, and Hearth cannot do it; the words are the program's."""


def list_by_hand(request: PictureRequest) -> tuple[Sentence, ...]:
    """List what the settings of a picture cannot restore."""
    by_hand = ((ADD_IMAGE, request.image), (ADD_GUIDE, request.guide), (ADD_REFERENCE, request.reference))
    return tuple(note for note, given in by_hand if given)


TEXT_MOST: Final = 200_000
"""No more letters of A1111's text are read: no prompt is longer."""
GRAPH: Final = Bounds(most_bytes=8 << 20, depth=32, values=200_000)
"""No larger graph of ComfyUI is read."""
GUIDES: Final = (("canny", "edges"), ("depth", "depth"), ("openpose", "pose"), ("dwpreprocessor", "pose"))
"""What makes a guide's map has one of these words in its name; any other map is one that Hearth cannot make."""
_HASH: Final = re.compile(r"\s\[[0-9a-f]{8}\]$")
"""A1111 writes it behind a control model's name."""
VISITS_MOST: Final = 1000
"""So many nodes are looked at on the way to a prompt."""
# Linear: every quantifier is possessive, so that no letter is tried in two ways.
_SETTING: Final = re.compile(r'([^:,]*+)(?::\s*+("(?:[^"\\]|\\.)*+"|[^,]*+))?+,?+')
_ORDERS: Final = re.compile(r"\b(?:BREAK|AND)\b|\[[^\[\]:|]*+:(?:[^\[\]:|]*+:)?+\s*+[\d.]++\s*+\]|\[[^\[\]|]++\|[^\[\]]++\]")
"""A1111 does these in a prompt: it joins pieces, and changes words at a step or at each one."""
_SIDES: Final = re.compile(r"(\d{1,6})x(\d{1,6})")
_STEPS: Final = re.compile(r"\s*+Steps:\s*+\d")
SAMPLERS: Final[Mapping[str, str]] = {
    **{each.lower(): each for each in schedulers.NAMES}, "euler_a": "Euler a", "euler_ancestral": "Euler a", "dpmpp_2m": "DPM++ 2M",
    "dpmpp_2m_sde": "DPM++ 2M SDE", "dpmpp_2s": "DPM++ 2S", "plms": "PNDM", "uni_pc": "UniPC", "uni_pc_bh2": "UniPC",
}  # fmt: skip
"""Map A1111's, ComfyUI's and InvokeAI's sampler names to Hearth's. Their ancestral DPM++ 2S is missing: Hearth's adds no noise."""
SCHEDULES: Final = {
    "": "", "automatic": "", "normal": "", "simple": "", "uniform": "", "use same scheduler": "", "karras": "Karras", "sgm uniform": "trailing",
}  # fmt: skip
"""The name of Hearth's sampler ends with the word that a schedule of A1111's or ComfyUI's leads to; "": its samplers have that one, or a near one."""
AUTOMATIC: Final = ("", "automatic")
"""These samplers leave it to the model."""
NOTHING: Final = ("", "0", "0.0", "1", "none", "false", "default (model)", "automatic", "[]")
"""A setting with one of these values changes nothing."""
LOST: Final = {
    "clip skip": "Clip skip", "refiner": "Refiner", "variation seed": "Variation seed", "face restoration": "Face restoration", "tiling": "Tiling",
    "vae": "VAE", "hires prompt": "Hires prompt", "hires steps": "Hires steps", "hires upscaler": "Hires upscaler", "adetailer model": "ADetailer model",
    "dynamic thresholding enabled": "Dynamic thresholding", "freeu_enabled": "FreeU", "freeu": "FreeU", "shift": "Shift",
    "clip_skip": "Clip skip", "clipstopatlayer": "Clip skip", "refiner_model": "Refiner", "refinermodel": "Refiner", "refinerupscale": "Refiner upscale",
    "variationseed": "Variation seed", "seamlesstileable": "Tiling", "seamless_x": "Tiling", "hrf_enabled": "High resolution fix", "styles": "Styles",
    "stop_at_clip_layer": "Clip skip", "hires cfg scale": "Hires CFG scale", "hires distilled cfg scale": "Hires distilled CFG scale",
    "hires sampler": "Hires sampler", "hires schedule type": "Hires schedule type", "hires checkpoint": "Hires checkpoint",
    "hires negative prompt": "Hires negative prompt", "eta": "Eta", "noise multiplier": "Noise multiplier", "noise schedule": "Noise schedule",
    "emphasis": "Emphasis", "soft inpainting enabled": "Soft inpainting", "skip early cfg": "Skip early CFG", "seed resize from": "Seed resize from",
    "ensd": "ENSD", "rng": "RNG", "ngms": "NGMS", "token merging ratio": "Token merging ratio", "masked content": "Masked content", "mask mode": "Mask mode",
    "positive_style_prompt": "Style prompt", "negative_style_prompt": "Negative style prompt",
}  # fmt: skip
"""Hearth lacks these settings, which change a picture: first come A1111's and Forge's names for them, then those of other programs."""


def read_a1111(text: str) -> RestoredSettings:
    """Parse A1111's format: the prompt, "Negative prompt:" with its lines, and a last line that begins with Steps."""
    prompt, negative, written = split_a1111(text)
    settings = {name.lower(): value for name, value in written.items()}
    width, _, height = settings.get("size", "").partition("x")
    sampler = name_sampler(settings.get("sampler", ""), settings.get("schedule type", ""))
    guidance = settings.get("distilled cfg scale", settings.get("cfg scale"))  # Forge's, which FLUX is told; the other one is 1 then
    bare, loras = split_tags(prompt)
    guided = {name.strip().lower(): value.strip() for name, value in _SETTING.findall(settings.get("controlnet 0", ""))}
    return restore(
        Found(
            bare.strip(),
            negative.strip(),
            loras=loras,
            sampler=sampler,
            numbers={
                "steps": settings.get("steps"),
                "guidance": guidance,
                "seed": settings.get("seed"),
                "width": width,
                "height": height,
                "upscale": _find_upscale(settings),
                "mask_blur": settings.get("mask blur"),
                "masked_padding": settings.get("masked area padding"),
                "guide_strength": guided.get("weight"),
                "guide_from": guided.get("guidance start"),
                "guide_to": guided.get("guidance end"),
            },
            model=settings.get("model", ""),
            strength=settings.get("denoising strength"),
            from_picture="denoising strength" in settings and not {"hires upscale", "hires resize"} & settings.keys(),
            masked_only=settings.get("inpaint area", "").lower() == "only masked",
            guide=Guide(_HASH.sub("", guided.get("model", "")), guided.get("module", "")) if "controlnet 0" in settings else None,
            lost=(
                *list_lost({name: value for name, value in settings.items() if not _is_as_before(name, value, settings)}),
                *dict.fromkeys(found[0][:40] for found in _ORDERS.finditer(prompt)),
            ),
        )
    )


def _find_upscale(settings: Mapping[str, str]) -> str | None:
    """Return how many times larger A1111 made the picture, which it writes so or as the size to reach, where 0 leaves a side to the other."""
    to, of = (_SIDES.fullmatch(settings.get(name, "")) for name in ("hires resize", "size"))
    times = max(int(side) / max(1, int(own)) for side, own in zip(to.groups(), of.groups(), strict=True)) if to and of else 0
    return settings.get("hires upscale", f"{round(times, 2):g}" if times else None)


def _is_as_before(name: str, value: str, settings: Mapping[str, str]) -> bool:
    """Tell whether the second pass was set as the first one, which Forge writes all the same."""
    return name.startswith("hires ") and settings.get(name.removeprefix("hires ")) == value


def split_a1111(text: str) -> tuple[str, str, dict[str, str]]:
    """Return the prompt, the negative prompt and the settings by A1111's names."""
    lines = text[:TEXT_MOST].strip().split("\n")
    # Extensions write lines of their own behind it.
    ends = max((place for place, line in enumerate(lines) if _STEPS.match(line)), default=len(lines))
    body, last = "\n".join(lines[:ends]), ", ".join(lines[ends:])
    prompt, _, negative = body.partition("\nNegative prompt:") if "\nNegative prompt:" in body else (body, "", "")
    if prompt.startswith("Negative prompt:"):
        prompt, negative = "", prompt.removeprefix("Negative prompt:")
    return prompt, negative, {name.strip(): _unquote(value.strip()) for name, value in _SETTING.findall(last) if name.strip()}


def quote(value: str) -> str:
    """Return a value as A1111 writes it: in quotes where it has a comma, a colon or a new line."""
    return json.dumps(value, ensure_ascii=False) if any(mark in value for mark in ",:\n") else value


def _unquote(value: str) -> str:
    with suppress(ValueError):
        return str(parse_json(value)) if value.startswith('"') else value
    return value.strip('"')


def read_comfyui(text: str) -> RestoredSettings:
    """Read a graph of nodes: the sampler holds the settings, or leads to the nodes that do, and its conditionings lead to the prompts."""
    graph: dict[str, Any] = parse_json(text, GRAPH)
    first, *others = _list_samplers(graph)
    sampler = _gather_settings(graph, first)
    latent = _latent_of(graph, sampler)
    loaders = [_inputs(node) for node in graph.values() if "Loader" in _class_of(node)]
    named = next((str(each[key]) for each in loaders for key in ("ckpt_name", "unet_name") if key in each), "")
    again = next((each for each in others if any(_inputs(node) is first for node in _list_upstream(graph, each.get("latent_image")))), None)
    times = _find_times(graph, again, latent) if again else None
    denoise = _read_plain(graph, again if again and times else sampler, "denoise")
    positive = sampler.get("positive", sampler.get("conditioning"))
    guidance = _find_value(graph, positive, ("guidance",), float | int)
    classes = [_class_of(node) for node in graph.values()]
    told = {name: value for node in graph.values() for name, value in _inputs(node).items() if name == "stop_at_clip_layer"}
    told |= {each: True for each in classes if each.lower().startswith("freeu")}
    loras, unread = _find_loras(graph, sampler.get("model"))
    (prompt, mixed), (negative, _) = _find_words(graph, positive, "positive"), _find_words(graph, sampler.get("negative"), "negative")
    left = [*unread, *mixed, *(("a second KSampler",) if others and not times else ())]
    guiding = next((_inputs(node) for node in graph.values() if "ControlNetApply" in _class_of(node)), {})
    return restore(
        Found(
            prompt,
            negative,
            loras=loras,
            numbers={
                "steps": _read_plain(graph, sampler, "steps"),
                "guidance": _read_plain(graph, sampler, "cfg") if guidance is None else guidance,
                "seed": _read_plain(graph, sampler, "seed" if "seed" in sampler else "noise_seed"),
                "width": _read_plain(graph, latent, "width"),
                "height": _read_plain(graph, latent, "height"),
                "upscale": times,
                "guide_strength": _read_plain(graph, guiding, "strength"),
                "guide_from": _read_plain(graph, guiding, "start_percent"),
                "guide_to": _read_plain(graph, guiding, "end_percent"),
            },
            sampler=name_sampler(str(sampler.get("sampler_name", "")), str(sampler.get("scheduler", ""))),
            model=named,
            strength=denoise,
            from_picture=not times and isinstance(denoise, int | float) and denoise < 1,
            guide=_find_guide(graph, guiding) if guiding else None,
            referenced=any(each.startswith("IPAdapter") and "Loader" not in each for each in classes),
            lost=(*list_lost(told), *left),
        )
    )


def _find_times(graph: Mapping[str, Any], sampler: Mapping[str, Any], latent: Mapping[str, Any]) -> str | None:
    """Return how many times larger the second sampler's picture is; None where nothing enlarges what the first one made."""
    for node in _list_upstream(graph, sampler.get("latent_image")):
        inputs = _inputs(node)
        if "Upscale" not in _class_of(node) and "ImageScale" not in _class_of(node):
            continue
        by, to, of = (_read_plain(graph, *each) for each in ((inputs, "scale_by"), (inputs, "width"), (latent, "width")))
        if isinstance(by, int | float):
            return f"{by:g}"
        if isinstance(to, int | float) and isinstance(of, int | float) and of > 0 and to:
            return f"{round(to / of, 2):g}"
    return None


_JOINING: Final = {
    "ConditioningConcat": ("conditioning_to", "conditioning_from"),
    "ConditioningCombine": ("conditioning_1", "conditioning_2"),
    "ConditioningAverage": ("conditioning_to", "conditioning_from"),
}
"""These nodes join two prompts, under these names: the first into one that is longer, which a comma comes nearest to."""


def _find_words(graph: Mapping[str, Any], first: Any, side: str) -> tuple[str, list[str]]:
    """Return the words of a prompt, and the nodes that mixed it in a way that Hearth does not have."""
    link = first
    for _ in range(VISITS_MOST):
        node = _find_node(graph, link)
        inputs = _inputs(node)
        if kinds := _JOINING.get(_class_of(node)):
            texts = [_find_text(graph, inputs.get(each)) for each in kinds]
            whole = _class_of(node) == "ConditioningConcat"
            return ", ".join(filter(None, texts)) if whole else texts[0], [] if whole else [_class_of(node)]
        link = inputs.get(side, inputs.get("conditioning"))
        if not isinstance(link, list):
            break
    return _find_text(graph, first), []


def _find_guide(graph: Mapping[str, Any], guiding: Mapping[str, Any]) -> Guide:
    loaders = map(_inputs, _list_upstream(graph, guiding.get("control_net")))
    named = next((str(each["control_net_name"]) for each in loaders if "control_net_name" in each), "")
    return Guide(named, " ".join(_class_of(node) for node in _list_upstream(graph, guiding.get("image"))))


def _find_loras(graph: Mapping[str, Any], model: Any) -> tuple[tuple[tuple[str, Any], ...], tuple[str, ...]]:
    """Return the LoRAs with their weights that lie on the way to the sampler's model, and the kinds of nodes there whose LoRAs cannot be read.

    Where the model is no link, as with pipes, all nodes count. The nearest to the weights comes first."""
    nodes = [*_list_upstream(graph, model)][::-1] if isinstance(model, list) else [*graph.values()]
    found: list[tuple[str, Any]] = []
    unread: dict[str, None] = {}
    for node in nodes:
        read = _read_loras(_inputs(node))
        found += read or ()
        if read is None and "lora" in _class_of(node).lower():
            unread[_class_of(node)[:40]] = None
    return tuple(found), tuple(unread)


def _read_loras(inputs: Mapping[str, Any]) -> list[tuple[str, Any]] | None:
    """Return what ComfyUI's loaders, and rgthree's with a list or a stack, load; None if a LoRA is named in another way."""
    found, others = [], False
    for name, value in inputs.items():
        if isinstance(value, dict) and isinstance(value.get("lora"), str):
            found += [(value["lora"], value.get("strength", 1.0))] if value.get("on", True) else []
        elif "lora" in name and isinstance(value, str) and value.lower() not in ("", "none"):
            weight = "strength_model" if name == "lora_name" else name.replace("lora", "strength")
            if name == "lora_name" or weight in inputs:
                found.append((value, inputs.get(weight, 1.0)))
            else:
                others = True
    return found if found or not others else None


def name_sampler(name: str, schedule: str) -> str:
    """Return a sampler with its schedule as `SAMPLERS` has them: A1111 writes "DPM++ 2M" and "Karras", ComfyUI dpmpp_2m and karras, InvokeAI
    dpmpp_2m_k. A schedule that no sampler of Hearth's has stays in the name, so that it is told."""
    plain = name.strip().lower().removesuffix("_gpu")
    if plain.endswith("_k"):
        plain, schedule = plain.removesuffix("_k"), "karras"
    known = SAMPLERS.get(plain, name.strip())
    spaced = schedule.strip().replace("_", " ")
    ending = SCHEDULES.get(spaced.lower(), spaced)
    if not ending or known.lower().endswith(ending.lower()):
        return known
    return SAMPLERS.get(f"{known} {ending}".lower(), f"{known} {spaced}")


def list_lost(told: Mapping[str, Any]) -> tuple[str, ...]:
    """Name what of a program's settings changed the picture and cannot be taken over, each once, with its value."""
    found: dict[str, str] = {}
    for name, value in told.items():
        said, value = LOST.get(name.lower()), value.get("name") if isinstance(value, dict) else value
        if said and str(value).strip().lower() not in NOTHING:
            found.setdefault(said, "" if str(value).lower() == "true" else str(value).strip()[:40])
    return tuple(f"{said} {value}".rstrip() for said, value in found.items())


_PARTS: Final = ("noise", "sampler", "sigmas", "guider")
"""By these links a custom sampler leads to the nodes that hold a part of its settings each. The guider's model is the one that paints."""


def _list_samplers(graph: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the inputs of the nodes that sample, first those that begin with an empty picture; raise StopIteration if there is none."""
    whole = [_inputs(node) for node in graph.values() if "KSampler" in _class_of(node) or "SamplerCustom" in _class_of(node)]
    samplers = [each for each in whole if "positive" in each or "guider" in each]
    if not samplers:
        raise StopIteration
    return sorted(samplers, key=lambda each: "width" not in _latent_of(graph, each))


def _gather_settings(graph: Mapping[str, Any], sampler: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a node that samples, with those of the nodes that it is put together from."""
    gathered: dict[str, Any] = {}
    for link in _PARTS:
        gathered |= _inputs(_find_node(graph, sampler.get(link)))
    return {**gathered, **sampler}


def _latent_of(graph: Mapping[str, Any], sampler: Mapping[str, Any]) -> Mapping[str, Any]:
    return _inputs(_find_node(graph, sampler.get("latent_image")))


def _read_plain(graph: Mapping[str, Any], inputs: Mapping[str, Any], name: str) -> Any:
    """Return a plain value, which may lie in a node of its own, as PrimitiveInt; what is calculated counts as none."""
    value = inputs.get(name)
    if isinstance(value, list):
        node = _inputs(_find_node(graph, value))
        value = next((node[each] for each in (name, "value", "int", "float", "number") if each in node), None)
    return None if isinstance(value, list | dict | bool) else value


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
        name = _name_linked(waiting.pop())
        if not name or name in visited:
            continue
        visited.add(name)
        if _class_of(graph.get(name)) == "ConditioningZeroOut":  # of the words before it nothing is left
            continue
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


def _list_upstream(graph: Mapping[str, Any], link: Any) -> Iterator[Any]:
    """Yield the nodes that lead to a link, the nearest first, each once and VISITS_MOST at most."""
    waiting, visited = deque([link]), set[str]()
    while waiting and len(visited) < VISITS_MOST:
        name = _name_linked(waiting.popleft())
        if name and name not in visited:
            visited.add(name)
            yield graph.get(name)
            waiting += [each for each in _inputs(graph.get(name)).values() if isinstance(each, list)]


def _name_linked(link: Any) -> str:
    return str(link[0]) if isinstance(link, list) and link and isinstance(link[0], str | int) else ""


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
        model=name_path(Path(public_name(found.model))),
        negative=found.negative,
        scheduler=scheduler if known else None,
        loras=loras,
        hires=numbers.get("upscale", 1) > 1,
        masked_only=found.masked_only,
        control="" if found.guide is None or found.guide.control == "None" else public_name(found.guide.control),
        guide_as=next((way for word, way in GUIDES if found.guide and word in found.guide.made.lower()), ""),
        **numbers,
    )
    unused = [name for name, value in found.numbers.items() if name not in numbers and value not in (None, "")]
    return RestoredSettings(request, tuple(_list_notes(found, known, unused)))


def _list_notes(found: Found, sampler_known: bool, unused: list[str]) -> Iterator[Sentence]:
    if found.from_picture:
        yield ADD_IMAGE
    if found.guide:
        yield ADD_GUIDE
    if found.referenced:
        yield ADD_REFERENCE
    if found.lost:
        yield say_to_all("restore.lost", "Hearth does not have these settings, so they were left out: {names}.", names=found.lost)
    if found.sampler.lower() not in AUTOMATIC and not sampler_known:
        yield say_to_all("restore.sampler", "Hearth does not know the sampler {name}; the model's own is used.", name=found.sampler)
    for name, given in found.loras:
        if _read_number(given, weight_of(name)) is None:
            yield say_to_all(
                "restore.lora",
                "The LoRA {name} has the weight {value}, which cannot be used here, so it was left out.",
                name=name,
                value=str(given)[:40],
            )
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
