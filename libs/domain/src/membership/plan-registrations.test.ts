import { describe, expect, it } from "@jest/globals";
import type { Membership } from "../states.ts";
import type { JoiningToken } from "./admission.ts";
import {
  type Applicant,
  planRegistrations,
  type RegisteredNode,
  type RegistrationFacts,
} from "./plan-registrations.ts";

let nonces = 0;

function registration(nodeId: string, changes: Partial<Applicant> = {}): Applicant {
  nonces += 1;
  return {
    nodeId,
    fingerprint: `key of ${nodeId}`,
    nonce: `nonce ${nonces}`,
    report: report("as ever"),
    joinToken: null,
    from: `address of ${nodeId}`,
    ...changes,
  };
}

function report(digest: string): Applicant["report"] {
  const summary = { cores: 0, memoryBytes: 0, diskBytes: 0, gpus: 0 };
  return { info: {}, digest, summary, agentLabels: {} };
}

function known(id: string, changes: Partial<RegisteredNode> = {}): RegisteredNode {
  return {
    id,
    type: "COMPUTE",
    membership: membership("APPROVED"),
    connection: { state: "CONNECTED" },
    keyFingerprint: `key of ${id}`,
    nextKeyFingerprint: null,
    infoDigest: "as ever",
    labels: [],
    ...changes,
  };
}

function membership(state: Membership["state"], message = ""): Membership {
  return { state, sinceMs: 1, reason: "BEFORE", message, actor: "token:x" };
}

function plan(batch: readonly Applicant[], facts: Partial<RegistrationFacts> = {}) {
  const nodes = facts.nodes ?? [];
  const keyed = nodes.flatMap(({ id, keyFingerprint }) =>
    keyFingerprint === null ? [] : [[keyFingerprint, id] as const],
  );
  return planRegistrations(batch, {
    nodes,
    keyOwners: new Map(keyed),
    freshNonces: new Set(batch.map(({ nonce }) => nonce)),
    bans: [],
    tokens: new Map(),
    enforcement: "none",
    cluster: "c1c1c1c1",
    manualApproval: false,
    atMs: 5,
    ...facts,
  });
}

/** Return the result of each registration in one word. */
function words(planned: ReturnType<typeof plan>): readonly string[] {
  return planned.results.map((result) => {
    if (!result.ok) return result.refusal.reason;
    return result.created ? "created" : "returned";
  });
}

