import { createHash } from "node:crypto";
import type { JsonSchema } from "./field-rules.ts";
import type { OpenApiDocument, Operation } from "./openapi-document.ts";

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 13px/1.5 ui-monospace, monospace; }
pre { padding: .75rem; border: 1px solid #8884; border-radius: 6px; overflow-x: auto; }
nav { columns: 16rem; }
details { border-top: 1px solid #8884; padding: .4rem 0; }
summary { cursor: pointer; font-weight: 600; }
table { border-collapse: collapse; width: 100%; }
td { border-top: 1px solid #8883; padding: .25rem .75rem .25rem 0; vertical-align: top; }
td:first-child, td:nth-child(2) { white-space: nowrap; }
`;

/** The content security policy of the page. It allows the page only to display itself. */
export const PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Render the API description as a single page for people. It has no script and loads nothing. */
export function openApiPage({ info, tags, paths, components }: OpenApiDocument): string {
  const operations = Object.entries(paths);
  const sections = tags.map(({ name, description }) => {
    const methods = operations.filter(([, { post }]) => post.tags.includes(name));
    return `<h2 id="${name}">${name}</h2>${paragraphs(description)}${methods.map(methodOf).join("")}`;
  });
  const schemas = Object.entries(components.schemas).map(([name, schema]) => schemaOf(name, schema));
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Rollcall API</title>',
    `<meta name="viewport" content="width=device-width"><style>${STYLE}</style></head><body>`,
    `<h1>${escaped(info.title)} API, ${escaped(info.version)}</h1>${paragraphs(info.description)}`,
    '<p>For programs: <a href="/openapi.json">openapi.json</a>.</p><nav>',
    ...tags.map(({ name }) => `<a href="#${name}">${name}</a><br>`),
    '<a href="#messages">Messages</a></nav>',
    ...sections,
    '<h2 id="messages">Messages</h2>',
    ...schemas,
    "</body></html>\n",
  ].join("");
}

function methodOf([path, { post }]: readonly [string, { readonly post: Operation }]): string {
  const [request] = Object.values(post.requestBody.content);
  const [answer] = Object.values(post.responses["200"]?.content ?? {});
  return [
    `<details id="${post.operationId}"><summary>${post.summary}</summary>`,
    `<pre>POST ${path}</pre>${paragraphs(post.description)}<table>`,
    `<tr><td>Request</td><td>${typeOf(request?.schema ?? {})}</td></tr>`,
    `<tr><td>Answer</td><td>${typeOf(answer?.schema ?? {})}</td></tr></table></details>`,
  ].join("");
}

function schemaOf(name: string, { description = "", properties = {}, enum: values = [] }: JsonSchema): string {
  const rows = Object.entries(properties).map(
    ([field, schema]) =>
      `<tr><td><code>${escaped(field)}</code></td><td>${typeOf(schema)}</td>` +
      `<td>${escaped(schema.description ?? "")}</td></tr>`,
  );
  const words = values
    .filter((value) => !description.includes(value))
    .map(escaped)
    .join(", ");
  const table = rows.length === 0 ? "" : `<table>${rows.join("")}</table>`;
  return `<details id="${name}"><summary>${name}</summary>${paragraphs(description)}${words}${table}</details>`;
}

/** Render the type of a value, as a link if the type has its own description. */
function typeOf({ $ref, type, format, items, additionalProperties, anyOf }: JsonSchema): string {
  if ($ref !== undefined) {
    const name = $ref.slice($ref.lastIndexOf("/") + 1);
    return `<a href="#${name}">${name.slice(name.lastIndexOf(".") + 1)}</a>`;
  }
  if (items !== undefined) return `list of ${typeOf(items)}`;
  if (typeof additionalProperties === "object") return `map to ${typeOf(additionalProperties)}`;
  if (anyOf !== undefined && type === undefined) return "number";
  return escaped(format ?? (typeof type === "string" ? type : (type?.[0] ?? "")));
}

function paragraphs(text: string): string {
  return text
    .split("\n\n")
    .filter((paragraph) => paragraph !== "")
    .map((paragraph) => `<p>${escaped(paragraph).replaceAll("\n", "<br>")}</p>`)
    .join("");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
