import { decideMembership, type HealthState, type MembershipState } from "@rollcall/domain";
import {
  type EventRow,
  insertNode,
  joinAsOrchestrator,
  openSessions,
  orchestratorLost,
  readEvents,
  type Store,
  writeTransitions,
} from "@rollcall/store";
import { saveKey, saveMembership } from "@rollcall/testkit";

/** Add a node as registration does, and bring it to a membership. */
export async function addNode(store: Store, id: string, state: MembershipState = "PENDING"): Promise<void> {
  const by = { actor: "system", message: "", atMs: 0 };
  const decision = decideMembership(null, id, { kind: "register", manualApproval: true }, by);
  if (!decision.ok || decision.next === null) throw new Error("a new node was refused");
  const membership = decision.next;
  await store.transaction(async (tx) => {
    await insertNode(tx, { id, type: "COMPUTE", membership });
    const publicKey = new Uint8Array(32);
    await saveKey(tx, { nodeId: id, publicKey, fingerprint: `SHA256:${id}` });
    if (state !== "PENDING") {
      const reason = `WAS_${state}`;
      await saveMembership(tx, id, { ...membership, state, reason, message: "earlier" });
    }
  });
}

/** Register a control-plane process as a node. With `lost`, end its connection again. */
export async function addOrchestrator(store: Store, nodeId: string, lost = false): Promise<void> {
  const instance = `instance-of-${nodeId}`;
  await joinAsOrchestrator(store, {
    nodeId,
    instance,
    info: {},
    infoDigest: "none",
    summary: { cores: 0, memoryBytes: 0, diskBytes: 0, gpus: 0 },
    labels: {},
    address: "127.0.0.1:7710",
  });
  if (!lost) return;
  await store.change(async (tx) => ({
    result: null,
    events: await orchestratorLost(tx, { instance, signal: "goodbye", actor: "x" }),
  }));
}

/** Let a health replica hold a node's stream and write the node's health. */
export async function observe(store: Store, nodeId: string, health: HealthState): Promise<void> {
  const replicaId = "replica-1";
  const origin = { replicaId, instanceId: "i", bootId: "boot", machineFingerprint: "print", address: "10.0.0.1:1" };
  const { result } = await store.change((tx) =>
    openSessions(tx, [{ nodeId, ...origin, keyFingerprint: `SHA256:${nodeId}` }]),
  );
  const [session] = result;
  if (session?.outcome !== "OPENED") throw new Error("no session was opened");
  const state = { state: health, reason: "OBSERVED", message: "", actor: `replica:${replicaId}` };
  await writeTransitions(store, replicaId, [{ nodeId, epoch: session.epoch, health: state }]);
}

export async function eventsOf(store: Store, subject: string): Promise<readonly EventRow[]> {
  return (await readEvents(store.db, { after: 0n, limit: 10_000, subject })).events;
}
