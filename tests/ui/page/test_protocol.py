"""What scripts, styles and the server call each other by is what app/ui/page/protocol.py lists: neither side names more, and nothing is left over."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from typing import Any, get_args
from unittest.mock import Mock

import pytest
from starlette.routing import Route

from app.ui import own_window, routes, share
from app.ui.page import protocol
from app.ui.page.protocol import CARRIED, CURES, DEEDS, MEASURED, ROUTES, SWITCHES, Address
from app.ui.page.view_types.live import Live
from app.ui.state import listening, presets
from app.ui.state.jobs_desk import JobsDesk
from app.ui.state.person import OWNER
from app.ui.tabs import (
    albums,
    disk,
    edit_parts,
    enlarge,
    loras,
    models,
    notify,
    other_machines,
    pause,
    shelf,
    styles,
    upkeep,
    voice_shelf,
    welcome,
)
from tests.support.places import TOP
from tests.support.source_trees import tree_of, walk

UI = TOP / "app" / "ui"
STATIC = UI / "page" / "static"
SCRIPTS = {path.name: path.read_text("utf-8") for path in sorted(STATIC.rglob("*.js"))}
STYLES = {path.name: path.read_text("utf-8") for path in sorted(STATIC.rglob("*.css"))}
PYTHON = {path.relative_to(TOP).as_posix(): path.read_text("utf-8") for path in sorted(UI.rglob("*.py")) if path.name != "protocol.py"}

TABS, PLACES, MADE, FIELDS, PRESSES, CALLS = (
    set(get_args(each)) for each in (protocol.Tab, protocol.ElementId, protocol.Made, protocol.Field, protocol.Press, protocol.Call)
)
IDS = PLACES | MADE | FIELDS | PRESSES
LIVE = set(Live.__annotations__)

ID = rf"(?:h|{'|'.join(sorted(TABS))})-[a-z-]+"


def trees() -> list[ast.Module]:
    return [tree_of(TOP / name) for name in PYTHON]


def ids_in_script(source: str) -> set[str]:
    """Ids in selectors, in HTML, and as texts of their own, as press() gets them."""
    made = re.findall(rf'\b(?:id|labelledby)="({ID})"', source)
    return {*re.findall(rf"#({ID})", source), *made, *re.findall(rf'"((?!h-){ID})"', source)}


def ids_in_style(source: str) -> set[str]:
    return set(re.findall(rf"#({ID})", source))


def calls_in_script(source: str) -> set[str]:
    """Texts that look like a call; keys of sentences, which look alike, stand in t()."""
    return set(re.findall(rf'(?<!\bt\()"((?:{"|".join(sorted(TABS))})\.[a-z]+)"', source))


def carried_in_script(source: str) -> set[tuple[str, str]]:
    """Calls with what they carry."""
    return set(re.findall(r'\bcall\("([\w.]+)", \{ (\w+):', source))


def routes_in_script(source: str) -> set[tuple[str, str]]:
    """Path and method: what posts or says so, posts; everything else gets. Values in a path are blanks."""
    found = set()
    for line in source.splitlines():
        for each in re.finditer(r'["`](hearth/[^"`?]*)', line):
            before, after = line[: each.start()], line[each.end() :]
            posts = before.endswith("post(") or re.match(r'[^)]*method: "POST"', after)
            found.add((re.sub(r"\$\{[^}]*\}", "{}", each[1]), "POST" if posts else "GET"))
    return found


def leads_to(path: str, method: str, route: Address) -> bool:
    """A blank of the route takes a blank or one word of the script's path."""
    return method == route.method and re.fullmatch(re.sub(r"\{\w+\}", r"(\\{\\}|[\\w.-]+)", route.path), path) is not None


def fields_in_script(source: str) -> set[tuple[str, str]]:
    """A path, and what is sent with it: in its query, or beside it as an object."""
    found = set()
    for path, query, sent in re.findall(r'["`](hearth/[^"`?]*)(\?[^"`]*)?["`](?:, \{ ([\w:,. ]+) \})?', source):
        names = re.findall(r"[?&](\w+)", query) + re.findall(r"(?:^|, )(\w+)", sent)
        found |= {(re.sub(r"\$\{[^}]*\}", "{}", path), name) for name in names}
    return found


def tabs_in_script(source: str) -> set[str]:
    return set(re.findall(r'\b(?:openTab|tab|go)\("(\w+)"\)', source)) | set(re.findall(r'data-tab-id="(\w+)"', source))


