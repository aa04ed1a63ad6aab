// What a reload, as by a switch of the language, does not take away: the tab in view, and what is in force for the next start.
(() => {
  const TAB = "hearth_tab", FORCE = "hearth_force", WINDOW = "hearth_window", ROOM = "hearth_room", DAY_MS = 86_400_000;
  const CALLS = { speak: "speak.kept", paint: "paint.kept" };
  const LATE = ["h-samples", "h-prompt", "paint-fit"];
  const AS_IT_IS = { __type__: "update" }, OPEN = { __type__: "update", open: true };
  const before = JSON.parse(sessionStorage.getItem(FORCE) ?? "{}"), tab = sessionStorage.getItem(TAB);
  const mine = sessionStorage.getItem(WINDOW) ?? String(Math.random());
  sessionStorage.setItem(WINDOW, mine);
  let picture = null, opened = !tab;

  addEventListener("pagehide", () => {
    sessionStorage.setItem(TAB, Hearth.tabInView() ?? "");
    const told = (tab) => Object.entries(Hearth.told[tab]).filter(([, value]) => !isEmpty(value));
    const now = Object.keys(CALLS).map((tab) => [tab, { ...before[tab], ...Object.fromEntries(told(tab)) }]); // a tab that was never opened told nothing
    sessionStorage.setItem(FORCE, JSON.stringify(Object.fromEntries(now)));
    sessionStorage.setItem(ROOM, JSON.stringify({ width: innerWidth, heights: LATE.map((id) => [id, document.getElementById(id)?.offsetHeight]) }));
  });

  // What is filled in late has the height that it had, until somebody touches the page: nothing below it jumps.
  const room = JSON.parse(sessionStorage.getItem(ROOM) ?? "{}"), style = document.createElement("style");
  if (room.width === innerWidth) style.textContent = room.heights.filter(([, high]) => high).map(([id, high]) => `#${id} { min-height: ${high}px; }`).join(" ");
  document.head.append(style);
  for (const touch of ["pointerdown", "keydown"]) document.addEventListener(touch, () => style.remove(), { once: true, capture: true });
  // A tab that somebody opens meanwhile stays.
  document.addEventListener("click", (event) => {
    if (event.target.closest?.('button[role="tab"]')) opened = true;
  }, true);
  Hearth.area("#h-rooms", () => {
    if (!opened && Hearth.tabInView()) Hearth.openTab(tab);
  });

  // The starting picture and its mask are too large for the session's storage.
  const store = new Promise((done, fail) => {
    const asked = indexedDB.open("hearth", 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore("pictures");
    asked.onsuccess = () => done(asked.result);
    asked.onerror = () => fail(asked.error);
  });
  async function inStore(mode, act) {
    const asked = act((await store).transaction("pictures", mode).objectStore("pictures"));
    return new Promise((done, fail) => {
      asked.onsuccess = () => done(asked.result);
      asked.onerror = () => fail(asked.error);
    });
  }
  // Those of windows that are long gone.
  store.then((opened) => {
    opened.transaction("pictures", "readwrite").objectStore("pictures").openCursor().onsuccess = ({ target: { result: each } }) => {
      if (!each) return;
      if (each.value.at_ms < Date.now() - DAY_MS) each.delete();
      each.continue();
    };
  }, () => {});

  // A browser that stores nothing, as in a private window, forgets it with the page.
  Hearth.keepPicture = (kept) => inStore("readwrite", (all) => (kept ? all.put({ ...kept, at_ms: Date.now() }, mine) : all.delete(mine))).catch(() => {});

  Hearth.giveStart = (given) => {
    picture = given;
    Hearth.call(CALLS.paint);
  };

  // Once the page has filled in its fields, give those of a tab what they held before.
  Hearth.stay = async (tab) => {
    if (tab === "paint") picture = (await inStore("readonly", (all) => all.get(mine)).catch(() => null)) ?? null;
    if (before[tab] || picture) Hearth.call(CALLS[tab]);
  };
  const isEmpty = (value) => value == null || value === "" || value.length === 0;
  Hearth.kept = (tab, names) => {
    const values = before[tab] ?? {};
    Object.assign(Hearth.told[tab], values); // another reload may come before the fields tell
    delete before[tab]; // once: later calls bring a picture alone
    return names.map((name) => (isEmpty(values[name]) ? AS_IT_IS : values[name]));
  };
  const hadClip = !isEmpty(before.speak?.clip);
  Hearth.keptClip = () => (hadClip ? OPEN : AS_IT_IS);
  Hearth.keptPicture = async () => {
    if (!picture) return [AS_IT_IS, AS_IT_IS];
    const blobs = [picture.background, ...picture.layers], form = new FormData();
    for (const [place, blob] of blobs.entries()) form.append("files", blob, place ? "mask.png" : "start.png");
    const answer = await fetch("gradio_api/upload", { method: "POST", body: form });
    if (!answer.ok) return [AS_IT_IS, AS_IT_IS];
    const address = location.href.replace(/[^/]*$/, "");
    const [background, ...layers] = (await answer.json()).map((path) => ({ path, url: `${address}gradio_api/file=${path}`, meta: { _type: "gradio.FileData" } }));
    Hearth.nameStart(picture.name);
    return [{ background, layers, composite: null }, OPEN];
  };
})();
