"""Detect what a local folder or weights file is, from its configs and its header alone: loads and unpickles nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from app.base.sentence import Sentence, Value, say
from app.base.trouble import Trouble
from app.compat.planning.types import Role
from app.engine.models import safetensors
from app.engine.models.beside import find_beside
from app.engine.models.config_facts import read_config, refuse_fact, shorten
from app.engine.models.families.family import PictureFamily, WholeSteps
from app.engine.models.families.stable_diffusion import EDM, INPAINTING, REFINER
from app.engine.models.file_facts import PIXART, WHAT, FileFacts, read_facts, says_few_steps
from app.engine.models.judged_files import judge_folder, read_settings
from app.engine.models.model import Attention, Companion, ConfigNeeds, Model, ModelSettings
from app.engine.models.other_tools import find_snapshot
from app.engine.models.picture_families import BY_CLASS
from app.engine.models.picture_families import FAMILIES as PICTURES
from app.engine.models.voice_families import FAMILIES as VOICES

_ROLES: Final[dict[str, Role]] = {
    "text_encoder": "text", "text_encoder_2": "text", "text_encoder_3": "text",
    "unet": "denoiser", "transformer": "denoiser", "vae": "vae",
}  # fmt: skip
USUAL_LEVELS: Final = 4
USUAL_SCALE: Final = 1 << (USUAL_LEVELS - 1)
"""The decoder of every catalog row shrinks a picture this far, by half from level to level; a local model's is read from its config."""
LEVELS_MOST: Final = 8
SHIFT_OFF: Final = 0.5
"""A folder's shift may be so much less than its family's base has."""
SIDE_MOST: Final = 8192
"""No model may say that it was trained at larger pictures."""
POSITIONS_MOST: Final = 1 << 28
"""The largest table of positions of a model has at most so many numbers; Stable Diffusion 3.5 has 226 million, 2 GB while it is
computed."""
_LIBRARIES: Final = frozenset({"diffusers", "transformers", "stable_diffusion", None})
"""Parts of a pipeline may come from these libraries; anything else would be code from the folder."""
_PARTS: Final = frozenset({*_ROLES, "tokenizer", "tokenizer_2", "tokenizer_3", "scheduler"})
"""A diffusers folder keeps its parts in folders of these names."""
_PIPELINE: Final = "model_index.json"
_FEW_STEPS_NAMED: Final = say("detect.few-steps", "Its name says that it needs few steps, so 8 steps with little guidance are set.")


def detect_model(path: Path, catalog: Mapping[str, Model], configs: Mapping[str, Companion]) -> Model:
    """Describe a local model as a row like the catalog's; of a repository in the hub's cache, its newest revision."""
    path = find_snapshot(path) or path
    _refuse_part(path)
    try:
        return _detect_folder(path, catalog) if path.is_dir() else _detect_file(path, catalog, configs)
    except (OSError, KeyError, IndexError, TypeError, AttributeError, ValueError, ZeroDivisionError) as fault:
        raise Trouble(
            say(
                "detect.strange",
                "The settings of the model in {path} are damaged ({fault}). Download it again.",
                path=str(path),
                fault=f"{type(fault).__name__}: {fault}",
            )
        ) from fault


def name_path(path: Path) -> str:
    """Return the title of a local model; nothing is read for it."""
    if path.parent.name == "snapshots":
        return path.parent.parent.name.rpartition("--")[2]
    return path.stem if path.suffix in (*safetensors.ENDINGS, ".gguf") else path.name


