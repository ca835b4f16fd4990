import { durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import {
  type Hold,
  type Node,
  type NodeInfo,
  NodeSchema,
  TrustSource,
  type WorkCapacity,
  WorkContainment,
  WorkIdentity,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import { isUsableGpu, reasonText, stateWords } from "@rollcall/domain";
import { type ActorNames, plainActorNames, readActorNames } from "../client/actor-names.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../invocation.ts";
import { outputFormat, toPlain, writePlain } from "../output/format.ts";
import { styleOfState } from "../output/style.ts";
import { counted, pad, printable, wrapValue } from "../output/text.ts";
import { formatDuration, formatExactDuration, formatTime } from "../output/units.ts";
import { panelFormat } from "./health.ts";
import { contactLine, type PanelFormat, usageLines } from "./health-panel.ts";
import {
  amountText,
  DISK,
  freeOf,
  GPUS,
  isUnknownFact,
  known,
  MEMORY,
  UNKNOWN,
  WORK_RESOURCES,
  workOf,
} from "./node-work.ts";
import { HealthJoin } from "./read-health.ts";
import { getNode } from "./read-nodes.ts";
import {
  actorWords,
  connectionWord,
  eligibilityWord,
  healthWord,
  holdWord,
  membershipWord,
  tierWord,
  typeWord,
} from "./words.ts";

/** `node describe`: show one node on one screen, or as a complete rollcall.node.v1.Node. */
export const nodeDescribe: Verb = async ({ shell, args, options }) => {
  const format = outputFormat(options, ["table", "name", "json", "yaml"]);
  const control = reachControlPlane(shell, options);
  const node = await getNode(control, args[0] ?? "", "describe", format === "table");
  if (format === "name") {
    shell.out.write(`${node.id}\n`);
  } else if (format === "table") {
    const join = new HealthJoin(control, { warn: (line) => shell.err.write(line), includeSamples: true });
    const health = (await join.read([node.id])).get(node.id);
    const names = await readActorNames(control, actorsOf(node));
    shell.out.write(statusPanel({ node, health, names, nowMs: shell.wallMs() }, panelFormat(shell, options)));
  } else {
    await writePlain(shell, format, toPlain(NodeSchema, node));
  }
};

export interface StatusPanelInput {
  readonly node: Node;
  /** The node's live data; undefined if the health service does not respond, or no replica holds the node. */
  readonly health: NodeHealth | undefined;
  /** Names the actors of changes; without it, tokens have the start of their ids. */
  readonly names?: ActorNames;
  /** Wall time now, to show how long ago a state began. */
  readonly nowMs: number;
}

type StateMessage = NonNullable<Node["membership"] | Node["connection"] | Node["health"] | Node["scheduling"]>;

const LABEL_WIDTH = 12;
/** Width of a label, a state and its age. */
const LEAD_WIDTH = 34;

/** One node on one screen, for people. */
export function statusPanel(
  { node, health, nowMs, names = plainActorNames }: StatusPanelInput,
  look: PanelFormat,
): string {
  const { paint, columns } = look;
  const row = (label: string, value: string) =>
    wrapValue(pad(label, LABEL_WIDTH), value === "" ? "-" : printable(value), columns, LABEL_WIDTH);
  const work = node.mayTakeWork ? paint("good", "can take work") : paint("dim", "takes no work");
  const lines = [
    `${paint("bold", node.id)}  ${typeWord(node.type)}  ${work}`,
    "",
    state("Approval", membershipWord(node.membership?.state), node.membership),
    state("Connection", connectionWord(node.connection?.state), node.connection),
    state("Health", healthWord(node.health?.state), node.health),
    state("Scheduling", eligibilityWord(node), node.scheduling),
    ...(node.scheduling?.holds ?? []).map((hold) => {
      const actor = actorWords(hold.actor, node.id, names);
      return row("", `hold ${stateWords(holdWord(hold.kind))}${untilWords(hold)} by ${actor}: ${hold.message || "-"}`);
    }),
    row("Contact", contactLine(health)),
    ...agentTexts(node).map((text, at) => row(at === 0 ? "Agents" : "", text)),
    ...wishFields(health).map((field) => row(...field)),
    "",
    ...machineFields(node.info).map((field) => row(...field)),
    ...workFields(node).map((field) => row(...field)),
    ...identityFields(node, nowMs).map((field) => row(...field)),
    ...node.labels.map((label, at) =>
      row(at === 0 ? "Labels" : "", `${label.key}=${label.value}  (${tierWord(label.tier)})`),
    ),
    ...(health === undefined ? [] : ["", ...usageLines(health, look)]),
  ];
  return lines.map((line) => `${line.trimEnd()}\n`).join("");

  function state(label: string, word: string, of: StateMessage | undefined): string {
    const since = of?.since === undefined ? "" : `for ${formatDuration(nowMs - timestampMs(of.since))}`;
    const why = reasonText(of?.reason ?? "", of?.message ?? "");
    const actor = of?.actor ? `by ${actorWords(of.actor, node.id, names)}` : "";
    const lead = `${pad(label, LABEL_WIDTH)}${paint(styleOfState(word), pad(stateWords(word), 13))}${pad(since, 9)}`;
    return wrapValue(lead, printable([actor, why].filter((part) => part).join("  ")), columns, LEAD_WIDTH);
  }
}

/** The actors whose names the panel shows. */
function actorsOf({ membership, connection, health, scheduling }: Node): readonly string[] {
  const holds = scheduling?.holds.map(({ actor }) => actor) ?? [];
  return [membership, connection, health, scheduling].flatMap((of) => of?.actor ?? []).concat(holds);
}

/** A line of the panel: its label and its value. */
type Field = readonly [label: string, value: string];

/** The two agents that use the node's identity, one per line; empty if only one agent uses it. */
export function agentTexts({ duplicateAgents }: Pick<Node, "duplicateAgents">): readonly string[] {
  return duplicateAgents.map(({ address, machineFingerprint, bootId, instanceId, time }) => {
    const since = time === undefined ? "" : `took over ${formatTime(timestampMs(time))}`;
    const names = [
      ["machine", machineFingerprint],
      ["boot", bootId],
      ["instance", instanceId],
    ].flatMap(([what, name = ""]) => (name === "" ? [] : [`${what} ${name.slice(0, SHOWN_OF_A_NAME)}`]));
    return [address, ...names, since].filter((part) => part !== "").join(", ");
  });
}

/** Number of characters of an id to show, enough to tell two agents apart. -o json shows ids in full. */
const SHOWN_OF_A_NAME = 12;

/**
 * The intervals that the agent's configuration requests but the control plane did not grant; empty if there are none.
 */
function wishFields(health: NodeHealth | undefined): Field[] {
  const asked = [
    ["a heartbeat every", health?.wishedHeartbeatInterval, health?.heartbeatInterval],
    ["information every", health?.wishedInfoInterval, health?.infoInterval],
  ] as const;
  const ungranted = asked.flatMap(([what, wished, told]) => {
    if (wished === undefined || told === undefined) return [];
    const [wishedMs, toldMs] = [durationMs(wished), durationMs(told)];
    if (wishedMs === toldMs) return [];
    return [`${what} ${formatExactDuration(wishedMs)} (gets ${formatExactDuration(toldMs)})`];
  });
  return ungranted.length === 0 ? [] : [["Asks for", ungranted.join(", ")]];
}

function machineFields(info: NodeInfo | undefined): Field[] {
  if (info === undefined) return [];
  const cpu = info.cpu;
  const gpus = new Map<string, number>();
  for (const gpu of info.gpus.filter(isUsableGpu)) gpus.set(gpu.name, (gpus.get(gpu.name) ?? 0) + 1);
  const unusable = info.gpus.filter((gpu) => !isUsableGpu(gpu));
  return [
    ["Host", [info.hostname, info.advertiseUrl].filter((part) => part).join("  ")],
    ["OS", [info.os?.name, info.os?.kernel, info.os?.architecture].filter((part) => part).join(", ")],
    ["CPU", cpuText(cpu)],
    ["Memory", `${amountText(info, MEMORY, known(info.memoryBytes))}, ${counted(info.numaNodes.length, "NUMA node")}`],
    ["Disk", amountText(info, DISK, known(info.diskBytes))],
    [
      "GPUs",
      [...gpus].map(([name, count]) => `${count} x ${name}`).join(", ") ||
        (isUnknownFact(info, GPUS.fact) ? UNKNOWN : "none"),
    ],
    ...unusable.map(({ index, name, unusable: why }): Field => {
      return [`GPU ${index}`, `unusable, ${name || "no name"}: ${why || "its driver reports no id"}`];
    }),
    ...info.unknownFacts.map(({ fact, reason, knownTime }): Field => {
      const shown = knownTime === undefined ? "no value known" : `shown as of ${formatTime(timestampMs(knownTime))}`;
      return ["Unknown", `${fact}, ${shown}${DENIED_TEXTS.get(fact) ?? ""}: ${reason}`];
    }),
    ["VMs", info.vm?.capable ? "capable" : `not capable: ${info.vm?.message || "not reported"}`],
    ["VFIO GPUs", String(info.vfioGpus.length)],
    ["Agent", info.agentVersion],
    ...trustTexts(info).map((text, at): Field => [at === 0 ? "Trusts" : "", text]),
  ];
}

/** The consequence for new executions while a fact is unknown. */
const DENIED_TEXTS: ReadonlyMap<string, string> = new Map(
  WORK_RESOURCES.map((it) => [it.fact, it === GPUS ? ", so no GPU is allocated" : ", so no new work is placed here"]),
);

/** How a node's agent recognizes the control plane, one part per line; empty if the agent does not report this. */
export function trustTexts(info: NodeInfo | undefined): readonly string[] {
  if (info?.trust === undefined) return [];
  const { source, authorities, serverName } = info.trust;
  const text = TRUST_TEXTS[source];
  if (text === undefined) return [];
  return [serverName === "" ? text : `${text}, for server name ${serverName}`, ...authorities];
}

const TRUST_TEXTS: Readonly<Partial<Record<TrustSource, string>>> = {
  [TrustSource.NONE]: "any server, in clear text",
  [TrustSource.SYSTEM]: "the authorities of its machine",
  [TrustSource.FILE]: "the authorities in a file (--ca-file)",
  [TrustSource.ANNOUNCED]: "the authorities that the control plane announces (--ca-fingerprint)",
};

/** Which work the node accepts, and which resources are free; empty for a node that accepts none. */
function workFields(node: Node): Field[] {
  const work = workOf(node);
  if (work === null) return [];
  const { executors, limits } = work.capacity;
  const enforced = limits.length === 0 ? "no limits enforced" : `limits on ${listing(limits)}`;
  const count = counted(work.allocated.executions, "execution");
  const free = WORK_RESOURCES.filter((it) => it.offered(work) !== 0 || isUnknownFact(node.info, it.fact)).map((it) => {
    const [of, allocated] = [it.offered(work), it.format(it.allocated(work))];
    const isUnknown = of === undefined || isUnknownFact(node.info, it.fact);
    if (isUnknown) return `${it.name} ${UNKNOWN}, ${allocated} allocated`;
    return `${it.name} ${it.format(freeOf(work, it))} free of ${it.format(of)}, ${allocated} allocated`;
  });
  const first: Field = ["Work", `${executors.join(", ") || "no executor"}; ${count}; ${enforced}`];
  return [
    first,
    ...free.map((line): Field => ["", line]),
    ...isolationTexts(work.capacity).map((line, at): Field => [at === 0 ? "Isolation" : "", line]),
    ...secretTexts(work.capacity).map((line, at): Field => [at === 0 ? "Secrets" : "", line]),
  ];
}

/**
 * How executions of a node are isolated from each other, and how their processes are ended; empty if the node does not
 * report isolation.
 */
export function isolationTexts({ isolation, users, executors }: WorkCapacity): readonly string[] {
  if (isolation === undefined) return [];
  const { namespaces, problem } = isolation;
  const seen = namespaces.length > 0 ? ", and sees neither other processes nor their /tmp" : "";
  const named = users.length > 0 ? [`jobs that name a user (${listing(users)}): one trust domain for each user`] : [];
  return [
    ...(IDENTITY_TEXTS[isolation.identity]?.({ user: isolation.user, seen }) ?? []),
    ...named,
    ...(executors.includes("docker") ? ["containers: separated by the engine"] : []),
    ...(CONTAINMENT_TEXTS[isolation.containment] ?? []),
    ...(problem === "" ? [] : [`not in force: ${problem}`]),
  ];
}

/** The secrets that a node offers, and who can use each; empty if it offers none. */
export function secretTexts({ secrets }: Pick<WorkCapacity, "secrets">): readonly string[] {
  const unused = "no job can use it: see Work.SecretGrants of the node";
  return secrets.map(({ name, grants }) => `${name}: ${grants.join(", ") || unused}`);
}

const IDENTITY_TEXTS: Readonly<
  Partial<Record<WorkIdentity, (facts: { readonly user: string; readonly seen: string }) => readonly string[]>>
> = {
  [WorkIdentity.OWN]: ({ seen }) => [`each execution has its own user id${seen}`],
  [WorkIdentity.SHARED]: ({ user }) => [`one trust domain: executions run as ${user}, and can read each other's data`],
  [WorkIdentity.AGENT]: () => [
    "one trust domain: executions run as the agent's own user, and can read each other's data and the node's key",
  ],
};

const CONTAINMENT_TEXTS: Readonly<Partial<Record<WorkContainment, readonly string[]>>> = {
  [WorkContainment.CGROUP]: ["all processes of an execution end with it (by its cgroup)"],
  [WorkContainment.NAMESPACE]: ["all processes of an execution end with it (by its PID namespace)"],
  [WorkContainment.USER]: ["all processes of an execution end with it (by its user id)"],
  [WorkContainment.MISSING]: [
    "containment is missing: processes can outlive their execution, and the resources they use count as free",
  ],
};

/** Words as a list for people: "a, b and c". */
function listing(words: readonly string[]): string {
  const [last = "", ...others] = words.toReversed();
  return others.length === 0 ? last : `${others.reverse().join(", ")} and ${last}`;
}

/** How the node proves its identity, and how it joined. */
function identityFields(node: Node, nowMs: number): Field[] {
  const { keyFingerprint, keySince, keyRotationRequiredSince: since, nextKeyFingerprint } = node;
  const { createTime, joinedFrom, joinTokenId } = node;
  const age = keySince === undefined ? "" : `for ${formatDuration(nowMs - timestampMs(keySince))}`;
  const rotation = since === undefined ? "" : `rotation required for ${formatDuration(nowMs - timestampMs(since))}`;
  const next = nextKeyFingerprint === "" ? "" : `next ${nextKeyFingerprint}`;
  const joined = [
    createTime === undefined ? "" : formatTime(timestampMs(createTime)),
    joinedFrom === "" ? "" : `from ${joinedFrom}`,
    joinTokenId === "" ? "" : `with join token ${joinTokenId}`,
    node.ephemeral ? "ephemeral" : "",
  ];
  return [
    ...(keyFingerprint === "" ? [] : [["Key", commas([keyFingerprint, age, next, rotation])] as const]),
    ["Registered", commas(joined)],
  ];
}

function untilWords({ untilTime }: Hold): string {
  return untilTime === undefined ? "" : ` until ${formatTime(timestampMs(untilTime))}`;
}

function commas(parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(", ");
}

function cpuText(cpu: NodeInfo["cpu"]): string {
  if (cpu === undefined) return "-";
  const { usableMillis = 0, threads } = cpu;
  const usable = usableMillis > 0 && usableMillis < threads * 1000 ? `, ${usableMillis / 1000} usable` : "";
  return `${counted(threads, "core")}${usable}, ${counted(cpu.sockets, "socket")}, ${cpu.model}`;
}
