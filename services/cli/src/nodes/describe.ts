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
import { isUsableGpu } from "@rollcall/domain";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../command.ts";
import { outputFormat, toPlain, writePlain } from "../output/format.ts";
import { styleOfState } from "../output/style.ts";
import { pad, printable, wrapValue } from "../output/text.ts";
import { formatBytes, formatDuration, formatExactDuration, formatTime } from "../output/units.ts";
import { panelLook } from "./health.ts";
import { contactLine, type PanelLook, usageLines } from "./health-panel.ts";
import { freeOf, isUnknownFact, WORK_RESOURCES, workOf } from "./node-work.ts";
import { HealthJoin } from "./read-health.ts";
import { getNode } from "./read-nodes.ts";
import {
  actorWords,
  connectionWord,
  healthWord,
  holdWord,
  membershipWord,
  schedulingWord,
  tierWord,
  typeWord,
} from "./words.ts";

/** `node describe`: one node on one screen, or all that is recorded of it, a rollcall.node.v1.Node. */
export const nodeDescribe: Verb = async ({ shell, args, options }) => {
  const format = outputFormat(options, ["table", "name", "json", "yaml"]);
  const control = reachControlPlane(shell, options);
  const node = await getNode(control, args[0] ?? "", "describe", format === "table");
  if (format === "name") {
    shell.out.write(`${node.id}\n`);
  } else if (format === "table") {
    const join = new HealthJoin(control, { warn: (line) => shell.err.write(line), includeSamples: true });
    const health = (await join.read([node.id])).get(node.id);
    shell.out.write(statusPanel({ node, health, nowMs: shell.wallMs() }, panelLook(shell, options)));
  } else {
    await writePlain(shell, format, toPlain(NodeSchema, node));
  }
};

/** What the panel shows. */
export interface StatusPanelInput {
  readonly node: Node;
  /** Undefined when health does not answer or no replica holds the node. */
  readonly health: NodeHealth | undefined;
  /** Wall time now, to tell how long ago a state began. */
  readonly nowMs: number;
}

type StateMessage = NonNullable<Node["membership"] | Node["connection"] | Node["health"] | Node["scheduling"]>;

const LABEL_WIDTH = 12;
/** A label, a state and since when. */
const LEAD_WIDTH = 34;

/** One node on one screen, for people. */
export function statusPanel({ node, health, nowMs }: StatusPanelInput, look: PanelLook): string {
  const { paint, columns } = look;
  const row = (label: string, value: string) =>
    wrapValue(pad(label, LABEL_WIDTH), value === "" ? "-" : printable(value), columns, LABEL_WIDTH);
  const work = node.mayTakeWork ? paint("good", "may take work") : paint("dim", "takes no work");
  const lines = [
    `${paint("bold", node.id)}  ${typeWord(node.type)}  ${work}`,
    "",
    state("Approval", membershipWord(node.membership?.state), node.membership),
    state("Connection", connectionWord(node.connection?.state), node.connection),
    state("Health", healthWord(node.health?.state), node.health),
    state("Scheduling", schedulingWord(node.scheduling?.state), node.scheduling),
    ...(node.scheduling?.holds ?? []).map((hold) =>
      row(
        "",
        `hold ${holdWord(hold.kind)}${untilWords(hold)} by ${actorWords(hold.actor, node.id)}: ${hold.message || "-"}`,
      ),
    ),
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
    const why = [of?.reason, of?.message].filter((part) => part).join(": ");
    const actor = of?.actor ? `by ${actorWords(of.actor, node.id)}` : "";
    const lead = `${pad(label, LABEL_WIDTH)}${paint(styleOfState(word), pad(word, 13))}${pad(since, 9)}`;
    return wrapValue(lead, printable([actor, why].filter((part) => part).join("  ")), columns, LEAD_WIDTH);
  }
}

/** A line of the panel: its label and what it says. */
type Field = readonly [label: string, value: string];

/** The two agents that use the node's identity, each on a line; none where one agent does. */
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

/** Enough to tell two apart; -o json has them whole. */
const SHOWN_OF_A_NAME = 12;

