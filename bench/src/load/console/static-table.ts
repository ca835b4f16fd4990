import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { benchNodeId } from "../../seeds/bench-nodes.ts";

/** A page with a table, served by a separate server. */
export interface StaticTable {
  readonly origin: string;
  close(): Promise<void>;
}

/**
 * Serve the smallest possible page with a table of this many nodes. Its rows are text that never changes, it uses no
 * library, and its document contains only the visible rows. The time and memory that a browser needs for this page are
 * the lower bound for the console.
 */
export async function serveStaticTable(nodes: number): Promise<StaticTable> {
  const body = pageOf(nodes);
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(body);
  });
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function pageOf(nodes: number): string {
  const first = benchNodeId(0).replace(/\d+$/, "");
  return `<!doctype html><meta charset="utf-8"><title>bound</title>
<style>body{margin:0;font:13px sans-serif}#scroll{height:90vh;overflow:auto}.row{position:absolute;height:36px}
.row span{display:inline-block;width:110px}</style>
<h1 id="name" hidden></h1>
<div id="list"><input id="node-search"><div role="columnheader"><button>Health</button></div>
<div id="scroll" data-testid="nodes-scroll" tabindex="0"><div id="space" style="position:relative"></div></div>
<span data-testid="node-count"></span></div>
<script>
const all = Array.from({ length: ${nodes} }, (_, n) => {
  const id = ${JSON.stringify(first)} + String(n).padStart(6, "0");
  const health = n % 3 ? "HEALTHY" : "UNKNOWN";
  return { id, words: ["APPROVED", health, "CONNECTED", "ELIGIBLE", "64", "zone=zone-" + n % 10] };
});
let rows = all, down = false;
const [scroll, space, search, list, name] = ["scroll", "space", "node-search", "list", "name"].map((id) =>
  document.getElementById(id));
const draw = () => {
  space.style.height = rows.length * 36 + "px";
  const from = Math.max(0, Math.floor(scroll.scrollTop / 36) - 12);
  space.innerHTML = rows.slice(from, from + 45).map(({ id, words }, at) =>
    '<div class="row" role="row" style="transform:translateY(' + (from + at) * 36 + 'px)">' +
    '<a href="/nodes/' + id + '">' + id + "</a>" +
    words.map((word) => "<span>" + word + "</span>").join("") + "</div>").join("");
  document.querySelector("[data-testid=node-count]").textContent =
    rows.length.toLocaleString("en-US") + " of " + all.length.toLocaleString("en-US") + " nodes";
};
const choose = () => {
  rows = all.filter(({ id }) => id.includes(search.value));
  if (down) rows.reverse();
  draw();
};
scroll.onscroll = draw;
search.oninput = choose;
document.querySelector("button").onclick = () => { down = !down; choose(); };
space.onclick = (event) => {
  const link = event.target.closest("a");
  if (!link) return;
  event.preventDefault();
  name.textContent = link.textContent;
  history.pushState(null, "", link.href);
  show();
};
const show = () => {
  const isNode = location.pathname.startsWith("/nodes/");
  name.hidden = !isNode;
  list.hidden = isNode;
};
onpopstate = show;
draw();
</script>`;
}
