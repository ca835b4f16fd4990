import { toJsonString } from "@bufbuild/protobuf";
import { type Event, EventSchema } from "@rollcall/api/rollcall/events/v1/events_pb";
import type { Invocation } from "../invocation.ts";
import { choosePaint, type OutputFormat } from "../output/format.ts";
import { csvHeader, csvRows, TablePrinter } from "../output/table.ts";
import { eventColumns } from "./event-columns.ts";

/** How events are printed. */
export interface EventLook {
  readonly wide?: boolean;
  readonly hideHeader?: boolean;
}

/** Writes events as they come. */
export type EventWriter = (events: readonly Event[]) => Promise<void>;

/**
 * The writer of a format that can be written piece by piece; headings come with the first piece, whether or not it is
 * empty.
 */
export function createEventWriter({ shell, options }: Invocation<EventLook>, format: OutputFormat): EventWriter {
  const { hideHeader = false, wide = false } = options;
  const columns = eventColumns();
  switch (format) {
    case "json":
      return async (events) => shell.out.write(events.map(toLine).join(""));
    case "yaml":
      return async (events) => {
        const { formatStructured, toPlain } = await import("../output/structured.ts");
        for (const event of events) {
          const document = await formatStructured("yaml", toPlain(EventSchema, event));
          shell.out.write(`---\n${document}`);
        }
      };
    case "csv": {
      let heading = hideHeader ? "" : csvHeader(columns);
      return async (events) => {
        shell.out.write(heading + csvRows(columns, events));
        heading = "";
      };
    }
    case "table": {
      const paint = choosePaint(shell, options);
      const table = new TablePrinter(columns, { hideHeader, wide, paint });
      return async (events) => shell.out.write(table.print(events));
    }
  }
}

function toLine(event: Event): string {
  return `${toJsonString(EventSchema, event, { alwaysEmitImplicit: true })}\n`;
}
