import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Event } from "@rollcall/api/rollcall/events/v1/events_pb";
import type { Column } from "../output/table.ts";
import { formatTime } from "../output/units.ts";

type Fields = Event["after"];
type Value = NonNullable<Fields>[string];

/** The columns of `events`. */
export function eventColumns(): readonly Column<Event>[] {
  return [
    { title: "REVISION", name: "revision", cell: ({ revision }) => ({ text: String(revision) }) },
    {
      title: "TIME",
      name: "time",
      cell: ({ time }) => {
        if (time === undefined) return { text: "-", raw: "" };
        const atMs = timestampMs(time);
        return { text: formatTime(atMs), raw: new Date(atMs).toISOString() };
      },
    },
    { title: "TYPE", name: "type", cell: ({ type }) => ({ text: type }) },
    { title: "SUBJECT", name: "subject", cell: ({ subject }) => ({ text: subject }) },
    {
      title: "CHANGE",
      name: "change",
      limit: 48,
      cell: ({ before, after }) => ({ text: describeChange(before, after) }),
    },
    { title: "REASON", name: "reason", cell: ({ reason }) => ({ text: reason }) },
    { title: "ACTOR", name: "actor", limit: 32, cell: ({ actor }) => ({ text: actor }) },
    { title: "MESSAGE", name: "message", limit: 48, cell: ({ message }) => ({ text: message }) },
  ];
}

/** A change in one line: "PENDING -> APPROVED"; the names of fields as well when there are several. */
function describeChange(before: Fields, after: Fields): string {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].filter(
    // `node why` tells it in words.
    (name) => name !== "evidence",
  );
  const changes = names.map((name) => {
    const change = `${describeValue(before?.[name])} -> ${describeValue(after?.[name])}`;
    return names.length === 1 ? change : `${name} ${change}`;
  });
  return changes.join(", ");
}

function describeValue(value: Value | undefined): string {
  if (value === undefined || value === null) return "-";
  if (Array.isArray(value)) return value.length === 0 ? "-" : value.map(describeValue).join("+");
  if (typeof value !== "object") return String(value);
  const entries = Object.entries(value).map(([key, one]) => `${key}=${describeValue(one)}`);
  return entries.length === 0 ? "-" : entries.join(" ");
}
