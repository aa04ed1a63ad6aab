"""Walk torch's own samples of attention, and the odd calls that broke the seam, with their gradients, under every plan that can be forced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import cache
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import make_tensor

from app.base.trouble import Trouble
from app.compat.attention.seam import applied
from app.compat.planning.types import Plan
from tests.support.combinations import combine
from tests.support.opinfo import list_anew, samples
from tests.support.plans import EVERY, every_combination

ODD_WORDS = "ignore:.*([Ff]lash attention|fused kernels):UserWarning"
"""torch says once a process why the only kernel that may run does not take a shape."""
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings(ODD_WORDS)]
WITHIN = {torch.float64: 1e-11, torch.float32: 2e-5, torch.float16: 1e-2, torch.bfloat16: 6e-2}
"""So much of the largest number may be off, gradients included."""
TORCH = torch._C._nn.scaled_dot_product_attention
Given = tuple[list[Any], dict[str, Any]]


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def ask(given: Given) -> Tensor:
    return F.scaled_dot_product_attention(*given[0], **given[1])


def in_float64(each: Any) -> Any:
    """A leaf of the same numbers and layout."""
    if not isinstance(each, Tensor) or not each.is_floating_point():
        return each
    return each.detach().double().requires_grad_(each.requires_grad)


def right(given: Given, weights: Tensor | None = None) -> tuple[Tensor, list[Tensor]]:
    """The result and the gradients, from torch's plainest kernel in float64."""
    exact: Given = [in_float64(each) for each in given[0]], {name: in_float64(each) for name, each in given[1].items()}
    if any(each.dim() == 4 and each.shape[1] != exact[0][0].shape[1] for each in exact[0][1:3]):
        exact[1]["enable_gqa"] = True
    with sdpa_kernel(SDPBackend.MATH):
        out = TORCH(*exact[0], **exact[1])
    return out, gradients(out, leaves(exact), weights)


def leaves(given: Given) -> list[Tensor]:
    every = (*given[0], *given[1].values())
    return [each for each in every if isinstance(each, Tensor) and each.requires_grad]


def gradients(out: Tensor, of: list[Tensor], weights: Tensor | None) -> list[Tensor]:
    if not of:
        return []
    weights = torch.linspace(-1, 1, out.numel()).view(out.shape) if weights is None else weights
    return list(torch.autograd.grad((out * weights.to(out.dtype)).sum(), of))


def off(found: Tensor, wanted: Tensor) -> float:
    assert found.shape == wanted.shape
    if not found.numel():
        return 0.0
    found, wanted = found.detach().double(), wanted.detach().double()
    return float((found - wanted).abs().max() / wanted.abs().max().clamp(min=1e-2))


def wrong(given: Given, within: float, wanted: Tensor, slopes: list[Tensor]) -> str:
    """Empty where the seam's result and gradients are right; else what is not."""
    dtype = given[0][2].dtype
    try:
        found = ask(given)
        if found.dtype != dtype or found.shape != wanted.shape:
            return f"{found.dtype}, {tuple(found.shape)}"
        errors = [off(found, wanted)]
        errors += map(off, gradients(found, leaves(given), None), slopes)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:90]}"
    return "" if all(error <= within for error in errors) else f"off by {errors}"  # NaN is no answer


def all_seen(given: Given) -> Given:
    """The values become a unit matrix, so that the result is the weights themselves."""
    value = given[0][2]
    return [*given[0][:2], torch.eye(*value.shape[-2:], dtype=value.dtype).expand_as(value)], given[1]


def dropped(given: Given, wanted: Tensor) -> str:
    """Each weight is 0, or raised to make up for those that are."""
    value = given[0][2]
    try:
        found = ask(given)
        slopes = gradients(found, leaves(given)[:2], None)
    except Exception as raised:
        return f"{type(raised).__name__}: {str(raised)[:90]}"
    error = off(found.double(), torch.where(found == 0, 0.0, wanted.detach() / (1 - given[1]["dropout_p"])))
    if not all(each.isfinite().all() for each in slopes):
        return "a gradient is not finite"
    return "" if error <= WITHIN[value.dtype] and 0 < found.count_nonzero() < wanted.count_nonzero() else f"off by {error}"


def made(sample: Given, dtype: torch.dtype) -> Given:
    def tensor(told: Any) -> Any:
        if not isinstance(told, dict):
            return told
        flat = make_tensor(told["shape"], dtype=dtype, device="cpu", low=-2, high=2)
        return flat.new_empty_strided(told["shape"], told["stride"]).copy_(flat).requires_grad_()

    return [tensor(each) for each in sample[0]], {name: tensor(each) for name, each in sample[1].items()}


