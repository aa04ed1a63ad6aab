"""Two checkouts of the page side by side: an update's work and way to the screen, goto to a click. Run: python tests/areas_compared.py BEFORE AFTER

The servers run without an engine and show a made-up job of twelve parts that goes on with every look; AFTER has the parts as a component."""

from __future__ import annotations

import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import psutil
from playwright.sync_api import Browser, sync_playwright

CHROMIUM, FLAGS = "/usr/bin/chromium", ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
PARTS, ROUNDS, ASKED = 12, 4, {"before": "hearth/live", "after": "run/predict"}
WATCH = """() => {
  [window.asked, window.took] = [[], []];
  const fetched = window.fetch;
  window.fetch = (...all) => { if (String(all[0]?.url ?? all[0]).includes(window.asked_for)) window.asked.push(performance.now()); return fetched(...all); };
  const look = () => {
    const now = document.querySelector("#h-parts .h-now")?.textContent;
    if (!now || now === window.last) return;
    window.last = now;
    if (window.asked.length) window.took.push(performance.now() - window.asked.at(-1));
  };
  const all = { subtree: true, childList: true, characterData: true };
  addEventListener("DOMContentLoaded", () => new MutationObserver(look).observe(document.documentElement, all));
}"""


def serve() -> None:
    """In the checkout of the current folder."""
    from app.compat.machine.hardware import Hardware
    from app.ui import launch, live_view, single_instance
    from app.ui.launch import LaunchOptions
    from app.ui.state.jobs_desk import JobsDesk
    from tests.support.guests import desk_at

    looks, peaks = itertools.count(1), [round(place * 37 % 96 / 96, 3) for place in range(96)]

    def job_view(*_: Any) -> dict[str, Any]:
        now = next(looks)
        done = {"state": "done", "seconds": 3.2, "url": "hearth/made/x/part.wav", "peaks": peaks}
        parts = [{**done, "index": place, "text": f"[S1] Sentence number {place}. [S2] And its answer."} for place in range(PARTS - 2)]
        parts.append({"index": PARTS - 2, "text": "[S1] Now.", "state": "now", "pieces": ["hearth/made/x/sound.wav"], "seconds": now / 10})
        parts.append({"index": PARTS - 1, "text": "[S1] Later.", "state": "waits"})
        return {
            "job": "x",
            "parts": parts,
            "share": now % 1000 / 1000,
            "said": [],
            "end": None,
            "doing": f"step {now}",
            "place": 0,
            "results": [],
        }

    live_view.JOB_VIEWS["speech"] = job_view
    shown = mock.patch.object(JobsDesk, "find_current", lambda _self, kind, _person: "x" if kind == "speech" else "")
    with desk_at(Path(tempfile.mkdtemp())) as desk, shown:
        place = desk.keeper.home
        desk.settings.put({"greeted": True})
        desk.keeper._loop._set(hardware=Hardware(kind="cpu", name="light"))
        launch.prepare_environment(place)
        routes = [single_instance.ping_route("x")]
        print(launch.start_server(LaunchOptions(place), desk, None, routes, launch.build_guards(place)[0]), flush=True)
        time.sleep(3600)


def worked_ms(process: subprocess.Popen[str]) -> float:
    times = psutil.Process(process.pid).cpu_times()
    return (times.user + times.system) * 1000


def update(which: str, address: str, client: httpx.Client, tick: dict[str, int]) -> httpx.Response:
    if which == "before":
        return client.get(f"{address}hearth/live")
    asked = {"data": [], "fn_index": tick["id"], "trigger_id": tick["timer"], "session_hash": "bench", "event_data": None}
    return client.post(f"{address}gradio_api/run/predict", json=asked)


def visit(browser: Browser, which: str, address: str) -> dict[str, Any]:
    """One page that nobody has seen: seconds to a click and to the parts, milliseconds of updates, the browser's work for one."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.add_init_script(f"window.asked_for = {json.dumps(ASKED[which])}; ({WATCH})();")
    began = time.monotonic()
    page.goto(address)
    page.click('button[role="tab"][data-tab-id="paint"]')
    click_s = time.monotonic() - began
    page.evaluate("""document.querySelector('button[role="tab"][data-tab-id="speak"]').click()""")
    page.wait_for_selector("#h-parts .h-part")
    parts_s = time.monotonic() - began
    page.wait_for_timeout(1500)
    session = context.new_cdp_session(page)
    session.send("Performance.enable")

    def tasks_ms() -> float:
        return 1000 * next(each["value"] for each in session.send("Performance.getMetrics")["metrics"] if each["name"] == "TaskDuration")

    page.evaluate("window.took = []")
    before_ms = tasks_ms()
    page.wait_for_timeout(6000)
    after_ms, took_ms = tasks_ms(), page.evaluate("window.took")
    context.close()
    return {"click_s": [click_s], "parts_s": [parts_s], "screen_ms": took_ms, "browser_ms": [(after_ms - before_ms) / max(1, len(took_ms))]}


def main(trees: dict[str, str]) -> None:
    processes: dict[str, subprocess.Popen[str]] = {}
    seen: dict[str, dict[str, list[float]]] = {which: {} for which in trees}

    def note(which: str, found: dict[str, Any]) -> None:
        for name, values in found.items():
            seen[which].setdefault(name, []).extend(values)

    try:
        addresses = {}
        for which, tree in trees.items():
            command = [sys.executable, __file__, "serve"]
            processes[which] = subprocess.Popen(
                command, cwd=tree, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": tree}
            )
            lines = processes[which].stdout or []
            addresses[which] = next(found[0] for line in lines if (found := re.search(r"http://127\.0\.0\.1:\d+/?", line)))
        config = httpx.get(f"{addresses['after']}config").json()
        timer = next(each["id"] for each in config["components"] if each["type"] == "timer")
        tick = {"id": next(each["id"] for each in config["dependencies"] if [timer, "tick"] in each["targets"]), "timer": timer}
        with httpx.Client(timeout=60) as client:
            for which, address in list(addresses.items()) * (ROUNDS + 1):
                before_ms = worked_ms(processes[which])
                for _ in range(40):
                    update(which, address, client, tick)
                note(which, {"server_ms": [(worked_ms(processes[which]) - before_ms) / 40]})
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            for turn in range(ROUNDS + 1):
                for which in sorted(trees, reverse=bool(turn % 2)):
                    found = visit(browser, which, addresses[which])
                    if turn:  # the first one warms the servers
                        note(which, found)
            browser.close()
    finally:
        for process in processes.values():
            process.kill()
    for name in seen["before"]:
        before, after = (statistics.median(seen[which][name]) for which in ("before", "after"))
        print(f"{name}: {before:.2f} before, {after:.2f} after, {after / before:.2f}x")


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        sys.path.insert(0, str(Path.cwd()))
        serve()
    else:
        main(dict(zip(("before", "after"), sys.argv[1:], strict=True)))
