"""Where the seam cannot help (tracing, compiling, torch.func, nested tensors) it steps aside to torch's own, says so, and changes no number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from app.compat.attention import sdpa_kernels, step_aside
from app.compat.attention.compose import compose
from app.compat.attention.seam import applied
from tests.compat.attention.test_seam_cases import ODD_WORDS
from tests.support.plans import EVERY, plan

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings(ODD_WORDS),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning"),
    pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning"),
    pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning"),
]
Three = tuple[Tensor, Tensor, Tensor]


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def ask(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value, **options)


def causal(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return ask(query, key, value, is_causal=True)


def plainly(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return ask(query, key, value)


def grouped(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return ask(query, key[:, :2], value[:, :2], enable_gqa=True)


def masked(mask: Tensor, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return ask(query, key, value, attn_mask=mask)


class Layer(nn.Module):
    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return ask(query, key, value, scale=0.4)


def by_hand(*sizes: int) -> Three:
    query, key, value = (torch.randn(2, 4, length, 8) for length in (5, 6, 6))
    return query, key, value


def total(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return ask(query, key, value).sin().sum()


def jagged() -> list[Tensor]:
    """Batch, heads, ragged length, width."""
    several = [[torch.randn(length, 4, 8) for length in (3, 6)] for _ in range(3)]
    return [torch.nested.nested_tensor(each, layout=torch.jagged).transpose(1, 2) for each in several]


def nested(*lengths: int) -> list[Tensor]:
    return [torch.nested.nested_tensor([torch.randn(4, each, 8) for each in lengths]) for _ in range(3)]


Way = tuple[str, Callable[[Three], Any]]
WAYS: dict[str, Way] = {
    "vmap": (step_aside.TRANSFORMED, lambda t: torch.vmap(ask)(*(each[None].repeat(3, 1, 1, 1, 1) for each in t))),
    "vmap over heads": (step_aside.TRANSFORMED, lambda t: torch.vmap(ask, in_dims=1, out_dims=1)(*t)),
    "vmap of some": (step_aside.TRANSFORMED, lambda t: torch.vmap(ask, (0, None, None))(t[0][None].repeat(3, 1, 1, 1, 1), *t[1:])),
    "vmap over a mask": (step_aside.TRANSFORMED, lambda t: torch.vmap(masked, (0, None, None, None))(torch.randn(3, 5, 6) > 0, *t)),
    "vmap over added masks": (step_aside.TRANSFORMED, lambda t: torch.vmap(masked, (0, None, None, None))(torch.randn(3, 4, 5, 6), *t)),
    "grad": (step_aside.TRANSFORMED, lambda t: torch.func.grad(total, (0, 1, 2))(*t)),
    "vmap of grad": (step_aside.TRANSFORMED, lambda t: torch.vmap(torch.func.grad(total))(*(each[:, None] for each in t))),
    "jacrev": (step_aside.TRANSFORMED, lambda t: torch.func.jacrev(causal)(*t)),
    "jacfwd": (step_aside.TRANSFORMED, lambda t: torch.func.jacfwd(ask)(*t)),
    "jvp": (step_aside.TRANSFORMED, lambda t: torch.func.jvp(ask, t, t)),
    "vjp": (step_aside.TRANSFORMED, lambda t: torch.func.vjp(grouped, *t)[1](torch.ones(2, 4, 5, 8))),
    "functionalize": (step_aside.TRANSFORMED, lambda t: torch.func.functionalize(grouped)(*t)),
    "proxies": (step_aside.TRACED, lambda t: make_fx(plainly)(*t)(*t)),
    "fake proxies": (step_aside.TRACED, lambda t: make_fx(grouped, tracing_mode="fake")(*t)(*t)),
    "symbolic proxies": (step_aside.TRACED, lambda t: make_fx(causal, tracing_mode="symbolic")(*t)(*t)),
    "torch.jit": (step_aside.TRACED, lambda t: torch.jit.trace(ask, t, check_trace=False)(*t)),
    "export": (step_aside.COMPILED, lambda t: torch.export.export(Layer(), t).module()(*t)),
    "export of any length": (
        step_aside.COMPILED,
        lambda t: torch.export.export(
            Layer(), t, dynamic_shapes=({2: torch.export.Dim("queries")}, {2: torch.export.Dim("keys")}, {2: torch.export.Dim("keys")})
        ).module()(t[0][:, :, :3], *t[1:]),
    ),
    "jagged": (step_aside.NESTED, lambda t: list(ask(*jagged()).unbind())),
    "jagged, causal": (step_aside.NESTED, lambda t: list(causal(*jagged()).unbind())),
    "strided nested": (step_aside.NESTED, lambda t: list(ask(*nested(3, 6)).unbind())),
    "strided nested, causal": (step_aside.NESTED, lambda t: list(causal(*nested(3, 6)).unbind())),
    "strided nested, all of a length": (step_aside.NESTED, lambda t: list(ask(*nested(4, 4)).unbind())),
    "strided nested, transposed": (step_aside.NESTED, lambda t: ask(*(each.transpose(2, 3) for each in nested(8, 8)))),
    "only keys nested": (step_aside.NESTED, lambda t: ask(t[0], *nested(3, 6)[1:])),
    "meta": (step_aside.META, lambda t: tuple(ask(*(each.to("meta") for each in t)).shape)),
}


def test_a_symbolic_trace_is_torchs_own() -> None:
    """Its proxies have neither data nor a shape. The graph calls torch itself, and can be kept without Hearth."""
    given = by_hand()
    wanted = torch.fx.symbolic_trace(Layer())
    for name, each in EVERY.items():
        with applied(each) as seam:
            found = torch.fx.symbolic_trace(Layer())
        assert seam.paths == {step_aside.TRACED: 1}, name
        assert [node.target for node in found.graph.nodes] == [node.target for node in wanted.graph.nodes]
        torch.testing.assert_close(found(*given), wanted(*given))


class Asks(torch.nn.Module):
    """A layer whose call of attention leaves one of its numbers open."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.tensors = by_hand()

    def forward(self, number: Any) -> Tensor:
        return F.scaled_dot_product_attention(*self.tensors, **{self.name: number})