@cache
def questions(dtype: torch.dtype) -> list[tuple[str, Given, Tensor, list[Tensor]]]:
    """Each with its right answer and gradients, which no plan changes."""
    torch.manual_seed(0)
    asked = [(str(sample), made(sample, dtype)) for sample in samples()] + [(each, case(dtype)) for each, case in CASES.items()]
    answered = []
    for what, given in asked:
        if given[1].get("dropout_p"):
            given = all_seen(given)
        wanted, slopes = right((given[0], given[1] | {"dropout_p": 0.0}))
        assert all(each.isfinite().all() for each in (wanted, *slopes)), f"the reference itself, {what}"
        answered.append((what, given, wanted.detach(), slopes))
    return answered


def walk(plans: dict[str, Plan], dtypes: tuple[torch.dtype, ...]) -> Iterator[str]:
    """What is wrong, plan by plan."""
    for name, plan in plans.items():
        for dtype in dtypes:
            asked = questions(dtype)
            with applied(plan) as seam:
                for what, given, wanted, slopes in asked:
                    problem = dropped(given, wanted) if given[1].get("dropout_p") else wrong(given, WITHIN[dtype], wanted, slopes)
                    if problem:
                        yield f"{name}, {dtype}, {what}: {problem}"
            if seam.calls < len(asked):
                yield f"{name}, {dtype}: {seam.calls} of {len(asked)} calls counted"


def draw(dtype: torch.dtype, *shapes: tuple[int, ...]) -> list[Tensor]:
    return [torch.randn(shape).to(dtype).requires_grad_() for shape in shapes]


def plain(dtype: torch.dtype, **options: Any) -> Given:
    return draw(dtype, (2, 4, 5, 8), (2, 4, 6, 8), (2, 4, 6, 8)), options


def grouped(dtype: torch.dtype, queries: int = 5, **options: Any) -> Given:
    return draw(dtype, (2, 4, queries, 8), (2, 2, 6, 8), (2, 2, 6, 8)), options | {"enable_gqa": True}


def shaped(dtype: torch.dtype, *shapes: tuple[int, ...], **options: Any) -> Given:
    return draw(dtype, *shapes), options


def strided(dtype: torch.dtype, few: int = 4, **options: Any) -> Given:
    """The last stride is 2."""
    wide = draw(dtype, (2, 4, 5, 16), (2, few, 6, 16), (2, few, 6, 16))
    return [each.detach()[..., ::2].requires_grad_() for each in wide], options


def blind(*shape: int) -> Tensor:
    """A mask whose third query sees nothing."""
    seen = torch.rand(shape) > 0.3
    seen[..., 0] = True
    seen[..., 2, :] = False
    return seen


def additive(seen: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, -torch.inf)


def wanting(dtype: torch.dtype, *shape: int) -> Tensor:
    return torch.randn(shape).to(dtype).requires_grad_()


def alone(given: Given, mask: Tensor) -> Given:
    """Only the mask wants a gradient."""
    return [each.detach() for each in given[0]], given[1] | {"attn_mask": mask}


def step_of_speech(dtype: torch.dtype, **options: Any) -> Given:
    """As many numbers as make it one, over few keys: the plans that go key by key take their time."""
    return [each.detach() for each in draw(dtype, (1, 128, 1, 128), (1, 64, 128, 128), (1, 64, 128, 128))], options