def deeds_in_script(source: str) -> set[str]:
    """What a script's act() or the like asks a route to do, or one that stands in the path."""
    found = re.findall(r'\b(?:act|post|engine|deed)\((?:[^()"]*[,?] )?"([a-z-]+)"(?: : "([a-z-]+)")?', source)
    return {deed for pair in found for deed in pair if deed} | set(re.findall(r"hearth/queue/\$\{[^}]*\}/([a-z-]+)", source))


def state_in_script(source: str) -> set[str]:
    """Fields of the state: taken from it by name, or by an area that is drawn with it."""
    taken = re.findall(r"\bstate\??\.(\w+)", source)
    drawn = [
        name
        for listed in re.findall(r"\barea\([^\n]*?\{ ([\w:, ]+) \}\) =>", source)
        for name in re.findall(r"(\w+)(?:: \w+)?(?:,|$)", listed)
    ]
    return {*taken, *drawn}


def text_of(node: ast.AST) -> Iterator[str]:
    """Every text in a tree; blanks of an f-string are two braces."""
    for each in walk(node):
        if isinstance(each, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in each.values)  # type: ignore[misc]
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def ids_in_python(tree: ast.AST) -> set[str]:
    """What the window gives as elem_id or in HTML. An id made of a tab's name stands for one of each tab that can start something."""
    given = [text for node in walk(tree) if isinstance(node, ast.keyword) and node.arg == "elem_id" for text in text_of(node.value) if text]
    given += [found for text in text_of(tree) for found in re.findall(rf'\bid="({ID})"', text)]
    return {
        name for each in given for name in (each.replace("{}", tab) for tab in (("speak", "paint") if each.startswith("{}-") else ("",)))
    }


def schema_of(route: Route) -> Any:
    return inspect.getclosurevars(route.endpoint).nonlocals.get("schema")


NOBODY: Any = None
"""No route is asked here, so none needs what it answers from."""
SERVED: list[Route] = [
    *routes.routes(NOBODY), *shelf.routes(NOBODY), *loras.routes(NOBODY), *styles.routes(NOBODY),
    *models.routes(NOBODY), *welcome.routes(NOBODY), *other_machines.routes(NOBODY),
    *share.routes(NOBODY), *own_window.routes(NOBODY), *pause.routes(NOBODY), *notify.routes(NOBODY), *upkeep.routes(NOBODY), *disk.routes(NOBODY),
]  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_names_only_what_is_listed(name: str) -> None:
    source = SCRIPTS[name]
    assert ids_in_script(source) <= IDS
    assert calls_in_script(source) <= CALLS
    assert all(any(leads_to(*asked, each) for each in ROUTES) for asked in routes_in_script(source)), routes_in_script(source)
    assert state_in_script(source) <= LIVE
    for path, field in fields_in_script(source):
        assert any(leads_to(path, method, each) and field in each.fields for each in ROUTES for method in ("GET", "POST")), (path, field)
    assert tabs_in_script(source) <= TABS
    assert set(re.findall(r'data-h-act="(\w+)"|\bact === "(\w+)"', source)) <= {
        pair for each in SWITCHES for pair in ((each, ""), ("", each))
    }


@pytest.mark.parametrize("name", STYLES)
def test_a_style_names_only_what_is_listed(name: str) -> None:
    assert ids_in_style(STYLES[name]) <= IDS


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_puts_an_id_or_a_call_together(name: str) -> None:
    """Whoever searches for one finds it."""
    ends = {each.removeprefix(f"{tab}{mark}") for each in IDS | CALLS for tab in TABS for mark in "-." if each.startswith(f"{tab}{mark}")}
    assert not set(re.findall(r"\$\{[^}]*\}[-.]([a-z-]+)", SCRIPTS[name])) & ends


def called(name: str) -> Iterator[ast.Call]:
    """Calls of a function of app/ui/tabs/script_calls.py."""
    return (node for tree in trees() for node in walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name)


def named(name: str, place: int) -> list[str]:
    return [node.args[place].value for node in called(name) if isinstance(node.args[place], ast.Constant)]  # type: ignore[attr-defined]


def test_what_a_call_carries_is_what_its_handler_reads() -> None:
    assert {pair for source in SCRIPTS.values() for pair in carried_in_script(source)} == set(CARRIED.items())
    assert sorted([*named("read_number", 1), *named("read_id", 1)]) == sorted(CARRIED)


