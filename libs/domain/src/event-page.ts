import { EVENT_CATALOGUE, EVENT_TYPES } from "./event-catalogue.ts";

/** The catalogue as a page in Markdown. */
export function formatEventCatalogue(): string {
  const sections = EVENT_TYPES.map((type) => {
    const row = EVENT_CATALOGUE[type];
    return [
      `## ${type}`,
      "",
      row.when,
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

const PREFACE = `# Events

Generated from \`libs/domain/src/event-catalogue.ts\` by \`make gen\`; do not edit.

Each change is one event, written in the transaction that makes the change. Read them with \`rollcall events\`, with
\`rollcall.events.v1.EventService\` (ListEvents, WatchEvents), or from NATS. Types and reasons are stable names. \`before\` and \`after\` are
small objects that name what changed, and are absent where there was nothing, or nothing is left. A field that a newer release adds may be ignored.
`;

function codes(words: readonly string[] | null): string {
  return words === null ? "absent" : words.map((word) => `\`${word}\``).join(", ");
}