describe("planRegistrations()", () => {
  it("should create new nodes, in the order of the batch", () => {
    const planned = plan([registration("b"), registration("a")]);
    expect(words(planned)).toEqual(["created", "created"]);
    expect(planned.creations.map((it) => it.applicant.nodeId)).toEqual(["b", "a"]);
    expect(planned.events.map(({ subject }) => subject)).toEqual(["b", "a"]);
    expect(planned.creations[0]?.membership).toEqual({
      state: "APPROVED",
      reason: "AUTO_APPROVED",
      actor: "system",
      message: "",
      sinceMs: 5,
    });
  });

  it("should change nothing for a known node with the same information", () => {
    const planned = plan([registration("a")], { nodes: [known("a")] });
    expect(words(planned)).toEqual(["returned"]);
    expect(planned).toMatchObject({ creations: [], events: [] });
    expect(planned.reports.size).toBe(0);
  });

  it("should let one of two create a node, and the other find it", () => {
    const planned = plan([
      registration("a", { report: report("first") }),
      registration("a", { report: report("second") }),
    ]);
    expect(words(planned)).toEqual(["created", "returned"]);
    expect(planned.creations.map((it) => it.applicant.report.digest)).toEqual(["second"]);
    expect(planned.events).toHaveLength(1);
    expect(planned.reports.size).toBe(0);
  });

  it("should make a next key the node's own by its first use, and refuse the one before from then on", () => {
    const nodes = [known("a", { nextKeyFingerprint: "next" })];
    const batch = [
      registration("a"),
      registration("a", { fingerprint: "next" }),
      registration("a", { fingerprint: "next" }),
      registration("a"),
    ];
    const planned = plan(batch, { nodes });
    expect(words(planned)).toEqual(["returned", "returned", "returned", "NODE_KEY_MISMATCH"]);
    expect(planned.promotions).toEqual([{ nodeId: "a", fingerprint: "next" }]);
    expect(planned.events.map(({ type }) => type)).toEqual(["node.key.rotated"]);
  });

  it("should refuse the second of two that want one id with different keys", () => {
    const planned = plan([registration("a"), registration("a", { fingerprint: "another" })]);
    expect(words(planned)).toEqual(["created", "NODE_KEY_MISMATCH"]);
  });

  it("should refuse the second of two that want different ids with one key", () => {
    const planned = plan([registration("a"), registration("b", { fingerprint: "key of a" })]);
    expect(words(planned)).toEqual(["created", "NODE_KEY_IN_USE"]);
    expect(planned.creations).toHaveLength(1);
  });

  it("should refuse a new id that differs only in case from one that exists, or is created before it", () => {
    const pair = plan([registration("a-1"), registration("A-1"), registration("a-1")]);
    expect(words(pair)).toEqual(["created", "NODE_ID_CONFUSABLE", "returned"]);
    const known1 = { nodes: [known("A-1")] };
    const late = plan([registration("a-1"), registration("A-1")], known1);
    expect(words(late)).toEqual(["NODE_ID_CONFUSABLE", "returned"]);
    expect(late.creations).toEqual([]);
    expect(late.results[0]).toMatchObject({
      refusal: { metadata: { node: "a-1", existing: "A-1" } },
    });
    const orchestrator = known("Host-7700", { type: "ORCHESTRATOR", keyFingerprint: null });
    const host = plan([registration("host-7700")], { nodes: [orchestrator] });
    expect(words(host)).toEqual(["NODE_ID_CONFUSABLE"]);
  });

  it("should let nodes of a pair that exists already return, each as itself", () => {
    const nodes = [known("A-1"), known("a-1")];
    const planned = plan([registration("a-1"), registration("A-1"), registration("A-1", { fingerprint: "x" })], {
      nodes,
    });
    expect(words(planned)).toEqual(["returned", "returned", "NODE_KEY_MISMATCH"]);
    expect(words(plan([registration("a-1")], { nodes: [known("a-1")] }))).toEqual(["returned"]);
  });

  it("should keep a new node out by a ban on its id in any case, and a known one by that on its own", () => {
    const bans = [{ id: 1n, nodeId: "A-1", fingerprint: null, reason: "", actor: "token:t", atMs: 0 }];
    expect(words(plan([registration("a-1")], { bans }))).toEqual(["NODE_BANNED"]);
    const nodes = [known("A-1"), known("a-1")];
    const planned = plan([registration("a-1"), registration("A-1")], { bans, nodes });
    expect(words(planned)).toEqual(["returned", "NODE_BANNED"]);
  });

  it("should take what a known node said last", () => {
    const say = (digest: string) => registration("a", { report: report(digest) });
    const nodes = [known("a")];
    expect(plan([say("x"), say("y")], { nodes }).reports.get("a")?.digest).toBe("y");
    expect(plan([say("x"), say("as ever")], { nodes }).reports.size).toBe(0);
  });

  it("should use each nonce once, and the first one", () => {
    const first = registration("a");
    const second = registration("b", { nonce: first.nonce });
    const used = registration("c");
    const planned = plan([first, second, used], {
      freshNonces: new Set([first.nonce]),
    });
    expect(words(planned)).toEqual(["created", "CHALLENGE_INVALID", "CHALLENGE_INVALID"]);
  });

  it("should tell only a node with its own key that it was rejected", () => {
    const nodes = [known("a", { membership: membership("REJECTED", "noise") })];
    const planned = plan([registration("a"), registration("a", { fingerprint: "other" })], {
      nodes,
    });
    expect(words(planned)).toEqual(["NODE_REJECTED", "NODE_KEY_MISMATCH"]);
    expect(planned).toMatchObject({ creations: [], events: [] });
  });

  it("should refuse a node that takes the name of an orchestrator, dead or alive", () => {
    for (const state of ["CONNECTED", "DISCONNECTED"] as const) {
      const nodes = [known("a", { type: "ORCHESTRATOR", keyFingerprint: null, connection: { state } })];
      expect(words(plan([registration("a")], { nodes }))).toEqual(["NODE_IS_ORCHESTRATOR"]);
    }
  });

  it("should serve the neighbours of those that are refused", () => {
    const nodes = [known("r", { membership: membership("REJECTED") }), known("k")];
    const batch = ["a", "r", "b", "k", "c"].map((id) => registration(id));
    expect(words(plan(batch, { nodes }))).toEqual(["created", "NODE_REJECTED", "created", "returned", "created"]);
  });
});

/** Create a token with an unlimited number of uses, unless `changes` limits them. */
function token(id: string, changes: Partial<JoiningToken> = {}): JoiningToken {
  return {
    ...{ id, maxUses: null, uses: 0, nodeNamePattern: "", isExpired: false, revocation: null },
    ...{ labels: {}, preauthorized: false, ephemeral: false },
    ...changes,
  };
}

function given(id: string, isGenuine = true): Applicant["joinToken"] {
  return { kind: "own", id, isGenuine };
}