def _detect_file(path: Path, catalog: Mapping[str, Model], configs: Mapping[str, Companion]) -> Model:
    facts = read_facts(path)
    _require_usable(path, facts)
    if not facts.family:
        raise _refuse_unknown(path)
    if path.suffix.lower() == ".sft" and PICTURES[facts.family].denoiser == "unet":  # its library would take it for a pickle
        raise Trouble(say("detect.rename", "Rename {path} so that it ends in .safetensors: with .sft it cannot be loaded.", path=str(path)))
    family, beside = PICTURES[facts.family], find_beside(path, facts)
    lacks = [each for each in facts.lacks if each not in beside]
    like = catalog[family.like]
    # The catalog row's VAE may be a repaired one from elsewhere; here it is the file's.
    parts = tuple(replace(part, half_is_safe=part.half_is_safe and part.name not in family.unsafe_in_half) for part in like.parts)
    parts = tuple(
        replace(part, parameters=facts.parameters, linear=facts.linear, gguf_bytes=path.stat().st_size if facts.gguf else None)
        if part.role == "denoiser"
        else part
        for part in parts
    )
    settings, scheduler, note = _read_settings_of_file(facts, family, like)
    return replace(
        like,
        id=str(path),
        title=name_path(path),
        path=str(path),
        source=None,
        single_file=True,
        plain=None,
        note=note,
        parts=parts,
        settings=settings,
        companions=(_ask_for(configs[family.name], like, lacks),),
        licence="",
        gated=False,
        needs=ConfigNeeds(),
        attention=replace(like.attention, text_tokens=family.numbered.text_tokens) if family.numbered and facts.guided else like.attention,
        precision=facts.precision,
        gguf=facts.gguf,
        beside=tuple((part, str(file)) for part, file in beside.items()),
        scheduler=scheduler,
    )


def _ask_for(base: Companion, like: Model, lacks: Collection[str]) -> Companion:
    """Ask of a file's base model for the weights that the file lacks beside its settings."""
    if not lacks:
        return base
    half = ".fp16" if PICTURES[like.family].denoiser == "unet" else ""
    wanted = tuple(f"{part}/*{half}.safetensors" for part in lacks)
    rest = tuple(f"{part.name}/*.safetensors" for part in like.parts if part.name not in lacks)
    size_bytes = sum(part.parameters * 2 for part in like.parts if part.name in lacks)
    source = replace(
        base.source, files=(*base.source.files, *wanted), leave=(*base.source.leave, *rest), bytes=base.source.bytes + size_bytes
    )
    return replace(base, source=source)


def _read_settings_of_folder(
    path: Path, index: Mapping[str, Any], family: PictureFamily, like: Model
) -> tuple[ModelSettings, int | None, Sentence | None]:
    """Return what a folder's own configs recommend, how much text it reads if that is because it takes guidance as a number, and a note
    where they are silent."""
    settings = like.plain or like.settings
    if family.numbered and read_settings(path, "transformer/config.json").get("guidance_embeds"):
        return replace(settings, steps=family.numbered.steps, guidance=family.numbered.guidance), family.numbered.text_tokens, None
    if family.whole_steps:
        distilled = _was_distilled(path, index, family.whole_steps)
        own = _set_whole_steps(family.whole_steps, settings) if distilled is False else settings
        return own, None, _say_steps_unknown(like) if distilled is None else None
    if family.few_steps and says_few_steps(name_path(path), family.name):
        return replace(settings, steps=family.few_steps.steps, guidance=family.few_steps.guidance), None, _FEW_STEPS_NAMED
    if family.few_steps_folders and (path / "scheduler").is_dir():
        spacing = read_settings(path, "scheduler/scheduler_config.json").get("timestep_spacing")
        predicts = read_settings(path, "scheduler/scheduler_config.json").get("prediction_type")
        if spacing == "trailing" and predicts != "v_prediction":  # as Turbo and Lightning are published, and nothing else
            return replace(settings, steps=4, guidance=0.0, scheduler=""), None, None
    return settings, None, None


def _was_distilled(path: Path, index: Mapping[str, Any], whole: WholeSteps) -> bool | None:
    """Tell whether a folder's model needs few steps: FLUX.2 klein's says it, Z-Image's base shifts its times further. None: it does not say."""
    if whole.shift is None:
        said = index.get("is_distilled")
        return said if isinstance(said, bool) else None
    scheduler = read_settings(path, "scheduler/scheduler_config.json") if (path / "scheduler").is_dir() else {}
    shift = None if scheduler.get("use_dynamic_shifting") else scheduler.get("shift")
    return shift < whole.shift - SHIFT_OFF if isinstance(shift, int | float) else None


