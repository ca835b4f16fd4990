import { setTimeout as sleep } from "node:timers/promises";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import {
  ConnectionState,
  HealthState,
  MembershipState,
  type Node,
  SchedulingState,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { stateWords } from "@rollcall/domain";
import { NODE_WAIT_WORDS } from "../choices.ts";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { streamLimitsOf } from "../client/keep-watching.ts";
import { withTimeLimit } from "../client/time-limit.ts";
import { pickWords, Unreached, UsageError } from "../failure.ts";
import { reasonIn } from "../hints.ts";
import type { Verb } from "../invocation.ts";
import { outputFormat } from "../output/format.ts";
import { showing } from "../output/progress.ts";
import { wrapped } from "../output/style.ts";
import { printable } from "../output/text.ts";
import type { Shell } from "../shell.ts";
import { connectionWord, eligibilityWord, healthWord, membershipWord } from "./words.ts";

/** The options of `node wait`. */
export interface NodeWaitOptions {
  readonly for?: string;
}

type WaitWord = (typeof NODE_WAIT_WORDS)[number];

/** For each state, returns whether a node is in that state. */
const IS_IN: Readonly<Record<Exclude<WaitWord, "deleted">, (node: Node) => boolean>> = {
  approved: (node) => node.membership?.state === MembershipState.APPROVED,
  pending: (node) => node.membership?.state === MembershipState.PENDING,
  rejected: (node) => node.membership?.state === MembershipState.REJECTED,
  connected: (node) => node.connection?.state === ConnectionState.CONNECTED,
  disconnected: (node) => node.connection?.state === ConnectionState.DISCONNECTED,
  healthy: (node) => node.health?.state === HealthState.HEALTHY,
  unhealthy: (node) => node.health?.state === HealthState.UNHEALTHY,
  unknown: (node) => node.health?.state === HealthState.UNKNOWN,
  eligible: (node) =>
    node.membership?.state === MembershipState.APPROVED && node.scheduling?.state === SchedulingState.ELIGIBLE,
  ineligible: (node) => node.scheduling?.state === SchedulingState.INELIGIBLE,
  draining: (node) => node.scheduling?.state === SchedulingState.DRAINING,
  drained: (node) => node.scheduling?.state === SchedulingState.DRAINED,
};

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;
/** Length of a wait after which the current state is reported, in milliseconds. */
const QUIET_MS = 2_000;

/** `node wait NODE... --for STATES`: wait until each node has been seen in all of these states at the same time. */
export const nodeWait: Verb<NodeWaitOptions> = async ({ shell, args, options }) => {
  const format = outputFormat(options, ["table", "name"]);
  const states = pickWords("for", options.for ?? "", NODE_WAIT_WORDS);
  if (states.length === 0) throw new UsageError(`name the state to wait for: --for ${NODE_WAIT_WORDS.join("|")}`);
  if (states.includes("deleted") && states.length > 1) {
    throw new UsageError("--for deleted cannot be combined with other states");
  }
  let status = "";
  const limit = options.timeout === undefined ? "; there is no time limit, --timeout sets one" : "";
  await withTimeLimit(
    shell,
    options,
    async (limited, others) => {
      const control = reachControlPlane(limited, others);
      for (const name of args) {
        const what = `wait for node ${name} to be ${states.join(", ")}`;
        const note = (text: string) => (status = text);
        await showing(limited, what, () => waitForNode(limited, control, { name, states, limit, note }));
        shell.out.write(format === "name" ? `${printable(name)}\n` : `${printable(name)} is ${states.join(", ")}\n`);
      }
    },
    () => status,
  );
};

interface Awaited {
  readonly name: string;
  readonly states: readonly WaitWord[];
  /** What to add to the first report if the wait has no time limit. */
  readonly limit: string;
  /** Receives the current state of the node, as a sentence. */
  note(text: string): void;
}

async function waitForNode(shell: Shell, control: ControlPlane, { name, states, limit, note }: Awaited): Promise<void> {
  const wanted = states.join(", ");
  const startMs = performance.now();
  let reachedMs: number | null = null;
  let told = "";
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 1.5)) {
    let text: string;
    let hint = "`rollcall status` shows the control plane";
    try {
      const node = await findNode(control, name);
      reachedMs = performance.now();
      if (isReached(node, states)) return;
      text = `waiting for node ${name} to be ${wanted}: ${node === null ? "it has not registered" : stateText(node)}`;
      hint =
        node === null ? "`rollcall node list` shows all nodes" : `\`rollcall node why ${name}\` explains its state`;
    } catch (error) {
      shell.interrupted.throwIfAborted();
      const isOutage = error instanceof Unreached && reachedMs !== null;
      if (!isOutage || performance.now() - (reachedMs ?? 0) >= streamLimitsOf(shell).giveUpMs) throw error;
      // The hint follows in a separate line if the time is over.
      const [why = ""] = error.message.split("\n");
      text = `${why}; trying again`;
    }
    note(`${text}\nhint: ${hint}`);
    const isSlow = performance.now() - startMs > QUIET_MS;
    if (isSlow && text !== told) shell.err.write(wrapped(`${printable(text)}${told === "" ? limit : ""}\n`, shell));
    if (isSlow) told = text;
    await sleep(pauseMs, undefined, { signal: shell.interrupted });
  }
}

/** The node with this id; null if there is none. */
async function findNode(control: ControlPlane, name: string): Promise<Node | null> {
  const registry = control.client("registry", RegistryService);
  return control.attempt("registry", `read node ${name}`, async () => {
    try {
      return (await registry.getNode({ node: name })).node ?? null;
    } catch (error) {
      if (reasonIn(error) === ErrorReason.NODE_NOT_FOUND) return null;
      throw error;
    }
  });
}

function isReached(node: Node | null, states: readonly WaitWord[]): boolean {
  return states.every((state) => (state === "deleted" ? node === null : node !== null && IS_IN[state](node)));
}

function stateText(node: Node): string {
  const { membership, connection, health } = node;
  const words = [
    membershipWord(membership?.state),
    connectionWord(connection?.state),
    healthWord(health?.state),
    eligibilityWord(node),
  ];
  return `it is ${words
    .filter((word) => word !== "-")
    .map(stateWords)
    .join(", ")}`;
}
