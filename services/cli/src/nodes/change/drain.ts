import { durationFromMs, durationMs, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { AdminService, type Drain, DrainState } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { type ControlPlane, reachControlPlane } from "../../client/control-plane.ts";
import { keepWatching } from "../../client/keep-watching.ts";
import { Failure, momentIn, parseCount, parseDurationMs, spanIn, Unreached, UsageError } from "../../failure.ts";
import type { Verb } from "../../invocation.ts";
import { showing } from "../../output/progress.ts";
import { widthOf } from "../../output/style.ts";
import { counted, printable } from "../../output/text.ts";
import { formatDuration, formatTime } from "../../output/units.ts";
import type { Shell } from "../../shell.ts";
import { readNodeWaits, waitLines } from "../../waits.ts";
import { decideNodes, type NodeCall, type NodeDecideOptions } from "./decide.ts";

/** The options of `node drain`. */
export interface NodeDrainOptions extends NodeDecideOptions {
  readonly deadline?: string;
  readonly force?: boolean;
  readonly ignoreDaemons?: boolean;
  readonly keepIneligible?: boolean;
  readonly maxParallel?: string;
  readonly detach?: boolean;
  readonly monitor?: boolean;
}

/** The options of `node cordon`. */
export interface NodeCordonOptions extends NodeDecideOptions {
  readonly until?: string;
}

/** `node cordon`: cordon nodes permanently, or until a time. */
export const nodeCordon: Verb<NodeCordonOptions> = async (invocation) => {
  const { shell, args, options } = invocation;
  const end = options.until === undefined ? {} : parseEnd("until", options.until, shell.wallMs());
  await decideNodes(invocation, "cordon", args, (admin, request) => admin.cordonNode({ ...request, ...end }));
};

/** `node drain`: request a drain, then report what it waits for until it is done. */
export const nodeDrain: Verb<NodeDrainOptions> = async (invocation) => {
  const { shell, args, options } = invocation;
  const control = reachControlPlane(shell, options);
  if (options.monitor === true) {
    if (args.length === 0) throw new UsageError("name the nodes whose drains to monitor");
    await followDrains(shell, control, args, { isForced: options.force === true });
    return;
  }
  const conditions = parseConditions(options);
  const drained: string[] = [];
  const call: NodeCall = async (admin, request) => {
    // Send maxParallel only with a selection, because it applies only to selections.
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
  if (options.detach !== true) await followDrains(shell, control, drained, { isForced: options.force === true });
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

/**
 * Parse a duration or a time. A duration is sent unchanged, because a repeated command must send the same request.
 * Throws UsageError.
 */
function parseEnd(option: string, text: string, nowMs: number) {
  const spanMs = spanIn(text);
  if (spanMs !== null) return { duration: durationFromMs(spanMs) };
  const untilMs = momentIn(text, nowMs);
  if (untilMs === null) {
    throw new UsageError(
      `cannot use '${text}' as ${option} value, should be a duration from now such as 2h, or a time such as ` +
        "2026-05-01T12:00:00Z",
    );
  }
  return { untilTime: timestampFromMs(untilMs) };
}

/**
 * Report what each drain waits for until it is done. Drains are followed one after the other, which takes no longer,
 * because all have to finish.
 *
 * @param how `isForced` is whether this command has --force. If not, a drain whose end the node has not confirmed is a
 *   Failure, even if an earlier command forced the drain.
 */
async function followDrains(
  shell: Shell,
  control: ControlPlane,
  nodes: readonly string[],
  how: { readonly isForced: boolean },
): Promise<void> {
  for (const node of nodes)
    await showing(shell, `wait for the drain of node ${node}`, () => followDrain(shell, control, node, how));
}

async function followDrain(
  shell: Shell,
  control: ControlPlane,
  node: string,
  how: { readonly isForced: boolean },
): Promise<void> {
  const admin = control.client("admin", AdminService);
  const messages = keepWatching({
    ...{ control, shell, at: "admin", what: `watch the drain of node ${node}` },
    open: (call) => admin.watchDrain({ node }, call),
  });
  let told = "";
  let isDrained = false;
  let latest: Drain | undefined;
  for await (const { drain: changed } of messages) {
    // A message without a drain only shows that the watch is alive. Report again anyway, because the reasons for the
    // delay may have changed.
    const drain = changed ?? latest;
    if (drain === undefined) continue;
    latest = drain;
    const progress = drainProgress(drain) + (await heldText(control, drain, widthOf(shell.err)));
    if (progress !== told) shell.err.write(progress);
    told = progress;
    if (drain.state === DrainState.CANCELLED) throw new Failure(`the drain of node ${drain.nodeId} was cancelled`);
    if (drain.state === DrainState.UNCONFIRMED) {
      const what = "has ended, but its agent has not confirmed that its executions ended";
      const said = `the drain of node ${printable(drain.nodeId)} ${what}`;
      if (!how.isForced) throw new Failure(`${said}; they may still be running: see \`rollcall node why\``);
      isDrained = true;
      shell.err.write(`${said}; they may still be running\n`);
    }
    if (drain.state === DrainState.DRAINED) {
      isDrained = true;
      shell.out.write(`${printable(drain.nodeId)} is drained\n`);
    }
  }
  if (!isDrained) throw new Unreached(`the control plane ended the watch before node ${printable(node)} was drained`);
}

/** What delays the executions that a drain waits for, one line each; empty if the scheduler does not respond. */
async function heldText(
  control: ControlPlane,
  { nodeId, state, waitingCount }: Drain,
  columns: number,
): Promise<string> {
  if (state !== DrainState.DRAINING || waitingCount === 0) return "";
  // Ignore errors, because the drain already shows what it waits for.
  const waits = await readNodeWaits(control, nodeId, () => {});
  return waitLines(waits, columns)
    .map((line) => `${line}\n`)
    .join("");
}

/** Maximum number of executions to list. */
const MOST_NAMED = 5;

/** Format what a drain is waiting for, and for how long at most, as lines; empty once it has ended. */
export function drainProgress({ nodeId, state, deadline, waitingFor, waitingCount, remaining }: Drain): string {
  if (state === DrainState.QUEUED) return `${printable(nodeId)} is waiting for other nodes of its selection\n`;
  if (state !== DrainState.DRAINING) return "";
  const until = deadline === undefined ? "" : ` until ${formatTime(timestampMs(deadline))}`;
  const left = remaining === undefined ? "" : ` (${formatDuration(durationMs(remaining))} left)`;
  const what =
    waitingCount === 0 ? "the scheduler to confirm that the node is empty" : counted(waitingCount, "execution");
  const named = waitingFor
    .slice(0, MOST_NAMED)
    .map((it) => printable(`  ${it.executionId}  ${it.job}  ${it.waitingFor}`));
  const more = waitingCount > named.length ? [`  and ${waitingCount - named.length} more`] : [];
  return [`${printable(nodeId)} is waiting${until}${left} for ${what}`, ...named, ...more]
    .map((line) => `${line}\n`)
    .join("");
}
