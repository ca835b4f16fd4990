import type { JsonObject } from "@bufbuild/protobuf";
import { accessTokenHash, ensureAccessToken, type Store, saveInfo } from "../../libs/store/src/index.ts";
import { addWorkNode, testFingerprint } from "../../libs/testkit/src/index.ts";

/** Prepares the state in which a case's call changes something. */
export interface Preparation {
  readonly store: Store;
  /** The name of every object of this case. No other case uses it. */
  readonly name: string;
  /** Make a call that must succeed, and return its response. */
  call(method: string, request: JsonObject): Promise<JsonObject>;
}

/** A call that changes something. */
export interface ActingCall {
  /** Prepare the state. Default: nothing but the node, for methods of nodes. */
  readonly given?: (preparation: Preparation) => Promise<unknown>;
  readonly request: (preparation: Preparation) => JsonObject | Promise<JsonObject>;
  /** The reason why a wrong etag is refused. Default: ETAG_MISMATCH. */
  readonly mismatch?: string;
  /** The object that the call changes. Default: the name of the case. */
  readonly target?: string;
}

const WEBHOOK = { url: "https://receiver.example/hook", paused: true };
const VALUES = { infoInterval: "7s" };

/** A job without executions, which no scheduler changes. */
function jobOf(name: string, memoryBytes = "1000000"): JsonObject {
  return {
    ...{ name, type: "JOB_TYPE_SERVICE", count: 1, resources: { millicores: 100, memoryBytes } },
    process: { command: ["serve"] },
  };
}

const scopeOf = (group: string) => ({ scope: { group } });

/** A call of a method of nodes. `first` is a method to call before, so that the call has something to change. */
function ofNode(first: string | null = null, fields: JsonObject = {}): ActingCall {
  return {
    given: async ({ store, name, call }) => {
      await addWorkNode(store, name);
      if (first !== null) await call(first, { node: name });
    },
    request: ({ name }) => ({ node: name, ...fields }),
  };
}

/** A call of a method of jobs, about a job that has two versions. */
function ofJob(fields: JsonObject = {}): ActingCall {
  return {
    given: async ({ store, name, call }) => {
      // A job that fits no node would be refused.
      await addWorkNode(store, name);
      await call("SubmitJob", { spec: jobOf(name) });
      await call("SubmitJob", { spec: jobOf(name, "2000000") });
    },
    request: ({ name }) => ({ name, ...fields }),
  };
}

/** A call of a method of executions, about an execution of a job in this state. */
function ofExecution(state: "LIVE" | "ORPHANED"): ActingCall {
  return {
    given: async ({ store, name, call }) => {
      await addWorkNode(store, name);
      await call("SubmitJob", { spec: jobOf(name) });
      const reserved = { millicores: 1n, memory_bytes: 1n, disk_bytes: 1n, spec_digest: Buffer.alloc(32) };
      const place = { job: name, node_id: name, version: 0, index: 0, generation: 1n, ports: "{}", gpu_uuids: [] };
      const row = { id: name, desired: "RUN", state, attempt: 0, reason: "", message: "" } as const;
      await store.db
        .insertInto("executions")
        .values({ ...row, ...place, ...reserved })
        .execute();
    },
    request: ({ name }) => ({ execution: name }),
  };
}

/** Add a node that lacks hardware. */
async function addShrunk({ store, name }: Preparation): Promise<void> {
  await addWorkNode(store, name);
  const summary = { cores: 0, memoryBytes: 0, diskBytes: 0, gpus: 0 };
  for (const threads of [8, 4]) {
    await store.transaction((tx) =>
      saveInfo(tx, name, { info: { cpu: { threads } }, digest: `${threads}`, summary, agentLabels: {} }),
    );
  }
}

/** Add a group of the brake, and the cluster's row, which a release locks. */
async function addGroup({ store, name }: Preparation): Promise<void> {
  const group = { group_name: name, mode: "FULL", size: 3, window_loss: 0n } as const;
  const cluster = { ...group, group_name: "cluster", mode: "NORMAL" } as const;
  await store.db
    .insertInto("brakes")
    .values([group, cluster])
    .onConflict((it) => it.doNothing())
    .execute();
}

async function addJoinToken({ store, name }: Preparation): Promise<void> {
  const terms = { description: "", node_name_pattern: "", labels: "{}", preauthorized: false, ephemeral: false };
  const token = { ...terms, id: name, hash: accessTokenHash(name), created_by: "test" };
  await store.db.insertInto("join_tokens").values(token).execute();
}

async function addPolicy({ name, call }: Preparation): Promise<void> {
  await call("SetHealthPolicy", { ...scopeOf(name), selector: "gpu", priority: 1, values: VALUES });
}

const addWebhook = ({ name, call }: Preparation) => call("SetWebhook", { name, spec: WEBHOOK });

/** Write an audit entry. */
const audited = async (preparation: Preparation) => {
  await addGroup(preparation);
  await preparation.call("FreezeReactions", { group: preparation.name });
};

