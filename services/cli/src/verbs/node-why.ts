import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { HealthQueryService, type NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import {
  type ExplainNodeResponse,
  ExplainNodeResponseSchema,
  RegistryService,
  type TimelineEntry,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { parseMoment } from "../audit/moment.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import { parseCount } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { contactText } from "../nodes/contact.ts";
import { HealthJoin } from "../nodes/read-health.ts";
import { outputFormat } from "../output/format.ts";
import { printable } from "../output/text.ts";
import { formatTime } from "../output/units.ts";

/** What `node why` takes. */
export interface NodeWhyOptions {
  readonly limit?: string;
  readonly since?: string;
}

const DEFAULT_LIMIT = "100";

/** `node why`: how a node came to be in its state, whether it may take work, and what would change that. */
export const nodeWhy: Verb<NodeWhyOptions> = async ({ shell, args, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const limit = parseCount("limit", options.limit ?? DEFAULT_LIMIT, 1);
  const [name = ""] = args;
  const control = reachControlPlane(shell, options);
  const registry = control.client("registry", RegistryService);
  const request = {
    node: name,
    limit,
    ...(options.since === undefined
      ? {}
      : { fromTime: timestampFromMs(parseMoment("since", options.since, shell.wallMs())) }),
  };
  const answer = await control.attempt("registry", `explain node ${name}`, () => registry.explainNode(request));
  if (format !== "table") {
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    shell.out.write(await formatStructured(format, toPlain(ExplainNodeResponseSchema, answer)));
    return;
  }
  const health = control.client("health", HealthQueryService);
  const join = new HealthJoin(control, health, (line) => shell.err.write(line), {
    includeSamples: false,
  });
  const id = answer.node?.id ?? name;
  const live = (await join.read([id])).get(id);
  shell.out.write(timelineText(answer, live));
};

/** The timeline, what the replica knows beyond it, and what follows. */
function timelineText(answer: ExplainNodeResponse, live: NodeHealth | undefined): string {
  const { entries, hasEarlier, summary, obstacles } = answer;
  const contact = contactText(answer.node, live);
  const lines = [
    ...(hasEarlier ? ["(more has happened before: --limit shows more of it)"] : []),
    ...(entries.length === 0 ? ["(nothing is in the log about this node)"] : []),
    ...entries.flatMap(entryLines),
    "",
    ...(contact === null ? [] : [contact]),
    summary,
    ...obstacles.flatMap(({ text, remedy }) => (remedy === "" ? [] : [`  to change that ${text}: ${remedy}`])),
  ];
  return `${lines.map(printable).join("\n")}\n`;
}

/** When and what on one line; how and by whom on the next. */
function entryLines({ event, text }: TimelineEntry): readonly string[] {
  const time = event?.time === undefined ? "-" : formatTime(timestampMs(event.time));
  const what = (event?.type ?? "").replace("node.", "");
  return [`${time}  ${what}  ${text}`, `${" ".repeat(22)}by ${event?.actor ?? "-"}`];
}