describe("planRegistrations() with join tokens", () => {
  const tokens = new Map([
    ["one", token("one", { maxUses: 1 })],
    ["many", token("many")],
    ["strong", token("strong", { preauthorized: true })],
  ]);

  it("should count the uses of a batch, in its order", () => {
    const batch = ["a", "b", "c"].map((id) => registration(id, { joinToken: given("one") }));
    const planned = plan(batch, { tokens });
    expect(words(planned)).toEqual(["created", "JOIN_TOKEN_USED_UP", "JOIN_TOKEN_USED_UP"]);
    expect(planned.uses).toEqual([{ tokenId: "one", nodeId: "a", fingerprint: "key of a" }]);
  });

  it("should take the same node again in a batch for the same use", () => {
    const ask = () => registration("a", { joinToken: given("one") });
    const planned = plan([ask(), ask()], { tokens });
    expect(words(planned)).toEqual(["created", "returned"]);
    expect(planned.uses).toHaveLength(1);
  });

  it("should spend nothing on a node that is refused for another reason", () => {
    const joinToken = given("one");
    const batch = [
      registration("taken", { fingerprint: "other", joinToken }),
      registration("banned", { joinToken }),
      registration("new", { joinToken }),
    ];
    const ban = { id: 1n, nodeId: "banned", fingerprint: null, reason: "", actor: "x", atMs: 1 };
    const planned = plan(batch, { tokens, nodes: [known("taken")], bans: [ban] });
    expect(words(planned)).toEqual(["NODE_KEY_MISMATCH", "NODE_BANNED", "created"]);
  });

  it("should refuse a banned key under any name, known or new", () => {
    const ban = { id: 1n, nodeId: null, fingerprint: "key of a", reason: "", actor: "x", atMs: 1 };
    const batch = [registration("a"), registration("b", { fingerprint: "key of a" })];
    expect(words(plan(batch, { bans: [ban] }))).toEqual(["NODE_BANNED", "NODE_BANNED"]);
    const nodes = [known("a")];
    expect(words(plan([registration("a")], { nodes, bans: [ban] }))).toEqual(["NODE_BANNED"]);
  });

  it("should approve in its batch what this batch made wait", () => {
    const batch = [registration("a", { joinToken: given("many") }), registration("a", { joinToken: given("strong") })];
    const planned = plan(batch, { tokens, manualApproval: true });
    expect(words(planned)).toEqual(["created", "returned"]);
    expect(planned.creations).toMatchObject([
      { membership: { state: "APPROVED", reason: "JOIN_TOKEN" }, token: { id: "strong" } },
    ]);
    expect(planned.approvals).toEqual([]);
    expect(planned.events.map(({ type }) => type)).toEqual(["node.registered", "node.approved"]);
    expect(planned.uses.map(({ tokenId }) => tokenId)).toEqual(["many", "strong"]);
  });

  it("should refuse a token with another secret like one that does not exist", () => {
    const [forged, unknown] = plan(
      [registration("a", { joinToken: given("many", false) }), registration("b", { joinToken: given("no-such") })],
      { tokens },
    ).results;
    expect(forged).toMatchObject({ refusal: { reason: "JOIN_TOKEN_INVALID", metadata: { node: "a" } } });
    expect(unknown).toMatchObject({ refusal: { reason: "JOIN_TOKEN_INVALID", metadata: { node: "b" } } });
  });

  it("should list all that an approval by a token changes of a known node", () => {
    const rich = token("rich", { preauthorized: true, ephemeral: true, labels: { rack: "7" } });
    const waiting = known("a", {
      membership: membership("PENDING"),
      labels: [
        { key: "rack", value: "1", tier: "agent" },
        { key: "old", value: "1", tier: "token" },
      ],
    });
    const planned = plan([registration("a", { joinToken: given("rich"), from: "192.0.2.9" })], {
      tokens: new Map([["rich", rich]]),
      nodes: [waiting],
    });
    expect(planned.approvals.map(({ effects }) => effects)).toMatchObject([
      [
        { kind: "membership", membership: { state: "APPROVED", actor: "join-token:rich" } },
        { kind: "accept-hardware" },
        { kind: "joining", joining: { tokenId: "rich", ephemeral: true, withoutToken: false, from: "192.0.2.9" } },
        { kind: "labels", tier: "token", labels: [{ key: "rack", value: "7", tier: "token" }] },
      ],
    ]);
    expect(planned.events).toMatchObject([
      { type: "node.approved", after: { joinToken: "rich", joinedFrom: "192.0.2.9" } },
      { type: "node.labels.changed", before: { labels: { rack: "1", old: "1" } }, after: { labels: { rack: "7" } } },
    ]);
  });

  it("should approve hardware only of approved nodes, and record who joined without a token if that causes a warning", () => {
    const warned = plan([registration("a")], { enforcement: "warn", manualApproval: true });
    expect(warned.creations).toMatchObject([{ approvedHardware: null, joining: { withoutToken: true } }]);
    const admitted = plan([registration("a")]);
    expect(admitted.creations).toMatchObject([{ approvedHardware: {}, joining: { withoutToken: false } }]);
  });

  it("should keep the key that a node used next when a token approves it in the same call", () => {
    const waiting = known("a", { membership: membership("PENDING"), nextKeyFingerprint: "next" });
    const ask = () => registration("a", { fingerprint: "next", joinToken: given("strong") });
    const planned = plan([ask(), ask()], { tokens, nodes: [waiting] });
    expect(words(planned)).toEqual(["returned", "returned"]);
    expect(planned.promotions).toHaveLength(1);
  });
});