/** What the agent's own configuration asks for and is not granted; nothing where there is no difference. */
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
    ["Memory", `${formatBytes(Number(info.memoryBytes))}, ${plural(info.numaNodes.length, "NUMA node")}`],
    ["Disk", formatBytes(Number(info.diskBytes))],
    [
      "GPUs",
      [...gpus].map(([name, count]) => `${count} x ${name}`).join(", ") ||
        (isUnknownFact(info, "gpus") ? "unknown" : "none"),
    ],
    ...unusable.map(({ index, name, unusable: why }): Field => {
      return [`GPU ${index}`, `unusable, ${name || "no name"}: ${why || "its driver tells no id"}`];
    }),
    ...info.unknownFacts.map(({ fact, reason, knownTime }): Field => {
      const shown = knownTime === undefined ? "nothing is shown" : `shown as of ${formatTime(timestampMs(knownTime))}`;
      return ["Unknown", `${fact}, ${shown}: ${reason}`];
    }),
    ["VMs", info.vm?.capable ? "capable" : `not capable: ${info.vm?.message || "not told"}`],
    ["VFIO GPUs", String(info.vfioGpus.length)],
    ["Agent", info.agentVersion],
    ...trustTexts(info).map((text, at): Field => [at === 0 ? "Trusts" : "", text]),
  ];
}

/** How a node's agent recognizes the control plane, each part on a line; none where it does not report it. */
export function trustTexts(info: NodeInfo | undefined): readonly string[] {
  if (info?.trust === undefined) return [];
  const { source, authorities, serverName } = info.trust;
  const text = TRUST_TEXTS[source];
  if (text === undefined) return [];
  return [serverName === "" ? text : `${text}, for the name ${serverName}`, ...authorities];
}

const TRUST_TEXTS: Readonly<Partial<Record<TrustSource, string>>> = {
  [TrustSource.NONE]: "any server, in clear text",
  [TrustSource.SYSTEM]: "the authorities of its machine",
  [TrustSource.FILE]: "the authorities in a file (--ca-file)",
  [TrustSource.ANNOUNCED]: "the authorities that the control plane announces (--ca-fingerprint)",
};

/** What work the node takes, and what of it is free; nothing for one that takes none. */
function workFields(node: Node): Field[] {
  const work = workOf(node);
  if (work === null) return [];
  const { executors, limits } = work.capacity;
  const enforced = limits.length === 0 ? "no limits enforced" : `limits on ${listing(limits)}`;
  const count = plural(work.allocated.executions, "execution");
  const free = WORK_RESOURCES.filter((it) => it.offered(work) > 0).map((it) => {
    const [of, allocated] = [it.format(it.offered(work)), it.format(it.allocated(work))];
    return `${it.name} ${it.format(freeOf(work, it))} free of ${of}, ${allocated} allocated`;
  });
  const first: Field = ["Work", `${executors.join(", ") || "no executor"}; ${count}; ${enforced}`];
  return [
    first,
    ...free.map((line): Field => ["", line]),
    ...isolationTexts(work.capacity).map((line, at): Field => [at === 0 ? "Isolation" : "", line]),
    ...secretTexts(work.capacity).map((line, at): Field => [at === 0 ? "Secrets" : "", line]),
  ];
}

/** Which executions of a node can read each other, and how they are ended; empty when the node does not report it. */
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

/** The secrets of a node, and who can use each; empty for a node that offers none. */
export function secretTexts({ secrets }: Pick<WorkCapacity, "secrets">): readonly string[] {
  return secrets.map(({ name, grants }) => `${name}: ${grants.join(", ") || "no job can use it"}`);
}

const IDENTITY_TEXTS: Readonly<
  Partial<Record<WorkIdentity, (facts: { readonly user: string; readonly seen: string }) => readonly string[]>>
> = {
  [WorkIdentity.OWN]: ({ seen }) => [`each execution has a user id of its own${seen}`],
  [WorkIdentity.SHARED]: ({ user }) => [`one trust domain: executions run as ${user}, and can read each other`],
  [WorkIdentity.AGENT]: () => [
    "one trust domain: executions run as the agent's own user, and can read each other and the node's key",
  ],
};

const CONTAINMENT_TEXTS: Readonly<Partial<Record<WorkContainment, readonly string[]>>> = {
  [WorkContainment.CGROUP]: ["all processes of an execution end with it: by its cgroup"],
  [WorkContainment.NAMESPACE]: ["all processes of an execution end with it: by its PID namespace"],
  [WorkContainment.USER]: ["all processes of an execution end with it: by its user id"],
  [WorkContainment.MISSING]: [
    "containment is missing: processes can outlive their execution, and what they use counts as free",
  ],
};

/** Words as a list for people: "a, b and c". */
function listing(words: readonly string[]): string {
  const [last = "", ...others] = words.toReversed();
  return others.length === 0 ? last : `${others.reverse().join(", ")} and ${last}`;
}

/** With what the node proves that it is itself, and how it joined. */
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
  const limited = cpu.usableMillis > 0 && cpu.usableMillis < cpu.threads * 1000;
  const usable = limited ? `, ${cpu.usableMillis / 1000} usable` : "";
  return `${plural(cpu.threads, "core")}${usable}, ${plural(cpu.sockets, "socket")}, ${cpu.model}`;
}

function plural(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