@pytest.mark.parametrize(("name", "number"), [("dropout_p", 0.0), ("is_causal", True), ("scale", 0.5), ("enable_gqa", False)])
def test_a_symbolic_trace_of_a_number_alone_is_torchs_own(name: str, number: float) -> None:
    layer = Asks(name)
    wanted = torch.fx.symbolic_trace(layer)
    for each in SOME.values():
        with applied(each):
            found = torch.fx.symbolic_trace(layer)
        assert [node.target for node in found.graph.nodes] == [node.target for node in wanted.graph.nodes]
        torch.testing.assert_close(found(number), layer(number))


def test_all_is_dropped_without_asking_a_kernel() -> None:
    """A card's flash kernel refuses a dropout of 1: it divides by what is kept."""

    def flash(*given: Any, **_: Any) -> Tensor:
        dropout = given[4]
        assert dropout < 1, "Expected p_dropout < 1.f to be true, but got false."
        raise RuntimeError("No available kernel. Aborting execution.")

    query, key, value = (each.requires_grad_() for each in by_hand())
    for name in ("flash alone", "a card's flash alone", "native, flash alone, in chunks of 2"):
        for mask in (None, torch.ones(5, 6) > 0):
            found = compose(EVERY[name], flash)(query, key, value, mask, 1.0)
            assert found.shape == (2, 4, 5, 8) and not found.any(), name
            assert not torch.autograd.grad(found.sum(), query)[0].any()


SOME = {name: EVERY[name] for name in ("m1-8gb", "m2-16gb", "t4", "rtx-3060", "cpu", "own arithmetic", "flash alone", "keys by 4")}
LONG = ("symbolic proxies", "export of any length", "proxies", "fake proxies")


def answer(way: Callable[[Three], Any], given: Three) -> Any:
    """What came of it, or the error."""
    torch.manual_seed(1)
    try:
        return way(given)
    except RuntimeError as error:
        return error


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_steps_aside_under_every_plan(name: str) -> None:
    path, way = WAYS[name]
    given = by_hand()
    with sdpa_kernel(SDPBackend.MATH):  # which more of torch's transforms have rules for
        wanted = answer(way, given)
    assert not isinstance(wanted, Exception) or "nested" in path
    for which, each in (SOME if name in LONG else EVERY).items():
        with applied(each) as seam:
            found = answer(way, given)
        if isinstance(found, Exception):
            torchs = [type(wanted), type(answer(way, given))]
            with sdpa_kernels.only(each.kernels or ("flash", "math")):
                torchs.append(type(answer(way, given)))
            assert type(found) in torchs, (which, found)
        else:
            torch.testing.assert_close(found, wanted, msg=partial("{}: {}".format, which))
        assert set(seam.paths) == {path}, (which, seam.paths)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_a_compiled_graph_is_whole_and_right(name: str) -> None:
    given = by_hand()
    for asked in (plainly, causal, grouped):
        wanted = asked(*given)
        with applied(EVERY[name]) as seam:
            graph = torch.compile(asked, fullgraph=True, backend="aot_eager")
            for _ in range(3):
                torch.testing.assert_close(graph(*given), wanted)
            assert seam.paths == {step_aside.COMPILED: 1}, "counted when it is compiled: afterwards nothing of Hearth's runs"
            asked(*given)
            assert seam.calls == 2, "what is not compiled counts as ever"


@pytest.mark.slow
def test_a_compiled_graph_learns() -> None:
    given = [each.requires_grad_() for each in by_hand()]
    wanted = torch.autograd.grad(total(*given), given)
    with applied(plan(kernels=())) as seam:
        found = torch.autograd.grad(torch.compile(total, fullgraph=True, backend="aot_eager")(*given), given)
    torch.testing.assert_close(found, wanted)
    assert seam.paths == {step_aside.COMPILED: 1}


def test_fake_tensors_stay_fake_also_where_no_mode_watches() -> None:
    with FakeTensorMode():
        given = by_hand()
    for which, each in EVERY.items():
        with applied(each) as seam:
            with FakeTensorMode(allow_non_fake_inputs=True):
                inside = ask(*by_hand())
            outside = ask(*given)
        assert inside.shape == outside.shape == (2, 4, 5, 8) and type(inside) is type(outside) is type(given[0]), which
        assert set(seam.paths) <= {step_aside.TRACED, step_aside.WRAPPED} and seam.calls == 2


def test_a_mode_that_only_watches_sees_what_is_really_computed() -> None:
    """A pretended machine bites through such a mode."""
    with applied(plan(kernels=())) as seam, FlopCounterMode(display=False) as watch:
        ask(*by_hand())
    assert seam.paths == {"own arithmetic": 1} and watch.get_total_flops() > 0


@pytest.mark.parametrize("name", EVERY)
def test_forward_mode_is_right_or_refused_as_torch_refuses(name: str) -> None:
    given, slopes = by_hand(), by_hand()
    with sdpa_kernel(SDPBackend.MATH):
        wanted = torch.func.jvp(ask, given, slopes)[1]

    def forwards() -> Tensor:
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(ask(*map(forward_ad.make_dual, given, slopes))).tangent

    with applied(EVERY[name]):
        try:
            found = forwards()
        except NotImplementedError as error:
            assert "forward AD" in str(error)
        else:
            torch.testing.assert_close(found, wanted)