describe("planRegistrations(), all that follows", () => {
  const rich = token("rich", { ephemeral: true, labels: { rack: "7" } });
  const tokens = new Map([["rich", rich]]);
  const machine = (changes: Partial<Applicant> = {}) =>
    registration("a", { report: { ...report("d"), info: { cpuCores: 4, hostname: "h" } }, ...changes });

  it("should create a node by a token, with its event", () => {
    const applicant = machine({ joinToken: given("rich") });
    const { creations, events } = plan([applicant], { tokens });
    const approved = { state: "APPROVED", reason: "AUTO_APPROVED", actor: "system", message: "", sinceMs: 5 };
    expect(creations).toMatchObject([
      {
        ...{ applicant, token: rich, membership: approved, tokenLabels: { rack: "7" } },
        joining: { tokenId: "rich", ephemeral: true, withoutToken: false, from: "address of a" },
      },
    ]);
    expect(events).toMatchObject([
      {
        ...{ type: "node.registered", subject: "a", actor: "node:a", message: "", before: null },
        after: { membership: "APPROVED", joinToken: "rich", joinedFrom: "address of a" },
      },
    ]);
  });

  it("should create a node without a token, and without labels of one", () => {
    const { creations, events } = plan([machine({ from: null })]);
    expect(creations).toMatchObject([
      { token: null, tokenLabels: {}, joining: { tokenId: null, ephemeral: false, withoutToken: false, from: null } },
    ]);
    expect(events[0]?.after).toEqual({ membership: "APPROVED" });
  });

  it("should find in its batch a machine that it has just created, as one that is not connected", () => {
    const other = machine({ fingerprint: "other" });
    expect(words(plan([machine(), machine(), other]))).toEqual(["created", "returned", "NODE_KEY_MISMATCH"]);
    const key = { fingerprint: "key of b" };
    expect(words(plan([registration("b"), registration("c", key)]))).toEqual(["created", "NODE_KEY_IN_USE"]);
  });

  it("should report the key of the request, and the node's key", () => {
    const nodes = [known("a", { nextKeyFingerprint: "next" })];
    expect(plan([registration("a", { fingerprint: "next" })], { nodes }).events).toMatchObject([
      { subject: "a", before: { keyFingerprint: "key of a" }, after: { keyFingerprint: "next" } },
    ]);
  });

  it.each([
    [known("a"), { fingerprint: "x" }, { node: "a" }, /node a is registered with another key.*delete the node/],
    [known("b"), { fingerprint: "key of b" }, { node: "a", owner: "b" }, /key of node a is registered for node b/],
  ] as const)("should say what to do about a key", (node, changes, metadata, message) => {
    expect(plan([registration("a", changes)], { nodes: [node] }).results).toMatchObject([
      { refusal: { metadata, message: expect.stringMatching(message) } },
    ]);
  });

  it("should not approve again a node that a token could approve, nor for a node that waits without one", () => {
    const strong = new Map([["strong", token("strong", { preauthorized: true })]]);
    const ask = registration("a", { joinToken: given("strong") });
    expect(plan([ask], { tokens: strong, nodes: [known("a")] })).toMatchObject({ approvals: [], uses: [], events: [] });
    const waiting = { nodes: [known("a", { membership: membership("PENDING") })] };
    expect(plan([registration("a")], waiting)).toMatchObject({ approvals: [], uses: [], events: [] });
  });

  it("should ask for a new challenge in words", () => {
    const results = plan([registration("a")], { freshNonces: new Set() }).results;
    expect(results).toMatchObject([{ refusal: { message: "the challenge was already used; request a new one" } }]);
  });

  it("should refuse the name of a control-plane process as such, although it is banned", () => {
    const nodes = [known("a", { type: "ORCHESTRATOR", keyFingerprint: null })];
    const bans = [{ id: 1n, nodeId: "a", fingerprint: null, reason: "", actor: "x", atMs: 1 }];
    expect(words(plan([registration("a")], { nodes, bans }))).toEqual(["NODE_IS_ORCHESTRATOR"]);
  });
});
