import { createHash, createPrivateKey } from "node:crypto";
import { create, fromJson, type JsonObject, type JsonValue, toBinary } from "@bufbuild/protobuf";
import { ExecutionsSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { ExecutionObservationSchema, ExecutionSpecSchema, ObservedState } from "@rollcall/api/rollcall/work/v1/work_pb";
import { parseAddress } from "@rollcall/config";
import {
  type AgentKeys,
  afterAccepted,
  afterAnswer,
  afterNewKey,
  afterRefused,
  keysOnDisk,
  keyToUse,
  proofText,
} from "@rollcall/domain";
import { keyFingerprint, keyPairFromPem, privateKeyToPem, signProof } from "@rollcall/identity";
import { nodeInfoDigest } from "@rollcall/wire";
import { decideNextStep } from "../connection/next-step.ts";
import { resolveEndpoints } from "../registration/registrar.ts";
import { DEFAULT_PACE, paceAfterAck, silenceLimitMs, silentAtMs } from "../stream/pace.ts";
import { applyExecutions, type LiveWork, NOTHING_DESIRED, planWork, pruneForgotten } from "../work/desired-work.ts";
import { executionsDigest, reportParts } from "../work/report-parts.ts";
import { seeded } from "./walks.ts";

/** The fixed prefix of a private key in PKCS #8, before the seed. */
const PKCS8_PREFIX = "302e020100300506032b657004220420";

/** Signed byte strings, with keys derived from seeds. */
export function proofVectors() {
  const methods = ["health.v1.HealthService/Heartbeat", "registry.v1.RegistryService/RegisterNode"];
  return ["00", "7f", "ff"].flatMap((byte, index) =>
    methods.map((name) => {
      const seed = byte.repeat(32);
      const pem = privateKeyToPem(
        createPrivateKey({ key: Buffer.from(PKCS8_PREFIX + seed, "hex"), format: "der", type: "pkcs8" }),
      );
      const { publicKey, privateKey } = keyPairFromPem(pem);
      const nonce = createHash("sha256")
        .update(name)
        .digest()
        .subarray(0, 16 + index);
      const proof = { method: `/rollcall.${name}`, clusterId: `cluster-${index}`, nodeId: `node-${byte}`, nonce };
      const text = proofText(proof);
      return {
        privateKeySeed: seed,
        publicKey: hex(publicKey),
        fingerprint: keyFingerprint(publicKey),
        ...proof,
        nonce: hex(nonce),
        text,
        signature: hex(signProof(privateKey, text)),
      };
    }),
  );
}

const INFOS: readonly JsonObject[] = [
  {},
  { hostname: "node-1", agentVersion: "1.0", memoryBytes: "17179869184", labels: { zone: "a", rack: "7" } },
  { labels: { "10": "ten", "9": "nine", "01": "text", "4294967294": "index", "4294967295": "text", b: "1", a: "2" } },
  {
    hostname: 'quotes " \\ / and <&> \u2028 \u007f \u0001 \n \t',
    labels: { ä: "1", "\uffff": "2", "😀": "3", Z: "4" },
  },
  {
    os: { family: "linux", architecture: "x64" },
    cpu: { model: "CPU", threads: 8, usableMillis: 7_500 },
    gpus: [{ name: "H100", uuid: "GPU-1", memoryMib: 81_559 }, { index: 1 }],
    vm: { capable: true },
    interfaces: [{ name: "eth0", addresses: ["10.0.0.7/24", "fd00::7/64"] }],
    work: { executors: ["process"], millicores: 8_000, portMin: 20_000, portMax: 32_000 },
  },
];

/** Reports as protobuf JSON, with their digests. */
export function nodeInfoVectors() {
  return INFOS.map((info) => ({ info, digest: hex(nodeInfoDigest(fromJson(NodeInfoSchema, info))) }));
}

/** A machine's executions with their digest, the sizes of report parts, and the digest of a spec. */
export function executionVectors() {
  const sets = [
    [],
    [["e-1", 1]],
    [
      ["b", 2],
      ["a", 10],
      ["ab", 3],
      ["ä", 4],
    ],
    manyExecutions(1_500),
  ] as const;
  const observations = (set: readonly (readonly [string, number])[]) =>
    set.map(([id, change]) =>
      create(ExecutionObservationSchema, { id, change: BigInt(change), message: "m".repeat(99) }),
    );
  const spec = create(ExecutionSpecSchema, {
    job: "web",
    version: 3,
    task: { case: "process", value: { command: ["sh", "-c", "true"] } },
  });
  const bytes = toBinary(ExecutionSpecSchema, spec);
  return {
    digests: sets.map((set) => ({ executions: set, digest: String(executionsDigest(observations(set))) })),
    parts: sets.map((set) => ({
      executions: set.length,
      messageBytes: 99,
      parts: reportParts({ number: 1, whole: true, digest: 0n }, observations(set)).map(
        (it) => it.observations?.length,
      ),
    })),
    spec: { bytes: hex(bytes), digest: createHash("sha256").update(bytes).digest("hex") },
  };
}

function manyExecutions(count: number): readonly (readonly [string, number])[] {
  return Array.from({ length: count }, (_, index) => [`execution-${index}`, index % 7] as const);
}

/**
 * Endpoints as servers return them, and the addresses that agents derive from them, for different hosts of the
 * registry.
 */
export function endpointVectors() {
  const named = [":7701", "10.0.0.1:7701", "h-1.example:1", ":7701", "[fd00::1]:7701", "", ":", ":0", ":99999", "h:0"];
  return ["registry.example", "10.0.0.9", "fd00::9"].map((registryHost) => {
    const server = parseAddress(registryHost.includes(":") ? `[${registryHost}]:7700` : `${registryHost}:7700`);
    if (server === null) throw new Error(registryHost);
    return { registryHost, named, resolved: resolveEndpoints(named, server) };
  });
}

/** The next step after each kind of session end, depending on earlier attempts. */
export function nextStepVectors() {
  const random = seeded(99);
  const ends = [
    { kind: "left" },
    { kind: "silent" },
    { kind: "unreachable", message: "" },
    ...["NODE_REJECTED", "NODE_BANNED", "NODE_KEY_MISMATCH", "JOIN_TOKEN_USED_UP", "SESSION_SUPERSEDED"].map(refused),
    ...["NODE_DELETED", "NODE_NOT_REGISTERED", "OVERLOADED", "STREAM_STALE", "SERVER_SHUTTING_DOWN"].map(refused),
    { ...refused("INTERNAL"), action: "STOP" },
    { ...refused("INTERNAL"), action: "REGISTER" },
    { kind: "refused", message: "" },
  ] as const;
  const before = [0, 1, 4, 5, 9].flatMap((count) =>
    [undefined, 0, 7_000, 200_000].map((retryAfterMs) => ({ count, retryAfterMs })),
  );
  return ends.flatMap((end) =>
    before.map(({ count, retryAfterMs }) => {
      const told = end.kind === "refused" && retryAfterMs !== undefined ? { ...end, retryAfterMs } : end;
      const attempts = {
        failures: count,
        rejectedForMs: Math.floor(random() * 4_000_000),
        backoffMaxMs: 20_000,
        random01: random(),
      };
      const next = decideNextStep(told as Parameters<typeof decideNextStep>[0], attempts);
      return { end: told, attempts, next };
    }),
  );
}

function refused(reason: string) {
  return { kind: "refused", reason, message: "" } as const;
}

/** How long a server can be silent before the connection counts as dead, for different intervals. */
export function paceVectors() {
  return [1_000, 3_000, 15_000, 60_000, 90_000].flatMap((unhealthyAfterMs) =>
    [0, 5, 100, 15_000].map((nextIntervalMs) => {
      const pace = paceAfterAck({ ...DEFAULT_PACE, unhealthyAfterMs }, nextIntervalMs);
      const silentMs = silentAtMs(pace, 1_000, 9_000);
      return {
        unhealthyAfterMs,
        nextIntervalMs,
        heartbeatMs: pace.heartbeatMs,
        limitMs: silenceLimitMs(pace),
        silentMs,
      };
    }),
  );
}

/** Walks through key rotation: events, and the key that is used after each event. */
export function keyVectors() {
  return Array.from({ length: 20 }, (_, seed) => {
    const random = seeded(seed + 31);
    const onDisk = random() < 0.5 ? null : "next-0";
    let keys: AgentKeys = keysOnDisk("key-0", onDisk);
    const steps = Array.from({ length: 12 }, (_each, index) => {
      const key = random() < 0.5 ? keys.current : keys.phase === "settled" ? "other" : keys.next;
      const other = random() < 0.5 ? `next-${index}` : keys.phase === "settled" ? "" : keys.next;
      const kind = (["new", "answer", "accepted", "refused"] as const)[Math.floor(random() * 4)] ?? "new";
      if (kind === "new") keys = afterNewKey(keys, `next-${index}`);
      else if (kind === "answer") keys = afterAnswer(keys, { current: key, next: other || null });
      else if (kind === "accepted") keys = afterAccepted(keys, key);
      else keys = afterRefused(keys, key);
      const event = { kind, key: kind === "new" ? `next-${index}` : key, ...(kind === "answer" && { next: other }) };
      return { event, phase: keys.phase, current: keys.current, toUse: keyToUse(keys) };
    });
    return { current: "key-0", next: onDisk ?? "", steps };
  });
}

/** Desired and actual executions, and the resulting actions. */
export function workVectors() {
  const states = ["RUN", "STOP", "FORGET"];
  return Array.from({ length: 60 }, (_, seed) => {
    const random = seeded(seed + 500);
    const digest = (byte: string) => Buffer.from(byte.repeat(32), "hex");
    const frames = Array.from({ length: 3 }, () => ({
      logId: random() < 0.8 ? "log-1" : "log-2",
      generation: String(Math.floor(random() * 4)),
      whole: random() < 0.6,
      more: random() < 0.2,
      references: ["e-1", "e-2", "e-3", "e-4"].flatMap((id) =>
        random() < 0.6
          ? [
              {
                id,
                desired: `DESIRED_STATE_${states[Math.floor(random() * 3)]}`,
                specDigest: digest(random() < 0.5 ? "aa" : "bb").toString("base64"),
                reported: random() < 0.3,
              },
            ]
          : [],
      ),
    }));
    const kept = ["e-1", "e-2", "e-3"].flatMap((id) =>
      random() < 0.5 ? [{ id, hasEnded: random() < 0.5, logId: random() < 0.8 ? "log-1" : "log-0" }] : [],
    );
    const met = ["e-1", "e-4"].filter(() => random() < 0.3);
    const specs = { [hex(digest("aa"))]: random() < 0.5 ? "0102" : null };
    let desired = NOTHING_DESIRED;
    for (const frame of frames) desired = applyExecutions(desired, fromJson(ExecutionsSchema, frame as JsonValue));
    const has = new Map<string, LiveWork>(
      kept.map(({ id, hasEnded, logId }) => {
        const state = hasEnded ? ObservedState.ENDED : ObservedState.RUNNING;
        return [id, { observation: create(ExecutionObservationSchema, { id, state }), logId }];
      }),
    );
    const pruned = pruneForgotten(desired, has);
    const bytesOf = (text: string | null): Uint8Array | null => (text === null ? null : Buffer.from(text, "hex"));
    const known = new Map(Object.entries(specs).map(([name, text]) => [name, bytesOf(text)] as const));
    const machine = { kept: has, met: new Set(met), specs: known };
    const { actions, wantedSpecs } = planWork(pruned, machine);
    return {
      frames,
      kept,
      met,
      specs,
      logId: pruned.logId,
      generation: String(pruned.generation),
      actions: actions.map((action) => {
        if (action.kind === "forget" || action.kind === "bind") return `${action.kind} ${action.ids.join(",")}`;
        return `${action.kind} ${action.reference.id}${action.kind === "refuse" && action.isLost ? " lost" : ""}`;
      }),
      wantedSpecs,
    };
  });
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}
