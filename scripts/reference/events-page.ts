import { EVENT_CATALOGUE, EVENT_TYPES } from "../../libs/domain/src/events/event-catalogue.ts";
import { cell, code, page, prose, table } from "./markdown.ts";

const PREFACE = `# Events

Generated from \`libs/domain/src/events/event-catalogue.ts\` by \`make gen\`; do not edit.

Each change is one event, written in the transaction that makes the change. Read them with \`rollcall events\`, with
\`rollcall.events.v1.EventService\` (ListEvents, WatchEvents), or from NATS. Types and reasons are stable names.
\`before\` and \`after\` are small objects that name what changed, and are absent where there was nothing, or nothing is
left. A field that a newer release adds may be ignored.
`;

/** docs/events.md: every type of event, from the catalogue. */
export function eventsPage(): string {
  const sections = EVENT_TYPES.flatMap((type) => {
    const row = EVENT_CATALOGUE[type];
    const rows = [
      ["subject", cell(row.subject)],
      ["actor", codes(row.actors)],
      ["before", codes(row.before)],
      ["after", codes(row.after)],
      ["reason", codes(row.reasons)],
    ];
    return [`## ${type}`, "", prose(row.when), "", ...table(["", ""], rows)];
  });
  return page(PREFACE, ...sections);
}

function codes(words: readonly string[] | null): string {
  return words === null ? "absent" : words.map(code).join(", ");
}
