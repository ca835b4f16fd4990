// Writes docs/events.md from the catalogue in libs/domain, which has to be built. With --check it only compares.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { EVENT_CATALOGUE, EVENT_TYPES } from "../libs/domain/dist/index.js";

const PREFACE = `# Events

Generated from \`libs/domain/src/events/event-catalogue.ts\` by \`make gen\`; do not edit.

Each change is one event, written in the transaction that makes the change. Read them with \`rollcall events\`, with
\`rollcall.events.v1.EventService\` (ListEvents, WatchEvents), or from NATS. Types and reasons are stable names.
\`before\` and \`after\` are small objects that name what changed, and are absent where there was nothing, or nothing is
left. A field that a newer release adds may be ignored.
`;

const page = fileURLToPath(new URL("../docs/events.md", import.meta.url));
const wanted = formatEventCatalogue();
const isCheck = process.argv.includes("--check");
if (read() !== wanted) {
  writeFileSync(page, wanted);
  if (isCheck) {
    process.stderr.write("docs/events.md was not that of the catalogue. It is now: commit it.\n");
    process.exitCode = 1;
  }
}

function read() {
  try {
    return readFileSync(page, "utf8");
  } catch {
    return "";
  }
}

/** The catalogue as a page in Markdown. */
function formatEventCatalogue() {
  const sections = EVENT_TYPES.map((type) => {
    const row = EVENT_CATALOGUE[type];
    return [
      `## ${type}`,
      "",
      wrap(row.when),
      "",
      "| | |",
      "|---|---|",
      `| subject | ${row.subject} |`,
      `| actor | ${codes(row.actors)} |`,
      `| before | ${codes(row.before)} |`,
      `| after | ${codes(row.after)} |`,
      `| reason | ${codes(row.reasons)} |`,
      "",
    ].join("\n");
  });
  return `${PREFACE}\n${sections.join("\n")}`;
}

/** A paragraph in lines of at most 120 columns. */
function wrap(text) {
  return text.replace(/(.{1,120})(?: |$)/g, "$1\n").trimEnd();
}

function codes(words) {
  return words === null ? "absent" : words.map((word) => `\`${word}\``).join(", ");
}
