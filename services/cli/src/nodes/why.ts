import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import {
  type ExplainNodeResponse,
  ExplainNodeResponseSchema,
  RegistryService,
  type TimelineEntry,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import type { ExecutionWait } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { stateWords } from "@rollcall/domain";
import { type ActorNames, readActorNames } from "../client/actor-names.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import { parseCount, parseMoment } from "../failure.ts";
import { obstacleRemedy } from "../hints.ts";
import type { Verb } from "../invocation.ts";
import { ANSWER_FORMATS, outputFormat, toPlain, writePlain } from "../output/format.ts";
import { columnsOf } from "../output/style.ts";
import { printable, wrap, wrapValue } from "../output/text.ts";
import { formatTime } from "../output/units.ts";
import type { Shell } from "../shell.ts";
import { readNodeWaits, timesOf, waitLines } from "../waits.ts";
import { contactText } from "./contact.ts";
import { agentTexts } from "./describe.ts";
import { HealthJoin } from "./read-health.ts";
import { actorWords } from "./words.ts";

/** The options of `node why`. */
export interface NodeWhyOptions {
  readonly limit?: string;
  readonly since?: string;
}

const DEFAULT_LIMIT = "100";

/** `node why`: explain how a node got into its state, whether it can take work, and what would change that. */
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
    shell.err.write(`warning: cannot show what waits on the node: ${why}\n`);
  });
  const names = await readActorNames(
    control,
    answer.entries.flatMap(({ event }) => event?.actor ?? []),
  );
  shell.out.write(timelineText(shell, { answer, live, waits, names }));
};

interface NodeExplanation {
  readonly answer: ExplainNodeResponse;
  readonly live: NodeHealth | undefined;
  readonly waits: readonly ExecutionWait[];
  readonly names: ActorNames;
}

/**
 * Format the timeline, what the replica knows in addition, what would change the state, and what waits on the
 * node.
 */
function timelineText(shell: Pick<Shell, "out" | "env">, { answer, live, waits, names }: NodeExplanation): string {
  const { node, entries, hasEarlier, summary, obstacles } = answer;
  const contact = contactText(node, live);
  const width = columnsOf(shell) || Number.POSITIVE_INFINITY;
  const lines = [
    ...(hasEarlier ? ["(earlier entries omitted: use --limit to show more)"] : []),
    ...(entries.length === 0 ? ["(the event log has no entry about this node)"] : []),
    ...entries.filter(({ event }) => event?.type !== MOVED).flatMap((entry) => entryLines(entry, width, names)),
    "",
    ...(contact === null ? [] : [wrap(printable(contact), width)]),
    ...(node === undefined ? [] : agentTexts(node)).map((text) => wrap(printable(`agent at ${text}`), width)),
    wrap(printable(summary), width),
    ...obstacles.flatMap((obstacle) => {
      const remedy = obstacleRemedy(obstacle, node?.id ?? "");
      if (remedy === "") return [];
      const columns = Number.isFinite(width) ? width : 0;
      return [
        wrapValue("  ", printable(`${stateWords(obstacle.reason)} ${timesOf(obstacle)}`), columns, 2),
        wrapValue(REMEDY, printable(remedy), columns, REMEDY.length),
      ];
    }),
    ...waitLines(waits, width),
  ];
  return `${lines.join("\n")}\n`;
}

const REMEDY = "  to change that: ";
const INDENT = " ".repeat(22);

/**
 * The type of events that are left out, because the replica that holds a node's stream says nothing about the
 * node. -o json shows them.
 */
const MOVED = "node.session.moved";

/**
 * Format an entry: time and change on one line, the actor on the next. Only -o json shows replicas and their
 * ids.
 */
function entryLines({ event, text }: TimelineEntry, width: number, names: ActorNames): readonly string[] {
  const time = event?.time === undefined ? "-" : formatTime(timestampMs(event.time));
  const told = text.replaceAll(/; decided by replica [^;\s]+/g, "").replaceAll(/, replica \S+$/g, "");
  const lines = [told, `by ${actorWords(event?.actor ?? "", event?.subject ?? "", names)}`]
    .flatMap((line) => wrap(printable(line), Math.max(20, width - INDENT.length)).split("\n"))
    .map((line) => INDENT + line);
  const [first = INDENT, ...others] = lines;
  return [time.padEnd(INDENT.length) + first.slice(INDENT.length), ...others];
}