Case = Callable[[torch.dtype], Given]
CASES: dict[str, Case] = {
    "scale 0": lambda d: plain(d, scale=0.0),
    "scale 0, grouped": lambda d: grouped(d, scale=0.0),
    "scale 0, one query": lambda d: grouped(d, 1, scale=0.0),
    "scale 0, long": lambda d: shaped(d, (1, 4, 40, 8), (1, 2, 20, 8), (1, 2, 20, 8), scale=0.0, enable_gqa=True),
    "a negative scale": lambda d: grouped(d, scale=-0.7),
    "a scale that is a tensor": lambda d: plain(d, scale=torch.tensor(0.3)),
    "a row that sees nothing": lambda d: plain(d, attn_mask=blind(5, 6)),
    "a row that sees nothing, grouped": lambda d: grouped(d, attn_mask=blind(2, 1, 5, 6)),
    "a row that sees nothing, by heads": lambda d: grouped(d, attn_mask=blind(2, 4, 5, 6)),
    "a row that sees nothing, by numbers": lambda d: plain(d, attn_mask=additive(blind(5, 6), d)),
    "a row that sees nothing, by numbers, grouped": lambda d: grouped(d, attn_mask=additive(blind(2, 4, 5, 6), d)),
    "a row that sees nothing, the mask learns": lambda d: plain(d, attn_mask=additive(blind(5, 6), d).requires_grad_()),
    "nothing is seen": lambda d: plain(d, attn_mask=torch.zeros(5, 6, dtype=torch.bool)),
    "the mask alone learns": lambda d: alone(plain(d), wanting(d, 5, 6)),
    "the mask alone learns, grouped": lambda d: alone(grouped(d), wanting(d, 2, 4, 5, 6)),
    "the mask alone learns, one row": lambda d: alone(grouped(d), wanting(d, 1, 1, 1, 6)),
    "the mask learns too": lambda d: grouped(d, attn_mask=wanting(d, 1, 4, 5, 6)),
    "only values learn": lambda d: ([each.requires_grad_(at == 2) for at, each in enumerate(grouped(d)[0])], {}),
    "queries of width 0": lambda d: shaped(d, (2, 4, 5, 0), (2, 4, 6, 0), (2, 4, 6, 3)),
    "queries of width 0, grouped": lambda d: shaped(d, (2, 4, 5, 0), (2, 2, 6, 0), (2, 2, 6, 3), enable_gqa=True),
    "queries of width 0, causal": lambda d: shaped(d, (2, 4, 5, 0), (2, 4, 6, 0), (2, 4, 6, 3), is_causal=True),
    "queries of width 0, masked": lambda d: shaped(d, (2, 4, 5, 0), (2, 4, 6, 0), (2, 4, 6, 3), attn_mask=blind(5, 6)),
    "no heads": lambda d: shaped(d, (2, 0, 5, 8), (2, 0, 6, 8), (2, 0, 6, 8)),
    "no heads, grouped": lambda d: shaped(d, (2, 0, 5, 8), (2, 0, 6, 8), (2, 0, 6, 8), enable_gqa=True),
    "no query heads": lambda d: shaped(d, (2, 0, 5, 8), (2, 1, 6, 8), (2, 1, 6, 8)),
    "no batch": lambda d: shaped(d, (0, 4, 5, 8), (0, 4, 6, 8), (0, 4, 6, 8)),
    "no queries": lambda d: shaped(d, (2, 4, 0, 8), (2, 4, 6, 8), (2, 4, 6, 8)),
    "no keys": lambda d: shaped(d, (2, 4, 5, 8), (2, 4, 0, 8), (2, 4, 0, 8)),
    "no keys, grouped": lambda d: shaped(d, (2, 4, 5, 8), (2, 2, 0, 8), (2, 2, 0, 8), enable_gqa=True),
    "no keys, causal": lambda d: shaped(d, (2, 4, 5, 8), (2, 4, 0, 8), (2, 4, 0, 8), is_causal=True),
    "no values": lambda d: shaped(d, (2, 4, 5, 8), (2, 4, 6, 8), (2, 4, 6, 0)),
    "a strided last dimension": strided,
    "a strided last dimension, grouped": lambda d: strided(d, 2, enable_gqa=True),
    "a strided last dimension, causal": lambda d: strided(d, is_causal=True),
    "a strided last dimension, masked": lambda d: strided(d, attn_mask=blind(5, 6)),
    "dropout": lambda d: plain(d, dropout_p=0.4),
    "dropout, grouped": lambda d: grouped(d, dropout_p=0.4),
    "dropout, causal, grouped": lambda d: grouped(d, dropout_p=0.4, is_causal=True),
    "causal, grouped": lambda d: grouped(d, is_causal=True),
    "a long causal one, grouped": lambda d: shaped(d, (1, 4, 140, 8), (1, 2, 20, 8), (1, 2, 20, 8), is_causal=True, enable_gqa=True),
    "keys and values in another number": lambda d: shaped(d, (2, 4, 5, 8), (2, 2, 6, 8), (2, 4, 6, 8), enable_gqa=True),
    "values of another width": lambda d: shaped(d, (2, 4, 5, 8), (2, 2, 6, 8), (2, 2, 6, 3), enable_gqa=True),
    "two dimensions": lambda d: shaped(d, (5, 8), (6, 8), (6, 8)),
    "five dimensions": lambda d: shaped(d, (2, 3, 4, 5, 8), (2, 3, 4, 6, 8), (2, 3, 4, 6, 8)),
    "a step of speech": step_of_speech,
    "a step of speech, scale 0": lambda d: step_of_speech(d, scale=0.0),
}


@pytest.mark.parametrize("name", EVERY)
def test_right_under_every_plan(name: str) -> None:
    """Each in one dtype, the next in the next; the long run asks all."""
    problems = list(walk({name: EVERY[name]}, (tuple(WITHIN)[list(EVERY).index(name) % len(WITHIN)],)))
    assert not problems, "\n".join(problems)


def test_torchs_samples_are_all_there() -> None:
    assert len(samples()) >= 13
    assert {options.get("dropout_p") for _, options in samples()} == {0.0, 0.5}


