import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import {
  type ExplainNodeResponse,
  ExplainNodeResponseSchema,
  RegistryService,
  type TimelineEntry,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import type { ExecutionWait } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../command.ts";
import { parseCount, parseMoment } from "../failure.ts";
import { obstacleRemedy } from "../hints.ts";
import { readNodeWaits, timesOf, waitLines } from "../jobs/waits.ts";
import { ANSWER_FORMATS, outputFormat, toPlain, writePlain } from "../output/format.ts";
import { columnsOf } from "../output/style.ts";
import { printable, wrap } from "../output/text.ts";
import { formatTime } from "../output/units.ts";
import type { Shell } from "../shell.ts";
import { contactText } from "./contact.ts";
import { agentTexts } from "./describe.ts";
import { HealthJoin } from "./read-health.ts";
import { actorWords } from "./words.ts";

/** What `node why` takes. */
export interface NodeWhyOptions {
  readonly limit?: string;
  readonly since?: string;
}

const DEFAULT_LIMIT = "100";

/** `node why`: how a node came to be in its state, whether it may take work, and what would change that. */
export const nodeWhy: Verb<NodeWhyOptions> = async ({ shell, args, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const limit = parseCount("limit", options.limit ?? DEFAULT_LIMIT, 1);
  const [name = ""] = args;
  const control = reachControlPlane(shell, options);
  const registry = control.client("registry", RegistryService);
  const request = {
    node: name,
    allowPrefix: format === "table",
    limit,
    ...(options.since === undefined
      ? {}
      : { fromTime: timestampFromMs(parseMoment("since", options.since, shell.wallMs())) }),
  };
  const answer = await control.attempt("registry", `explain node ${name}`, () => registry.explainNode(request));
  if (format !== "table") {
    await writePlain(shell, format, toPlain(ExplainNodeResponseSchema, answer));
    return;
  }
  const join = new HealthJoin(control, { warn: (line) => shell.err.write(line), includeSamples: false });
  const id = answer.node?.id ?? name;
  const live = (await join.read([id])).get(id);
  const waits = await readNodeWaits(control, id, (why) => {
    shell.err.write(`warning: what waits on the node is missing: ${why}\n`);
  });
  shell.out.write(timelineText(shell, { answer, live, waits }));
};

interface NodeExplanation {
  readonly answer: ExplainNodeResponse;
  readonly live: NodeHealth | undefined;
  readonly waits: readonly ExecutionWait[];
}

/** The timeline, what the replica knows beyond it, what would change the state, and what waits on the node. */
function timelineText(shell: Pick<Shell, "out" | "env">, { answer, live, waits }: NodeExplanation): string {
  const { node, entries, hasEarlier, summary, obstacles } = answer;
  const contact = contactText(node, live);
  const width = columnsOf(shell) || Number.POSITIVE_INFINITY;
  const lines = [
    ...(hasEarlier ? ["(earlier entries are left out: --limit shows more)"] : []),
    ...(entries.length === 0 ? ["(the log has no entry about this node)"] : []),
    ...entries.filter(({ event }) => event?.type !== MOVED).flatMap((entry) => entryLines(entry, width)),
    "",
    ...(contact === null ? [] : [wrap(printable(contact), width)]),
    ...(node === undefined ? [] : agentTexts(node)).map((text) => wrap(printable(`agent at ${text}`), width)),
    wrap(printable(summary), width),
    ...obstacles.flatMap((obstacle) => {
      const remedy = obstacleRemedy(obstacle, node?.id ?? "");
      if (remedy === "") return [];
      return [`  ${printable(obstacle.reason)} ${timesOf(obstacle)}`, `  to change that: ${printable(remedy)}`];
    }),
    ...waitLines(waits, Number.isFinite(width) ? Math.max(20, width - 4) : width),
  ];
  return `${lines.join("\n")}\n`;
}

const INDENT = " ".repeat(22);

/** Where a node's stream is says nothing about the node; -o json has it. */
const MOVED = "node.session.moved";
const RELEASED = "node.reactions.allowed";

/** When and what on one line; by whom on the next. Replicas and their ids are left to -o json. */
function entryLines({ event, text }: TimelineEntry, width: number): readonly string[] {
  const time = event?.time === undefined ? "-" : formatTime(timestampMs(event.time));
  const what = (event?.type ?? "").replace("node.", "");
  const told =
    event?.type === RELEASED
      ? "reactions to its loss may begin"
      : text.replaceAll(/; judged by replica [^;\s]+/g, "").replaceAll(/, replica \S+$/g, "");
  const lines = [`${what}  ${told}`, `by ${actorWords(event?.actor ?? "", event?.subject ?? "")}`]
    .flatMap((line) => wrap(printable(line), Math.max(20, width - INDENT.length)).split("\n"))
    .map((line) => INDENT + line);
  const [first = INDENT, ...others] = lines;
  return [time.padEnd(INDENT.length) + first.slice(INDENT.length), ...others];
}
