// What a script and a picture in the making have alike: how far it is, what was said on the way, and what went wrong.
(() => {
  const { t, text, el, list, ask } = Hearth;
  const notes = new Map();

  Hearth.jobFrame = `<p class="h-soft h-now" role="status"></p><div class="h-share" hidden><i></i></div>`;
  Hearth.jobSaid = `<ul class="h-said"></ul><p class="h-soft h-lately" role="status" hidden></p><p class="h-trouble" role="alert" hidden></p>`;

  // `doing`: in words, where the job itself has nothing to say.
  Hearth.drawJob = (element, view, doing) => {
    const { end } = view;
    text(element.querySelector(".h-now"), view.place ? t("parts.waits", "number {n} in the queue", { n: view.place }) : view.doing || doing);
    const share = element.querySelector(".h-share");
    share.hidden = Boolean(end);
    share.firstElementChild.style.width = `${view.share * 100}%`;
    list(element.querySelector(".h-said"), view.said, (each) => each.text, (each) => {
      const line = el(`<li class="h-soft ${each.kind}"></li>`);
      line.textContent = each.text;
      return line;
    });
    const lately = element.querySelector(".h-lately");
    lately.hidden = !notes.has(view.job);
    text(lately, notes.get(view.job) ?? "");
    const trouble = element.querySelector(".h-trouble");
    trouble.hidden = end?.kind !== "failed";
    if (end?.kind === "failed") {
      trouble.dataset.cure = end.cure;
      text(trouble, end.text);
    }
  };

  // Asked for again with less; the fields show what it is now.
  Hearth.smaller = async (kind) => {
    const before = Hearth.state[kind]?.job;
    const answer = await fetch(`hearth/smaller/${kind}`, { method: "POST", credentials: "same-origin" });
    const { trouble, text: words, request } = await answer.json();
    if (kind === "speech" && request) Hearth.put("speak-text", request.text);
    if (kind === "picture" && request) for (const side of ["width", "height"]) Hearth.put(`paint-${side}`, request[side]);
    for (let tries = 0; !trouble && Hearth.state[kind]?.job === before && tries < 50; tries++) await new Promise((go) => setTimeout(go, 100));
    notes.set(Hearth.state[kind]?.job, trouble ?? words);
  };
})();