def _say_steps_unknown(like: Model) -> Sentence:
    return say("detect.steps-unknown", "It does not say whether it needs few steps; those of {title} are set.", title=like.title)


def _read_settings_of_file(
    facts: FileFacts, family: PictureFamily, like: Model
) -> tuple[ModelSettings, tuple[tuple[str, str | float | bool], ...], Sentence | None]:
    """Return what a file's own markers recommend, what they say of its scheduler, and a note where its name alone says it."""
    settings = like.plain or like.settings
    if family.numbered and facts.guided:
        return replace(settings, steps=family.numbered.steps, guidance=family.numbered.guidance), family.numbered.scheduler, None
    if family.whole_steps:
        if facts.whole_steps:
            shift = family.whole_steps.shift
            return _set_whole_steps(family.whole_steps, settings), (("shift", shift),) if shift is not None else (), None
        unknown = family.steps_unsaid and not facts.few_steps
        return settings, (), _say_steps_unknown(like) if unknown else None
    if family.few_steps and facts.few_steps:
        return replace(settings, steps=family.few_steps.steps, guidance=family.few_steps.guidance), (), _FEW_STEPS_NAMED
    if family.flow_matching:
        return settings, (), None
    scheduler: tuple[tuple[str, str | float | bool], ...] = ()
    if facts.prediction == "v":
        scheduler = (("prediction_type", "v_prediction"),)
        if facts.zero_snr:
            scheduler += (("rescale_betas_zero_snr", True), ("timestep_spacing", "trailing"))
        settings = replace(settings, scheduler="Euler")
    if not facts.few_steps:
        named = say("detect.predicts-v", "Its name says that it was trained with v-prediction, so Hearth paints with it that way.")
        return settings, scheduler, named if facts.prediction_by_name else None
    return replace(settings, steps=8, guidance=1.5, scheduler="Euler a trailing"), scheduler, _FEW_STEPS_NAMED


def _set_whole_steps(whole: WholeSteps, settings: ModelSettings) -> ModelSettings:
    return replace(settings, steps=whole.steps, guidance=whole.guidance)


def _require_usable(path: Path, facts: FileFacts) -> None:
    """Refuse a file by what it is, with what to get instead."""
    if facts.packing:
        raise Trouble(
            say(
                "detect.packed",
                "The weights in {path} are packed as {packing}, which Hearth does not read. "
                "Get the same model in float16, bfloat16, plain fp8 or GGUF.",
                path=str(path),
                packing=facts.packing,
            )
        )
    if facts.other == PIXART:
        raise Trouble(
            say(
                "detect.folder-only",
                "{path} is a single file of {family}, which Hearth reads as a diffusers folder only. Get PixArt-Sigma as such a folder, "
                "or on the Models tab.",
                path=str(path),
                family=PIXART,
            )
        )
    if facts.other and facts.what in ("model", "denoiser"):
        raise _refuse_other(path, facts.other)
    if facts.what == "other":
        raise _refuse_unknown(path)
    if facts.what not in ("model", "denoiser"):
        what = facts.other if facts.what in ("lora", "encoder") and facts.other else WHAT[facts.what]
        raise Trouble(
            say(
                "detect.not-whole",
                "{path} contains {what}, not a model that paints. Choose the file of a model, or a diffusers folder.",
                path=str(path),
                what=what,
            )
        )


def _refuse_unknown(path: Path) -> Trouble:
    return Trouble(
        say(
            "detect.unknown",
            "Hearth does not know the model in {path}. It can use {families} as a diffusers folder, or a single file of one that paints.",
            path=str(path),
            families=tuple(sorted(filter(None, [*(each.title for each in PICTURES.values()), *(each.title for each in VOICES.values())]))),
        )
    )


