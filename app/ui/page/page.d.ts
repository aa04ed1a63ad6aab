// What the page's scripts find and get: types for `tsc`, which the browser never sees.

/** JSON of the server, as the views in app/ui make it. */
type View = any;

/** What hearth/live answers: `Live` in app/ui/page/protocol.py. */
type Live = Record<
  "strip" | "queue" | "speech" | "picture" | "grid" | "standing" | "charts" | "chunk" | "checked" | "notices" | "interrupted" | "measuring" | "machines" | "pause" | "making" | "enlarging",
  View
>;

/** A selector says which kind of element it finds. */
interface ParentNode {
  querySelector(selectors: string): any;
  querySelectorAll(selectors: string): NodeListOf<any>;
}

interface Window {
  Hearth: object;
}

/** A kind of jobs, and where each stands in the state. */
type Kind = "speech" | "picture";

/** A tab that starts something. */
type StartTab = "speak" | "paint";
