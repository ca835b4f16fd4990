import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Event } from "@rollcall/api/rollcall/events/v1/events_pb";
import { describeChange, type EventType } from "@rollcall/domain";
import type { Column } from "../output/table.ts";
import { formatTime } from "../output/units.ts";

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
      cell: (event) => ({ text: changeOf(event) }),
    },
    { title: "REASON", name: "reason", cell: ({ reason }) => ({ text: reason }) },
    { title: "ACTOR", name: "actor", limit: 32, cell: ({ actor }) => ({ text: actor }) },
    { title: "MESSAGE", name: "message", limit: 48, cell: ({ message }) => ({ text: message }) },
  ];
}

/** A change in one line: "PENDING -> APPROVED". */
function changeOf({ type, time, before, after }: Event): string {
  const atMs = time === undefined ? 0 : timestampMs(time);
  // A newer server may have further types; their fields are shown as they are.
  const facts = { type: type as EventType, atMs };
  return describeChange({ ...facts, before: before ?? null, after: after ?? null });
}
