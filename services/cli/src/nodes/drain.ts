import { setTimeout as sleep } from "node:timers/promises";
import { durationFromMs, durationMs, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { AdminService, type Drain, DrainState } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { keepWatching } from "../client/keep-watching.ts";
import type { Verb } from "../command.ts";
import { Failure, momentIn, parseCount, parseDurationMs, spanIn, UsageError } from "../failure.ts";
import { readNodeWaits, waitLines } from "../jobs/waits.ts";
import { printable } from "../output/text.ts";
import { formatDuration, formatTime } from "../output/units.ts";
import type { Shell } from "../shell.ts";
import { decideNodes, type NodeCall, type NodeDecideOptions } from "./decide.ts";

/** What `node drain` takes. */
export interface NodeDrainOptions extends NodeDecideOptions {
  readonly deadline?: string;
  readonly force?: boolean;
  readonly ignoreDaemons?: boolean;
  readonly keepIneligible?: boolean;
  readonly maxParallel?: string;
  readonly detach?: boolean;
  readonly monitor?: boolean;
}

/** What `node cordon` takes. */
export interface NodeCordonOptions extends NodeDecideOptions {
  readonly until?: string;
}

/** `node cordon`: for good, or until a time. */
export const nodeCordon: Verb<NodeCordonOptions> = async (invocation) => {
  const { shell, args, options } = invocation;
  const untilMs = options.until === undefined ? null : parseLater("until", options.until, shell.wallMs());
  const untilTime = untilMs === null ? {} : { untilTime: timestampFromMs(untilMs) };
  await decideNodes(invocation, "cordon", args, (admin, request) => admin.cordonNode({ ...request, ...untilTime }));
};

/** `node drain`: order it, then say what is waited for until it is done. */
export const nodeDrain: Verb<NodeDrainOptions> = async (invocation) => {
  const { shell, args, options } = invocation;
  const control = reachControlPlane(shell, options);
  if (options.monitor === true) {
    if (args.length === 0) throw new UsageError("name the nodes whose drain to show");
    await followDrains(shell, control, args);
    return;
  }
  const conditions = parseConditions(options);
  const drained: string[] = [];
  const call: NodeCall = async (admin, request) => {
    // How many at a time is a condition of selections.
    const { maxParallel, ...others } = conditions;
    const selected = request.selector === undefined ? {} : { maxParallel };
    const answer = await admin.drainNode({ ...request, ...others, ...selected });
    if (request.validateOnly !== true) {
      if (answer.node !== undefined) drained.push(answer.node.id);
      for (const { nodeId, result } of answer.outcomes) if (result.case === "node") drained.push(nodeId);
    }
    return answer;
  };
  await decideNodes(invocation, "drain", args, call);
  if (options.detach !== true) await followDrains(shell, control, drained);
};

function parseConditions(options: NodeDrainOptions) {
  const { deadline, force, ignoreDaemons, keepIneligible, maxParallel } = options;
  const deadlineMs = deadline === undefined ? null : parseDurationMs("deadline", deadline, { zero: true });
  return {
    ...(force === undefined ? {} : { force }),
    ...(ignoreDaemons === undefined ? {} : { ignoreDaemons }),
    ...(keepIneligible === undefined ? {} : { keepIneligible }),
    ...(deadlineMs === null ? {} : { deadline: durationFromMs(deadlineMs) }),
    maxParallel: maxParallel === undefined ? 0 : parseCount("max-parallel", maxParallel, 1),
  };
}

/** A point in time that is still to come: a time, or a duration from now. Throws UsageError. */
function parseLater(option: string, text: string, nowMs: number): number {
  const before = momentIn(text, nowMs);
  if (before === null) {
    throw new UsageError(
      `cannot use '${text}' as ${option} value, should be a duration from now such as 2h, or a time such as ` +
        "2026-05-01T12:00:00Z",
    );
  }
  // A duration was read as one before now.
  return spanIn(text) === null ? before : 2 * nowMs - before;
}

/** Say what each drain waits for until it is done, one after the other: all of them have to be. */
async function followDrains(shell: Shell, control: ControlPlane, nodes: readonly string[]): Promise<void> {
  const admin = control.client("admin", AdminService);
  for (const node of nodes) {
    const messages = keepWatching({
      ...{ control, shell, at: "admin", what: `watch the drain of node ${node}` },
      open: (call) => admin.watchDrain({ node }, call),
      pause: (ms, signal) => sleep(ms, undefined, { signal }),
    });
    let told = "";
    let isDrained = false;
    let latest: Drain | undefined;
    for await (const { drain: changed } of messages) {
      // A message without a drain proves that the watch is alive: what holds the drain can be another reason by now.
      const drain = changed ?? latest;
      if (drain === undefined) continue;
      latest = drain;
      const progress = drainProgress(drain) + (await heldText(control, drain));
      if (progress !== told) shell.err.write(progress);
      told = progress;
      if (drain.state === DrainState.CANCELLED) throw new Failure(`the drain of node ${drain.nodeId} was cancelled`);
      if (drain.state === DrainState.UNCONFIRMED) {
        const what = "is over, but its agent has not confirmed that its executions ended";
        const said = `the drain of node ${printable(drain.nodeId)} ${what}`;
        // A forced drain does not wait for that.
        if (!drain.force) throw new Failure(`${said}; they may still run there: see \`rollcall node why\``);
        isDrained = true;
        shell.err.write(`${said}; they may still run there\n`);
      }
      if (drain.state === DrainState.DRAINED) {
        isDrained = true;
        shell.out.write(`${printable(drain.nodeId)} is drained\n`);
      }
    }
    if (!isDrained) throw new Failure(`the control plane ended the watch before node ${printable(node)} was drained`);
  }
}

/** What holds the executions that a drain waits for, one per line; empty when the scheduler does not answer. */
async function heldText(control: ControlPlane, { nodeId, state, waitingCount }: Drain): Promise<string> {
  if (state !== DrainState.DRAINING || waitingCount === 0) return "";
  // The drain itself already shows what it waits for.
  const waits = await readNodeWaits(control, nodeId, () => {});
  return waitLines(waits, Number.POSITIVE_INFINITY)
    .map((line) => `${line}\n`)
    .join("");
}

/** Executions that are named. */
const MOST_NAMED = 5;

/** What a drain waits for, and for how long at most, as lines; nothing once it is over. */
export function drainProgress({ nodeId, state, deadline, waitingFor, waitingCount, remaining }: Drain): string {
  if (state === DrainState.QUEUED) return `${printable(nodeId)} waits for other nodes of its selection\n`;
  if (state !== DrainState.DRAINING) return "";
  const until = deadline === undefined ? "" : ` until ${formatTime(timestampMs(deadline))}`;
  const left = remaining === undefined ? "" : ` (${formatDuration(durationMs(remaining))} left)`;
  const what =
    waitingCount === 0
      ? "the word of the scheduler that nothing runs"
      : `${waitingCount} execution${waitingCount === 1 ? "" : "s"}`;
  const named = waitingFor
    .slice(0, MOST_NAMED)
    .map((it) => printable(`  ${it.executionId}  ${it.job}  ${it.waitingFor}`));
  const more = waitingCount > named.length ? [`  and ${waitingCount - named.length} more`] : [];
  return [`${printable(nodeId)} waits${until}${left} for ${what}`, ...named, ...more]
    .map((line) => `${line}\n`)
    .join("");
}
