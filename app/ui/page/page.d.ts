// What the page's scripts find and get, beside the server's views: types for `tsc`, which the browser never sees.

/** A route's answer, by its address: without the query, and with the blanks of its path. */
type AnswerAt<Path extends string> = Path extends keyof Answers
  ? Answers[Path]
  : Path extends `${infer Route}?${string}`
    ? AnswerAt<Route>
    : Path extends `hearth/along/${string}`
      ? AlongView
      : any;

/** A refusal, or what a press has brought. */
interface Told {
  trouble?: string;
  cure?: string;
  text?: string;
}

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