def _refuse_part(path: Path) -> None:
    """Refuse one part of a diffusers folder, which lies there as a folder with a file or two: all of it is the model."""
    part = path if path.is_dir() else path.parent
    if part.name in _PARTS and (part.parent / _PIPELINE).is_file():
        raise Trouble(
            say("detect.part", "{path} is one part of the model in {folder}. Choose that folder.", path=str(path), folder=str(part.parent))
        )


def _refuse_other(path: Path, other: Value) -> Trouble:
    return Trouble(
        say(
            "detect.other-family",
            "{path} is {other}, a family that Hearth does not have. It can use {families}.",
            path=str(path),
            other=other,
            families=tuple(each.title for each in PICTURES.values()),
        )
    )


def _detect_folder(path: Path, catalog: Mapping[str, Model]) -> Model:
    for starter in catalog.values():
        if starter.path and Path(starter.path) == path:
            return starter
    if (path / _PIPELINE).is_file():
        return _detect_pipeline(path, catalog)
    voice = VOICES.get(str(read_settings(path, "config.json").get("model_type"))) if (path / "config.json").is_file() else None
    if voice is not None:
        found: Model = voice.facts.describe(path, catalog)
        return replace(
            found, id=str(path), title=name_path(path), path=str(path), source=None, companions=(), note=None, needs=read_config_needs(path)
        )
    if (path / "config.json").is_file() and {"model", "data"} <= read_settings(path, "config.json").keys():
        raise Trouble(
            say(
                "detect.first-dia",
                "{path} has the first layout of Dia, which Hearth does not read. Download Dia 1.6B on the Models tab; it is nari-labs/Dia-1.6B-0626.",
                path=str(path),
            )
        )
    raise _refuse_unknown(path)


