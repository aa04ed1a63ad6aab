// A refusal is an answer with a sentence; the browser would write its status to the console as a fault of the page. So the server sends
// the status in a header, and the page's scripts and Gradio's get it back from here.
const send = window.fetch;
window.fetch = async (asked, options) => {
  const request = new Request(asked, options);
  if (new URL(request.url).origin !== location.origin) return send(request);
  request.headers.set("X-Hearth-Page", "1");
  const answer = await send(request);
  const status = Number(answer.headers.get("X-Hearth-Refused"));
  return status ? new Response(answer.body, { status, headers: answer.headers }) : answer;
};
