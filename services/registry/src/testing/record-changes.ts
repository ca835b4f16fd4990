import {
  clearMark,
  cordon as cordonNode,
  DEFAULT_HEALTH_POLICY,
  drainNode,
  type HealthState,
  keyOfferedEvent,
  markUnhealthy,
  type NewEvent,
  requireKeyRotation,
  uncordon,
} from "@rollcall/domain";
import { generateKeyPair, keyFingerprint } from "@rollcall/identity";
import {
  adoptOrphans,
  endDrains,
  getDrain,
  getDrains,
  joinAsOrchestrator,
  keyOf,
  lockNode,
  lockWithSessions,
  type Node,
  openSessions,
  orchestratorLost,
  type Store,
  saveNextKey,
  settleConditions,
  type Tx,
  takeLease,
  writeTransitions,
} from "@rollcall/store";
import { decideOn } from "./operator.ts";

// Functions that change nodes, in addition to those of operator.ts. Each does what the service does,
// including its events.

const REASON = "as the test says";

/** Open a node's stream at a replica, from one of two boots of one of two machines. */
export async function connect(store: Store, id: string, seed: number): Promise<void> {
  const keys = (await keyOf(store.db, [id])).get(id);
  const offered = seed % 3 === 0 ? keys?.next : undefined;
  const hello = {
    nodeId: id,
    replicaId: `replica-${seed % 2}`,
    instanceId: "",
    bootId: `boot-${(seed >> 2) % 2}`,
    machineFingerprint: `print-${(seed >> 1) % 2}`,
    keyFingerprint: offered?.fingerprint ?? keys?.fingerprint ?? "",
    address: `10.0.0.${seed % 2}:${1000 + (seed % 50)}`,
  };
  await store.change((tx) => openSessions(tx, [hello]));
}

/** Write a health decision as the node's owner does. The reason and the message depend on the seed. */
export async function evaluate(store: Store, node: Node, state: HealthState, seed: number): Promise<void> {
  const found = { state, reason: `REASON_${seed % 2}`, message: `found ${seed % 3}` };
  await write(store, node, found);
}

/** Write a node's health as its owner does. */
export async function write(
  store: Store,
  node: Node,
  found: { readonly state: HealthState; readonly reason: string; readonly message: string },
): Promise<void> {
  const { epoch, replicaId } = node.session;
  if (replicaId === null) return;
  const health = { ...found, actor: `replica:${replicaId}` };
  await writeTransitions(store, replicaId, [{ nodeId: node.id, epoch, health }]);
}

/** Disconnect a node's stream, for a reason that depends on the seed. */
export async function disconnect(store: Store, node: Node, seed: number): Promise<void> {
  const { epoch, replicaId } = node.session;
  if (replicaId === null) return;
  const reason = seed % 2 === 0 ? "STREAM_BROKEN" : "STREAM_STALE";
  const actor = `replica:${replicaId}`;
  const connection = { state: "DISCONNECTED", reason, message: `${seed % 3}`, actor } as const;
  await writeTransitions(store, replicaId, [{ nodeId: node.id, epoch, connection }]);
}

/** Let a replica with a lease adopt some nodes of replicas without one. */
export async function adopt(store: Store): Promise<void> {
  const claim = { name: "heir", instance: "heir", service: "health", address: "a:1" };
  await takeLease(store.db, claim);
  await adoptOrphans(store, "heir", 3);
}

/** Update a node's holds, conditions and flapping as its owner does. */
export async function settle(store: Store, node: Node, seed: number): Promise<void> {
  const { epoch, replicaId } = node.session;
  if (replicaId === null) return;
  const message = `GPU ${seed % 2} is gone`;
  const trouble = { kind: "GPU_GONE", part: `gpu ${seed % 2}`, message } as const;
  const policy = {
    ...DEFAULT_HEALTH_POLICY,
    hardwareHold: true,
    flappingHoldMs: seed % 2 === 0 ? 600_000 : 300_000,
    rebootHoldMs: 0,
  };
  const gpuTroubles = seed % 3 === 0 ? [] : [trouble];
  await settleConditions(store, replicaId, [{ nodeId: node.id, epoch, policy, gpuTroubles }]);
}

/** Move an unexpected reboot so far back that it no longer counts. */
export async function ageReboot(store: Store, id: string): Promise<void> {
  await store.db
    .updateTable("node_sessions")
    .set({ rebooted_at: new Date(0) })
    .where("node_id", "=", id)
    .where("rebooted_at", "is not", null)
    .execute();
}

/** Cordon or uncordon a node. */
export async function cordon(store: Store, id: string, isOn: boolean): Promise<void> {
  const drain = await getDrain(store.db, id);
  await decideOn(store, id, (node, by) => (isOn ? cordonNode(node, by) : uncordon(node, by, drain)), REASON);
}

/** Drain a node, drain it again with `force`, and end its drain. */
export async function drain(store: Store, id: string): Promise<void> {
  const conditions = { deadlineMs: 1_000, ignoreDaemons: false, keepIneligible: false, maxParallel: 0 };
  for (const force of [false, true]) {
    await decideOn(
      store,
      id,
      (node, by) => drainNode(node, { request: { ...conditions, force }, selection: "" }, by, null),
      REASON,
    );
  }
  const evaluated = await getDrains(store.db, [id]);
  await store.change(async (tx) => ({
    result: null,
    events: await endDrains(tx, [...evaluated.values()], "scheduler:s"),
  }));
}

/** Mark a node unhealthy, or clear the mark. */
export async function mark(store: Store, id: string, isOn: boolean): Promise<void> {
  await decideOn(store, id, isOn ? markUnhealthy : clearMark, REASON);
}

/** Let a node offer its next key. */
export function offerKey(store: Store, id: string): Promise<void> {
  return changeNode(store, id, async (tx, node) => {
    if (node.keyFingerprint === null) return [];
    const { publicKey } = generateKeyPair();
    const fingerprint = keyFingerprint(publicKey);
    await saveNextKey(tx, { nodeId: id, publicKey, fingerprint });
    return [keyOfferedEvent({ subject: id, before: node.nextKeyFingerprint, after: fingerprint })];
  });
}

/** Require a node to rotate its key. */
export async function askForKey(store: Store, id: string): Promise<void> {
  await decideOn(store, id, requireKeyRotation, REASON);
}

/** Let a control-plane process appear, reappear or disappear. */
export async function runOrchestrator(store: Store, seed: number): Promise<void> {
  const instance = `cp-${seed % 2}`;
  if (seed % 3 === 0) {
    const lost = { instance, signal: "lease-expired", actor: "system" } as const;
    await store.change(async (tx) => ({ result: null, events: await orchestratorLost(tx, lost) }));
    return;
  }
  const agentVersion = `0.${seed % 2}.0`;
  await joinAsOrchestrator(store, {
    nodeId: "cp",
    instance,
    info: { agentVersion },
    infoDigest: `of ${agentVersion}`,
    summary: { cores: 0, memoryBytes: 0, diskBytes: 0, gpus: 0 },
    labels: {},
    address: "10.0.0.9:7700",
  });
}

async function changeNode(
  store: Store,
  id: string,
  change: (tx: Tx, node: Node) => Promise<readonly NewEvent[]>,
): Promise<void> {
  await store.change(async (tx) => {
    await lockNode(tx, id);
    const [node] = await lockWithSessions(tx, [id]);
    return { result: null, events: node === undefined ? [] : await change(tx, node) };
  });
}