@pytest.mark.slow
def test_torch_has_no_other_samples() -> None:
    assert samples() == list_anew(), "write them to tests/support/opinfo.json"


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("dtype", list(WITHIN))
def test_right_under_every_combination(dtype: torch.dtype) -> None:
    problems = list(walk(every_combination(), (dtype,)))
    assert not problems, "\n".join(problems[:20])


@pytest.mark.parametrize(("name", "lower"), combine(EVERY, (torch.bfloat16, torch.float16)))
def test_autocast_gives_the_dtype_that_torch_gives(name: str, lower: torch.dtype) -> None:
    for dtype in WITHIN:
        for given in (plain(dtype), grouped(dtype), grouped(dtype, attn_mask=wanting(dtype, 5, 6)), plain(dtype, attn_mask=blind(5, 6))):
            wanted, slopes = right(given)
            with torch.autocast("cpu", lower):
                kind = ask(given).dtype if "enable_gqa" not in given[1] else ask(plain(dtype)).dtype
                with applied(EVERY[name]) as seam:
                    found = ask(given)
            assert found.dtype == kind == (torch.float64 if dtype == torch.float64 else lower)
            assert seam.calls == 1 and not any(path.startswith("stepped") for path in seam.paths)
            assert off(found, wanted) <= WITHIN[kind]
            for slope, each, leaf in zip(gradients(found, leaves(given), None), slopes, leaves(given), strict=True):
                assert slope.dtype == leaf.dtype and off(slope, each) <= WITHIN[kind]


WRONG: dict[str, Callable[[], Given]] = {
    "heads that do not divide": lambda: shaped(torch.float32, (2, 5, 3, 8), (2, 2, 4, 8), (2, 2, 4, 8)),
    "heads that do not divide, grouped": lambda: shaped(torch.float32, (2, 5, 3, 8), (2, 2, 4, 8), (2, 2, 4, 8), enable_gqa=True),
    "no query heads over some": lambda: shaped(torch.float32, (2, 0, 3, 8), (2, 4, 4, 8), (2, 4, 4, 8)),
    "batches": lambda: shaped(torch.float32, (2, 4, 3, 8), (3, 4, 4, 8), (3, 4, 4, 8)),
    "widths": lambda: shaped(torch.float32, (2, 4, 3, 8), (2, 4, 4, 6), (2, 4, 4, 6)),
    "one dimension": lambda: shaped(torch.float32, (8,), (8,), (8,)),
    "whole numbers": lambda: (list(torch.ones(3, 1, 2, 4, 8, dtype=torch.int32)), {}),
    "yes and no": lambda: (list(torch.ones(3, 1, 2, 4, 8, dtype=torch.bool)), {}),
    "a mask of another number of heads": lambda: plain(torch.float32, attn_mask=torch.ones(2, 3, 5, 6, dtype=torch.bool)),
    "a mask of one dimension": lambda: plain(torch.float32, attn_mask=torch.ones(6, dtype=torch.bool)),
    "a mask of whole numbers": lambda: plain(torch.float32, attn_mask=torch.ones(5, 6, dtype=torch.int64)),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_question_is_refused_as_torch_would_and_in_a_sentence(what: str) -> None:
    given = WRONG[what]()
    with pytest.raises((RuntimeError, IndexError)) as torchs:
        ask(given)
    for name, plan in EVERY.items():
        with applied(plan), pytest.raises(torchs.type) as ours:
            ask(given)
        assert isinstance(ours.value, Trouble), name
        assert str(ours.value).startswith("Attention got"), name


@pytest.mark.parametrize("without", ["query", "key", "value"])
def test_a_tensor_without_data_is_torchs(without: str) -> None:
    """Torch refuses some and gives a result without data for others; own arithmetic made numbers up."""
    for plan in EVERY.values():
        given: dict[str, Any] = dict(zip(("query", "key", "value"), (torch.randn(1, 2, 4, 8) for _ in range(3)), strict=True))
        given[without] = given[without].to("meta")
        outcomes = []
        for through in (nullcontext(), applied(plan)):
            with through:
                try:
                    outcomes.append(str(F.scaled_dot_product_attention(**given).device))
                except RuntimeError as fault:
                    outcomes.append(type(fault).__name__)
        assert outcomes[0] == outcomes[1] != "cpu"


@pytest.mark.parametrize("name", EVERY)
def test_what_only_torch_has_words_for_is_refused_in_its_words(name: str) -> None:
    for options in ({"dropout_p": 2.0}, {"scale": "wide"}):
        given = plain(torch.float32, **options)
        with pytest.raises((RuntimeError, TypeError)) as torchs:
            ask(given)
        with applied(EVERY[name]), pytest.raises(torchs.type):
            ask(given)