def test_all_that_is_listed_is_there_on_both_sides() -> None:
    ids = {each for source in SCRIPTS.values() for each in ids_in_script(source)}
    ids |= {each for source in STYLES.values() for each in ids_in_style(source)}
    placed = {each for tree in trees() for each in ids_in_python(tree)}
    placed |= {f"{tab}-{name}" for tab, rows in presets.TABLES.items() for name, each in rows.items() if each.label}
    assert ids == IDS
    assert IDS & placed == IDS - MADE
    assert {each for each in placed if each.startswith("h-")} == PLACES
    hidden = [name for name, source in PYTHON.items() for _ in re.findall('elem_classes="h-hidden"', source)]
    fields = "app/ui/tabs/paint_fields.py"
    assert hidden == [
        *["app/ui/tabs/beside_prompt.py"] * 2,
        "app/ui/tabs/loras.py",
        *[fields] * 3,
        "app/ui/tabs/script_calls.py",
        *["app/ui/tabs/speak_fields.py"] * 2,
    ], (
        "pictures that guide or are to be like, their names, LoRAs, the one to start from, what is told of it, a dropped one, calls, the cast, other words"
    )
    scripts, window = "\n".join(SCRIPTS.values()), "\n".join(PYTHON.values())
    assert {each for source in SCRIPTS.values() for each in state_in_script(source)} == LIVE
    assert set(re.findall(r'data-h-act="(\w+)"', window)) == set(SWITCHES) and all(f'"{each}"' in scripts for each in SWITCHES)
    assert set(re.findall(r'data-kind="(\w+)"', window)) == set(MEASURED) and all(f'"{each}"' in scripts for each in MEASURED)


def test_every_call_is_made_and_heard_once() -> None:
    assert {each for source in SCRIPTS.values() for each in calls_in_script(source)} == CALLS
    assert sorted(named("hear", 1) + named("join_event", 1)) == sorted(CALLS)
    let_through = {text for name, tree in zip(PYTHON, trees(), strict=True) if name.endswith("_fields.py") for text in text_of(tree)}
    assert let_through >= CALLS


def test_routes_are_the_servers_with_their_fields() -> None:
    served = {(each.path.removeprefix("/"), method) for each in SERVED for method in (each.methods or set()) - {"HEAD"}}
    assert served == {(each.path, each.method) for each in ROUTES}
    asked: dict[tuple[str, str], set[str]] = {(each.path, each.method): set(each.fields) for each in ROUTES}
    for route in SERVED:
        schema, blanks = schema_of(route), set(re.findall(r"\{(\w+)\}", route.path))
        fields = {field.alias or name for name, field in schema.model_fields.items()} if schema is not None else set()
        for method in (route.methods or set()) - {"HEAD"}:
            mine = asked[route.path.removeprefix("/"), method]
            assert mine == fields - blanks or (method == "GET" and not mine and "POST" in (route.methods or set())), route.path


def test_deeds_are_the_servers_and_the_scripts() -> None:
    (
        queue,
        pauses,
        notifies,
        listens,
        edits,
        engine,
        says,
        book,
        kept,
        leaving,
        shelved,
        enlarged,
        marked,
        models_,
        library,
        styled,
        machines,
        upkept,
        disked,
        shared,
    ) = (set(each) for each in DEEDS.values())
    assert enlarged == set(enlarge.ACTIONS)
    assert queue == set(JobsDesk.queue_actions(Mock(), OWNER))
    assert (pauses, notifies) == (set(pause.ACTIONS), set(notify.ACTIONS))
    assert (listens, leaving, shelved, models_, library, machines, upkept) == (
        set(listening.ACTIONS),
        set(own_window.ACTS),
        set(shelf.ACTIONS),
        set(models.ACTIONS),
        set(loras.ACTIONS),
        set(other_machines.ACTIONS),
        set(upkeep.ACTIONS),
    )
    assert all(f'asked.act == "{each}"' in PYTHON["app/ui/share.py"] for each in shared)
    assert disked == set(disk.ACTIONS)
    assert styled == set(styles.ACTIONS)
    assert marked == {*albums.ACTIONS, *albums.MOVES, "keep", "open", "back", "left"}
    assert kept == set(voice_shelf.ACTIONS)
    assert edits == {*edit_parts.DEEDS, "line"}
    assert all(f'asked.act == "{each}"' in PYTHON["app/ui/tabs/pronunciation_list.py"] for each in says)
    assert all(f'"{each}"' in PYTHON["app/ui/tabs/book.py"] for each in book - {"tick"}), "else it ticks"
    assert 'asked.act == "again"' in PYTHON["app/ui/routes.py"], "else it repairs"
    for names, deeds in {
        ("cures.js", "found.js", "models.js"): models_ | {"go-on"}, ("queue.js",): queue | engine,
        ("paint.js",): {"go-on"}, ("shelf.js",): shelved, ("share.js",): shared, ("voices.js",): kept,
        ("machines.js",): machines, ("leave.js",): leaving, ("listen.js",): listens, ("edit.js",): edits, ("book.js",): book,
        ("loras.js",): library, ("albums.js",): marked - {*albums.MOVES}, ("says.js",): says, ("prompts.js",): styled, ("pause.js",): pauses,
        ("notify.js",): notifies, ("disk.js",): disked, ("upkeep.js",): upkept,
    }.items():  # fmt: skip
        assert set().union(*(deeds_in_script(SCRIPTS[name]) for name in names)) == deeds
    used = {name for name, source in SCRIPTS.items() if deeds_in_script(source)}
    assert used == {
        "albums.js",
        "book.js",
        "cures.js",
        "disk.js",
        "edit.js",
        "found.js",
        "leave.js",
        "listen.js",
        "loras.js",
        "machines.js",
        "models.js",
        "notify.js",
        "paint.js",
        "pause.js",
        "prompts.js",
        "queue.js",
        "says.js",
        "shelf.js",
        "share.js",
        "upkeep.js",
        "voices.js",
    }


