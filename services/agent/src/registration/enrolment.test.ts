import { describe, expect, it } from "@jest/globals";
import { refuse } from "@rollcall/errors";
import { generateKeyPair } from "@rollcall/identity";
import { silentLogger } from "@rollcall/process";
import { ManualClock } from "@rollcall/testkit/time";
import { createNodeInfoKeeper } from "../info/node-info-keeper.ts";
import { NodeKeys } from "../state/node-keys.ts";
import type { Sentinel } from "../state/sentinel.ts";
import { SMALL_FACTS } from "../testing/agent-harness.ts";
import { FakeControlPlane } from "../testing/fake-control-plane.ts";
import { MemoryKeyFiles, settledKeys } from "../testing/memory-key-files.ts";
import { Enrolment, type EnrolmentOptions } from "./enrolment.ts";
import { JoinTokenError } from "./join-token.ts";

const RUNNING = new AbortController().signal;

function enrolment(
  state: Partial<EnrolmentOptions["state"]> = {},
  { keys = settledKeys(), ...others }: Pick<EnrolmentOptions, "joinToken"> & { readonly keys?: NodeKeys } = {},
) {
  const plane = new FakeControlPlane();
  const written: Sentinel[] = [];
  const description = { agentVersion: "0.1.0", advertiseUrl: "", labels: {} };
  const subject = new Enrolment({
    identity: {
      nodeId: "node-1",
      keys,
      agentVersion: "0.1.0",
      instanceId: "",
      bootId: "",
      machineFingerprint: "",
      wishes: { heartbeatMs: undefined, infoMs: undefined },
    },
    state: {
      readSentinel: async () => undefined,
      writeSentinel: async (sentinel) => void written.push(sentinel),
      removeSentinel: async () => {},
      ...state,
    },
    registrar: plane,
    info: createNodeInfoKeeper({
      facts: { read: async () => SMALL_FACTS },
      description,
      clock: new ManualClock(),
      log: silentLogger,
    }),
    log: silentLogger,
    ...others,
  });
  return { subject, plane, written };
}

describe("Enrolment", () => {
  it("should write the sentinel when something changes, and only then", async () => {
    const { subject, plane, written } = enrolment();
    expect(await subject.register(RUNNING)).toMatchObject({ ok: true, membership: "APPROVED" });
    await subject.register(RUNNING);
    await subject.remember(plane.clusterId, plane.endpoints);
    expect(written).toHaveLength(1);
    await subject.remember("another-cluster", plane.endpoints);
    expect(written).toHaveLength(2);
  });

  it("should keep the endpoints it knows when a registration names none", async () => {
    const { subject, plane } = enrolment();
    await subject.register(RUNNING);
    plane.endpoints = [];
    await subject.register(RUNNING);
    expect(subject.sentinel?.healthEndpoints).toEqual(["10.0.0.1:7701"]);
  });

  it("should remember only a registration of this node and key", async () => {
    const keys = settledKeys();
    const own = { nodeId: "node-1", keyFingerprint: keys.fingerprint, clusterId: "c", healthEndpoints: ["a:1"] };
    const loaded = async (sentinel: Sentinel) => {
      const { subject } = enrolment({ readSentinel: async () => sentinel }, { keys });
      await subject.load();
      return subject.sentinel;
    };
    expect(await loaded(own)).toEqual(own);
    expect(await loaded({ ...own, nodeId: "node-2" })).toBeUndefined();
    expect(await loaded({ ...own, keyFingerprint: settledKeys().fingerprint })).toBeUndefined();
  });

  it("should not write a registration without endpoints to disk", async () => {
    const { subject, plane, written } = enrolment();
    plane.endpoints = [];
    expect((await subject.register(RUNNING)).ok).toBe(true);
    expect(written).toEqual([]);
  });

  it("should register with the node's other key if the server has already accepted it", async () => {
    const [current, next] = [generateKeyPair(), generateKeyPair()];
    const files = new MemoryKeyFiles(current, next);
    const keys = new NodeKeys({ files, log: silentLogger, current, next });
    const { subject, plane } = enrolment({}, { keys });
    const first = keys.toUse() === current ? next : current;
    plane.adopt("node-1", first.publicKey);
    expect((await subject.register(RUNNING)).ok).toBe(true);
    expect(plane.registrations).toHaveLength(2);
    const other = generateKeyPair();
    plane.adopt("node-1", other.publicKey);
    expect(await subject.register(RUNNING)).toMatchObject({ ok: false, end: { reason: "NODE_KEY_MISMATCH" } });
  });

  it("should work without a disk", async () => {
    const broken = async () => {
      throw new Error("input/output error");
    };
    const { subject } = enrolment({
      readSentinel: broken,
      writeSentinel: broken,
      removeSentinel: broken,
    });
    await subject.load();
    expect(subject.sentinel).toBeUndefined();
    expect((await subject.register(RUNNING)).ok).toBe(true);
    expect(subject.sentinel?.clusterId).toBe("cluster-1");
    await subject.forget();
    expect(subject.sentinel).toBeUndefined();
  });

  it("should use the current token", async () => {
    let token = "rcj_first";
    const { subject, plane } = enrolment({}, { joinToken: async () => token });
    await subject.register(RUNNING);
    token = "rcj_second";
    await subject.register(RUNNING);
    const given = plane.registrations.map(({ joinToken }) => joinToken);
    expect(given).toEqual(["rcj_first", "rcj_second"]);
  });

  it("should wait for its token before it joins, and reconnect without one", async () => {
    let isThere = false;
    const joinToken = async () => {
      if (isThere) return "rcj_token";
      throw new JoinTokenError("the file is away");
    };
    const { subject, plane } = enrolment({}, { joinToken });
    const end = { kind: "unreachable", message: "the file is away" };
    expect(await subject.register(RUNNING)).toEqual({ ok: false, end });
    expect(plane.registrations).toEqual([]);
    isThere = true;
    await subject.register(RUNNING);
    isThere = false;
    expect((await subject.register(RUNNING)).ok).toBe(true);
    const given = plane.registrations.map(({ joinToken }) => joinToken);
    expect(given).toEqual(["rcj_token", ""]);
  });

  it.each([
    ["a refusal", refuse("NODE_REJECTED", "no", { retryAfterMs: 5_000 }), "refused"],
    ["a registry that is away", new Error("connect ECONNREFUSED"), "unreachable"],
  ])("should recognize %s", async (_, error, kind) => {
    const { subject, plane } = enrolment();
    plane.registryError = error;
    const outcome = await subject.register(RUNNING);
    expect(outcome).toMatchObject({ ok: false, end: { kind } });
  });
});