def _detect_pipeline(path: Path, catalog: Mapping[str, Model]) -> Model:
    index = read_settings(path, _PIPELINE)
    kind = shorten(index.get("_class_name"))
    family = BY_CLASS.get(kind)
    if family is None:
        other = INPAINTING if any(kind == each.inpaint_class for each in PICTURES.values()) else kind.removesuffix("Pipeline")
        raise _refuse_other(path, other) if index.get("_class_name") else _refuse_unknown(path)
    if family.name == "sdxl" and index.get("text_encoder") in (None, [None, None]):
        raise _refuse_other(path, REFINER)
    if (made_of := index.get("scheduler")) and isinstance(made_of, list) and shorten(made_of[-1]).startswith("EDM"):
        raise _refuse_other(path, EDM)
    judge_folder(path, [name for name, made_of in index.items() if isinstance(made_of, list)])
    parts = []
    for name, made_of in index.items():
        library = made_of[0] if isinstance(made_of, list) and made_of else None
        if not name.startswith("_") and library not in _LIBRARIES:
            raise Trouble(
                say(
                    "detect.remote-code",
                    "The model in {path} needs its own code ({library}). Hearth never runs code from a model; choose another one.",
                    path=str(path),
                    library=shorten(library),
                )
            )
        if name in _ROLES and library is not None:
            found = safetensors.describe_part(name, _ROLES[name], path / name, name not in family.unsafe_in_half)
            parts.append(replace(found, scales=name in family.scaled))
    like = catalog[family.like]
    recommended, text_tokens, note = _read_settings_of_folder(path, index, family, like)
    scale = _read_scale(path)
    attention, width = _read_attention(path, like.attention, recommended.width, scale)
    if text_tokens is not None:
        attention = replace(attention, text_tokens=text_tokens)
    sizes = recommended.sizes if (width, width) in recommended.sizes else ((width, width),)
    # A coarser decoder than its family's needs sizes in larger multiples; pipelines never take multiples below 8.
    multiple = max(recommended.multiple, recommended.multiple * scale // USUAL_SCALE)
    settings = replace(recommended, width=width, height=width, sizes=sizes, multiple=multiple)
    return replace(
        like,
        id=str(path),
        title=name_path(path),
        path=str(path),
        source=None,
        companions=(),
        plain=None,
        note=note,
        needs=read_config_needs(path),
        parts=tuple(parts),
        attention=attention,
        settings=settings,
        licence="",
        gated=False,
    )


def _read_scale(path: Path) -> int:
    """Return how many pixels of the picture one latent spans, each way."""
    vae = read_settings(path, "vae/config.json") if (path / "vae").is_dir() else {}
    levels = len(vae["block_out_channels"]) if "block_out_channels" in vae else USUAL_LEVELS
    if levels > LEVELS_MOST:
        raise refuse_fact(path, "vae/config.json", "block_out_channels", vae["block_out_channels"])
    return 1 << (levels - 1)


def _read_attention(path: Path, like: Attention, width: int, scale: int) -> tuple[Attention, int]:
    """Return the widest attention in the denoiser's config, and the width it was trained at."""
    if (path / "unet").is_dir():
        config = read_settings(path, "unet/config.json")
        blocks = config["down_block_types"]
        level = next((i for i, kind in enumerate(blocks) if "Attn" in kind), 0)
        # diffusers' attention_head_dim of a UNet is the number of heads, for historical reasons.
        heads = config.get("num_attention_heads") or config["attention_head_dim"]
        heads = heads[level] if isinstance(heads, list) else heads
        head_dim = config["block_out_channels"][level] // heads
        side = config.get("sample_size")
        trained = side * scale if isinstance(side, int) else width
        if trained > SIDE_MOST:
            raise refuse_fact(path, "unet/config.json", "sample_size", side)
        return _change_heads(path, "unet", replace(like, pixels_a_token=scale << level), heads, head_dim), trained
    config = read_settings(path, "transformer/config.json")
    heads = config.get("num_attention_heads") or config.get("n_heads") or like.heads
    whole = config.get("dim") or config.get("hidden_size")
    head_dim = config.get("attention_head_dim") or (whole // heads if whole else like.head_dim)
    _refuse_large_tables(path, config, heads, head_dim)
    # A row's patches are counted in latents: they shrink with its own decoder's.
    pixels = max(1, like.pixels_a_token * scale // USUAL_SCALE)
    return _change_heads(path, "transformer", replace(like, pixels_a_token=pixels), heads, head_dim), width


def _refuse_large_tables(path: Path, config: Mapping[str, Any], heads: Any, head_dim: Any) -> None:
    """Refuse tables of positions that no model has: a transformer computes them from its settings alone, before it sees a weight."""
    most = config.get("pos_embed_max_size")
    side = most or (config.get("sample_size") or 0) // (config.get("patch_size") or 1)
    if side * side * heads * head_dim >= POSITIONS_MOST:
        raise refuse_fact(path, "transformer/config.json", "pos_embed_max_size" if most else "sample_size", side)
    longest = max(config.get("axes_lens") or [0])
    if longest * head_dim >= POSITIONS_MOST:
        raise refuse_fact(path, "transformer/config.json", "axes_lens", longest)


def _change_heads(path: Path, part: str, like: Attention, heads: Any, head_dim: Any) -> Attention:
    """Each number is in its range; together they have to make heads."""
    if not isinstance(heads, int) or not isinstance(head_dim, int) or head_dim < 1:
        raise refuse_fact(path, f"{part}/config.json", "num_attention_heads", heads)
    return replace(like, heads=heads, kv_heads=heads, head_dim=head_dim)


def read_config_needs(folder: Path) -> ConfigNeeds:
    """Read the attention and packing that config.json asks for. Loading reports a damaged file."""
    try:
        config = read_config(folder, "config.json")
    except (OSError, ValueError, Trouble):
        return ConfigNeeds()
    attention = config.get("attn_implementation") or config.get("_attn_implementation")
    packing = config.get("quantization_config")
    return ConfigNeeds(attention if isinstance(attention, str) else "", isinstance(packing, dict) and packing.get("quant_method") == "awq")