def test_routes_are_asked_for_by_scripts_or_in_what_the_server_sends() -> None:
    asked = {each for source in SCRIPTS.values() for each in routes_in_script(source)}
    sent = {found for tree in trees() for text in text_of(tree) for found in re.findall(r"(?<![/\w])hearth/[\w{}/.-]+", text)}
    left = [each for each in ROUTES if not any(leads_to(*one, each) for one in {*asked, *((path, "GET") for path in sent)})]
    assert not left


def test_every_cure_has_its_button_and_every_button_its_cure() -> None:
    given = {
        text.partition(":")[0]
        for tree in map(tree_of, sorted((TOP / "app").rglob("*.py")))
        for node in walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "cure"
        for text in text_of(node.value)
        if text
    }
    table = SCRIPTS["cures.js"].partition("const CURES = {")[2].partition("};")[0]
    buttons = {quoted or plain for quoted, plain in re.findall(r'^  (?:"([\w.:-]+)"|(\w+))(?=[:,(])', table, re.MULTILINE)}
    assert given <= set(CURES), given - set(CURES)
    assert {each.partition(":")[0] for each in buttons} <= set(CURES)
    assert set(CURES) - {each.partition(":")[0] for each in buttons} == {"get", "token"}, "got by name, and pasted on the Models tab"
    assert 'startsWith("get:")' in SCRIPTS["cures.js"] and 'cure === "token"' in SCRIPTS["models.js"]


@pytest.mark.parametrize(
    ("reader", "source", "found"),
    [
        (ids_in_script, 'press("paint-goo");', {"paint-goo"}),
        (ids_in_script, 'document.querySelector("#h-parst .h-list")', {"h-parst"}),
        (ids_in_script, 'el(`<dialog aria-labelledby="h-que">`)', {"h-que"}),
        (ids_in_script, 'row.querySelector(".h-part button"); el(`<p class="h-chips">`)', set()),
        (calls_in_script, 'call("speak.reod", { part: 1 })', {"speak.reod"}),
        (carried_in_script, 'call("speak.redo", { index: 1 })', {("speak.redo", "index")}),
        (routes_in_script, "post(`hearth/queu/${job}/${act}`)", {("hearth/queu/{}/{}", "POST")}),
        (routes_in_script, 'ask("hearth/greeting", { method: "POST" })', {("hearth/greeting", "POST")}),
        (routes_in_script, 'ask("hearth/greeting").then(draw)', {("hearth/greeting", "GET")}),
        (routes_in_script, "ask(`hearth/machine?model=${model}`)", {("hearth/machine", "GET")}),
        (fields_in_script, 'post("hearth/check", { kind, txt: text })', {("hearth/check", "kind"), ("hearth/check", "txt")}),
        (fields_in_script, "ask(`hearth/machine?modl=${model}&as=${as}`)", {("hearth/machine", "modl"), ("hearth/machine", "as")}),
        (tabs_in_script, 'openTab("modells")', {"modells"}),
        (deeds_in_script, 'act(each.id, card.binned ? "plane" : "favourite"); post(job.id, "upp")', {"plane", "favourite", "upp"}),
        (state_in_script, 'area("#h-strip", (element, { strip, quue }) => {', {"strip", "quue"}),
        (state_in_script, 'area("#h-words", (element, { strip, checked: now }) => {', {"strip", "checked"}),
        (state_in_script, "live.state?.picure?.job", {"picure"}),
    ],
)  # fmt: skip
def test_a_name_that_is_misspelt_is_seen(reader: Any, source: str, found: set[Any]) -> None:
    assert reader(source) == found
