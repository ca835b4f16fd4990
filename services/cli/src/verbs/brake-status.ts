import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Brake, BrakeService, GetBrakeResponseSchema } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import { brakeDetail, brakeStyle, brakeWord } from "../brake/brake-words.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import { Failure } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { choosePaint, outputFormat } from "../output/format.ts";
import { type Column, csvHeader, csvRows, TablePrinter } from "../output/table.ts";
import { formatDuration } from "../output/units.ts";

/** What `brake status` takes. */
export interface BrakeStatusOptions {
  readonly group?: string;
  readonly hideHeader?: boolean;
}

/** `brake status`: the brake of the cluster and of each group, or with --output a GetBrakeResponse. */
export const brakeStatus: Verb<BrakeStatusOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml", "csv"]);
  const { group, hideHeader = false } = options;
  const control = reachControlPlane(shell, options);
  const answer = await control.attempt("admin", "read the brake", () =>
    control.client("admin", BrakeService).getBrake({}),
  );
  const brakes = answer.brakes.filter((brake) => group === undefined || brake.group === group);
  if (brakes.length === 0 && group !== undefined)
    throw new Failure(`the brake has no group ${group}; rollcall brake status lists them all`);
  if (format === "json" || format === "yaml") {
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    const shown = create(GetBrakeResponseSchema, { ...answer, brakes });
    shell.out.write(await formatStructured(format, toPlain(GetBrakeResponseSchema, shown)));
    return;
  }
  const columns = columnsAt(shell.wallMs());
  if (format === "csv") {
    shell.out.write(`${hideHeader ? "" : csvHeader(columns)}${csvRows(columns, brakes)}`);
    return;
  }
  const paint = choosePaint(shell, options);
  shell.out.write(new TablePrinter(columns, { hideHeader, wide: true, paint }).print(brakes));
  if (answer.decider === "") shell.err.write("no process of health decides just now: nothing is released\n");
};

function columnsAt(nowMs: number): readonly Column<Brake>[] {
  const count = (name: "size" | "silent" | "lost" | "pending"): Column<Brake> => ({
    title: name.toUpperCase(),
    name,
    cell: (brake) => ({ text: String(brake[name]) }),
  });
  return [
    { title: "GROUP", name: "group", cell: ({ group }) => ({ text: group }) },
    {
      title: "STATE",
      name: "state",
      cell: ({ state }) => ({ text: brakeWord(state), style: brakeStyle(state) }),
    },
    {
      title: "FOR",
      name: "since",
      cell: ({ since }) => {
        if (since === undefined) return { text: "-", raw: "" };
        const sinceMs = timestampMs(since);
        return { text: formatDuration(nowMs - sinceMs), raw: new Date(sinceMs).toISOString() };
      },
    },
    ...(["size", "silent", "lost", "pending"] as const).map(count),
    {
      title: "DETAIL",
      name: "detail",
      cell: (brake) => ({ text: brakeDetail(brake) || "-", raw: brakeDetail(brake) }),
    },
  ];
}