/** Calls that change something, keyed by method. */
export const ACTING_CALLS: Readonly<Record<string, ActingCall>> = {
  ApproveNode: ofNode("RejectNode"),
  RejectNode: ofNode(),
  DeleteNode: ofNode(),
  CordonNode: ofNode(),
  UncordonNode: ofNode("CordonNode"),
  MarkNodeUnhealthy: ofNode(),
  ClearNodeMark: ofNode("MarkNodeUnhealthy"),
  RequireKeyRotation: ofNode(),
  AcceptNodeHardware: { ...ofNode(), given: addShrunk },
  BanNode: ofNode(),
  UnbanNode: ofNode("BanNode"),
  SetNodeLabels: ofNode(null, { set: { rack: "r1" } }),
  DrainNode: ofNode(),
  CancelDrain: ofNode("DrainNode"),
  CreateAccessToken: { request: ({ name }) => ({ name, role: "ROLE_VIEWER" }) },
  RevokeAccessToken: {
    given: ({ store, name }) =>
      ensureAccessToken(store.db, { id: name, name, role: "viewer", hash: accessTokenHash(name) }),
    request: ({ name }) => ({ id: name }),
  },
  CreateJoinToken: { request: ({ name }) => ({ description: name }) },
  RevokeJoinToken: { given: addJoinToken, request: ({ name }) => ({ id: name }) },
  PruneAuditLog: {
    given: audited,
    request: async ({ call }) => ({ through: (await call("VerifyAuditLog", {})).head ?? null, maxEntries: 1 }),
  },
  FreezeReactions: { given: addGroup, request: ({ name }) => ({ group: name }) },
  ReleaseReactions: { given: audited, request: ({ name }) => ({ group: name, now: true }) },
  ApplyState: { request: ({ name }) => ({ owner: name, objects: [{ webhook: { name, spec: WEBHOOK } }] }) },
  SetHealthPolicy: {
    given: addPolicy,
    request: ({ name }) => ({ ...scopeOf(name), selector: "gpu", priority: 1, values: { infoInterval: "9s" } }),
  },
  DeleteHealthPolicy: { given: addPolicy, request: ({ name }) => scopeOf(name) },
  RepublishEvents: {
    given: async ({ store, name }) => {
      await addWorkNode(store, name);
      const revision = { revision: 1_000_000n };
      await store.db.updateTable("event_relay").set(revision).execute();
    },
    request: () => ({}),
  },
  SetWebhook: { given: addWebhook, request: ({ name }) => ({ name, spec: WEBHOOK, rotateSecret: true }) },
  DeleteWebhook: { given: addWebhook, request: ({ name }) => ({ name }) },
  ReplayDeliveries: { given: addWebhook, request: ({ name }) => ({ name }) },
  SubmitJob: { ...ofJob(), request: ({ name }) => ({ spec: jobOf(name, "3000000") }) },
  ScaleJob: ofJob({ count: 3 }),
  RestartJob: ofJob(),
  RevertJob: ofJob({ version: 1 }),
  StopJob: ofJob(),
  DeleteJob: {
    ...ofJob(),
    given: async (it) => {
      await ofJob().given?.(it);
      await it.call("StopJob", { name: it.name });
    },
  },
  StopExecution: ofExecution("LIVE"),
  AdoptExecution: ofExecution("ORPHANED"),
};

/** Further ways for a method to change something, as the method, what it does and the call. */
export const FURTHER_CALLS: readonly (readonly [string, string, ActingCall])[] = [
  ["BanNode", "an id that no node has", { request: ({ name }) => ({ nodeId: name }), mismatch: "NODE_NOT_FOUND" }],
  [
    "UnbanNode",
    "an id that no node has",
    {
      given: ({ name, call }) => call("BanNode", { nodeId: name }),
      request: ({ name }) => ({ node: name }),
      mismatch: "NODE_NOT_FOUND",
    },
  ],
  ["BanNode", "the key of a node", { ...ofNode(), request: ({ name }) => ({ fingerprint: testFingerprint(name) }) }],
  [
    "UnbanNode",
    "a key that its node took later",
    {
      given: async ({ store, name }) => {
        await addWorkNode(store, name);
        const ban = { node_id: null, fingerprint: testFingerprint(name), reason: "", actor: "test" };
        await store.db.insertInto("bans").values(ban).execute();
      },
      request: ({ name }) => ({ fingerprint: testFingerprint(name) }),
    },
  ],
  [
    "ReleaseReactions",
    "the cluster",
    {
      // Other operators have frozen groups by now, and keep them frozen.
      given: ({ call }) => call("FreezeReactions", {}),
      request: () => ({}),
      target: "cluster",
    },
  ],
  ["UncordonNode", "a drained node", ofNode("DrainNode")],
  ["CordonNode", "a node for an hour", ofNode(null, { duration: "3600s" })],
  ["SetWebhook", "a new one", { request: ({ name }) => ({ name, spec: WEBHOOK }) }],
  [
    "SubmitJob",
    "a new one",
    { given: ({ store, name }) => addWorkNode(store, name), request: ({ name }) => ({ spec: jobOf(name) }) },
  ],
  ["SetHealthPolicy", "a new one", { request: ACTING_CALLS.SetHealthPolicy?.request ?? (() => ({})) }],
  [
    "ApplyState",
    "what is declared no more",
    {
      given: ({ name, call }) => call("ApplyState", { owner: name, objects: [{ webhook: { name, spec: WEBHOOK } }] }),
      request: ({ name }) => ({ owner: name, prune: true, objects: [] }),
    },
  ],
];

/** Calls that only say what another call would change, keyed by method. */
export const PLANNING_CALLS: Readonly<Record<string, ActingCall>> = {
  PlanState: ACTING_CALLS.ApplyState as ActingCall,
  PlanJob: ACTING_CALLS.SubmitJob as ActingCall,
  PreviewHealthPolicy: {
    given: addPolicy,
    request: ({ name }) => ({ set: { ...scopeOf(name), selector: "gpu", values: VALUES } }),
  },
};
