import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { HelloSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { DEFAULT_HEALTH_POLICY, type Membership } from "@rollcall/domain";
import { silentLogger } from "@rollcall/process";
import type { LiveNode } from "../replica/live-node.ts";
import { bareReplica, HELLO, opening, recordedHealth } from "../testing/bare-replica.ts";
import { AgentSession } from "./agent-session.ts";
import type { AnnouncedAuthorities, AuthorityFeed } from "./announced-authorities.ts";
import type { AgentLink, SessionEnd } from "./session-host.ts";

const MEMBERSHIP: Membership = { state: "APPROVED", sinceMs: 0, reason: "R", message: "", actor: "token:t" };

/** A link that records everything sent; the test controls how far its agent reads. */
class Link implements AgentLink {
  readonly peer = "127.0.0.1:1";
  readonly proofMethod = "/test";
  takesOldBeats = true;
  carriesWork = true;
  isBehind = false;
  isTooSlow = false;
  /** Acks, as [sequence, next interval]. */
  readonly acks: [number, number][] = [];
  readonly sent: string[] = [];
  readonly ends: SessionEnd[] = [];

  sendWelcome(): void {
    this.sent.push("welcome");
  }

  sendAck(sequence: number, nextIntervalMs: number): void {
    this.acks.push([sequence, nextIntervalMs]);
  }

  sendMembership(): void {
    this.sent.push("membership");
  }

  sendSettings(): void {
    this.sent.push("settings");
  }

  sendWork(): void {
    this.sent.push("work");
  }

  sendAuthorities({ digest }: AnnouncedAuthorities): void {
    this.sent.push(`authorities ${digest}`);
  }

  sendMove(): boolean {
    this.sent.push("move");
    return true;
  }

  ended(end: SessionEnd): void {
    this.ends.push(end);
  }

  /** The reason of the farewell; without a farewell, how the session ended. */
  get reason(): string | undefined {
    const [end] = this.ends;
    return end?.kind === "left" ? end.farewell.reason : end?.kind;
  }
}

/** A session that has sent its Hello to a replica and waits for its Welcome. */
function setUp(helloWithinMs: number | null = null, authorities: AuthorityFeed | null = null) {
  const bare = bareReplica();
  const link = new Link();
  const infos: string[] = [];
  const session = new AgentSession(
    link,
    {
      replica: bare.replica,
      clock: bare.clock,
      log: silentLogger,
      onBeat: null,
      work: null,
      authorities,
      onHello: () => {},
      onNodeInfo: (_, { hostname }) => infos.push(hostname),
    },
    { firstSequence: 1, nonce: new Uint8Array(32), helloWithinMs },
  );
  const greet = (hello: MessageInitShape<typeof HelloSchema> = {}) =>
    session.receive({ kind: "hello", hello: create(HelloSchema, hello) });
  const welcome = (changes: Parameters<typeof opening>[1] = {}): LiveNode => {
    const node = bare.replica.take(session, opening(1, changes), HELLO);
    const settings = bare.replica.policies.settings(node, []);
    session.welcome(node, {
      ...{ wallMs: 0, membership: MEMBERSHIP, settings, clusterId: "c" },
      ...{ nodeInfoWanted: false, healthEndpoints: [], runsWork: false },
    });
    return node;
  };
  const beat = (sequence: number, { agentTimeMs = 0n, settingsGeneration = 0, executionsDigest = 0n } = {}) =>
    session.beat({ sequence, settingsGeneration, agentTimeMs, executionsDigest });
  return { ...bare, session, link, infos, greet, welcome, beat };
}

/** An open session that has sent one heartbeat. */
function open() {
  const rig = setUp();
  rig.greet();
  const node = rig.welcome();
  rig.beat(1);
  return { ...rig, node };
}

describe("AgentSession.beat()", () => {
  it("should acknowledge an old Beat again if the link allows it, and refuse it otherwise", () => {
    const { beat, link, replica } = open();
    expect(beat(3)).toBe(true);
    expect(beat(2)).toBe(true);
    link.takesOldBeats = false;
    expect(beat(3)).toBe(false);
    expect(link.acks.map(([sequence]) => sequence)).toEqual([1, 3, 3]);
    expect(replica.beats).toBe(2);
  });

  it("should count an old Beat as a sign of life without any other effect", () => {
    const { beat, node, clock, replica } = open();
    clock.advance(50);
    beat(1);
    expect([node.lastFrameAtMs, replica.beats]).toEqual([clock.nowMs(), 1]);
  });

  it("should know how far the agent's clock is ahead, as last reported", () => {
    const { beat, node, clock } = open();
    beat(2, { agentTimeMs: BigInt(clock.wallMs() + 5_000) });
    expect(node.clockSkewMs).toBe(5_000);
    beat(3);
    expect(node.clockSkewMs).toBe(5_000);
  });

  it("should send no Ack to an agent that is behind, and one for all once it has read", () => {
    const { beat, link, session } = open();
    link.isBehind = true;
    beat(2);
    beat(3);
    expect(link.acks).toEqual([[1, 0]]);
    link.isBehind = false;
    session.drained();
    expect(link.acks.slice(1)).toEqual([[3, 0]]);
  });

  it("should end the session of an agent that is behind for too long", () => {
    const { beat, link } = open();
    link.isBehind = true;
    link.isTooSlow = true;
    beat(2);
    expect(link.reason).toBe("PEER_TOO_SLOW");
  });
});

describe("AgentSession and authorities", () => {
  const announced = (digest: string): AnnouncedAuthorities => ({ certificates: [], digest });

  it("should announce them after the Welcome, and once for each change with the next Beat", () => {
    const feed = { current: announced("aa") };
    const { greet, welcome, beat, link } = setUp(null, feed);
    greet({ authoritiesDigest: Buffer.from("00", "hex") });
    expect(link.sent).toEqual([]);
    welcome();
    beat(1);
    expect(link.sent).toEqual(["welcome", "authorities aa"]);
    feed.current = announced("bb");
    beat(2);
    beat(3);
    expect(link.sent.slice(2)).toEqual(["authorities bb"]);
  });

  it("should announce nothing that the agent already has, to an agent that accepts none, or while they are unknown", () => {
    const sentTo = (hello: MessageInitShape<typeof HelloSchema>, current: AnnouncedAuthorities | null) => {
      const { greet, welcome, beat, link } = setUp(null, { current });
      greet(hello);
      welcome();
      beat(1);
      return link.sent;
    };
    expect(sentTo({ authoritiesDigest: Buffer.from("aa", "hex") }, announced("aa"))).toEqual(["welcome"]);
    expect(sentTo({}, announced("aa"))).toEqual(["welcome"]);
    expect(sentTo({ authoritiesDigest: Buffer.from("aa", "hex") }, null)).toEqual(["welcome"]);
  });
});

describe("AgentSession", () => {
  it("should end the session of an agent that does not read frames that it must not miss", () => {
    for (const send of [
      ({ session }: ReturnType<typeof open>) => session.sendMembership(MEMBERSHIP),
      ({ session, replica, node }: ReturnType<typeof open>) =>
        session.sendSettings(replica.policies.settings(node, [])),
      ({ session }: ReturnType<typeof open>) => session.sendPace(2_000),
    ]) {
      const rig = open();
      rig.link.isTooSlow = true;
      send(rig);
      expect(rig.link.reason).toBe("PEER_TOO_SLOW");
      expect(rig.node).toMatchObject({ stream: null, connection: { state: "DISCONNECTED" } });
    }
  });

  it("should send nothing before the Welcome, which includes everything", () => {
    const { session, link, greet, replica } = setUp();
    greet();
    session.sendMembership(MEMBERSHIP);
    session.sendPace(2_000);
    session.drained();
    expect(session.askMove({ reason: "REPLICA_REBALANCING", message: "", action: "MOVE" })).toBe(false);
    expect([link.sent, link.acks, replica.nodes.size]).toEqual([[], [], 0]);
  });

  it("should repeat the faster pace of a watched node after settings, which replace everything", () => {
    const { session, link, replica, node } = open();
    replica.watched.watch("n1", { touched: () => {}, released: () => {} });
    expect(link.acks.at(-1)).toEqual([1, 2_000]);
    session.sendSettings(replica.policies.settings(node, []));
    expect(link.sent.at(-1)).toBe("settings");
    expect(link.acks).toEqual([
      [1, 0],
      [1, 2_000],
      [1, 2_000],
    ]);
  });

  it("should accept node information, which is also a sign of life", () => {
    const { session, infos, node, clock } = open();
    clock.advance(50);
    session.receive({ kind: "node-info", info: create(NodeInfoSchema, { hostname: "h1" }) });
    expect([infos, node.lastFrameAtMs]).toEqual([["h1"], clock.nowMs()]);
  });

  it("should leave its node without a stream after a break or a goodbye, with the right reason", () => {
    const broken = open();
    broken.session.gone("it broke");
    broken.session.gone("it broke again");
    expect(broken.link.ends).toEqual([{ kind: "gone", message: "it broke" }]);
    expect(broken.node).toMatchObject({ stream: null, connection: { reason: "STREAM_BROKEN" } });
    const left = open();
    left.session.receive({ kind: "goodbye", reason: "maintenance", isRestarting: false });
    expect(left.link.reason).toBe("goodbye");
    expect(left.node).toMatchObject({ stream: null, health: { state: "UNHEALTHY", reason: "AGENT_SHUTDOWN" } });
    expect(left.beat(2)).toBe(false);
  });

  it("should change nothing but the connection of a node whose agent restarts", () => {
    const { session, link, node, pass } = open();
    session.receive({ kind: "goodbye", reason: "upgrade", isRestarting: true });
    expect(link.reason).toBe("goodbye");
    expect(node).toMatchObject({
      stream: null,
      connection: { state: "DISCONNECTED", reason: "AGENT_RESTARTING", message: "its agent is restarting: upgrade" },
      health: { state: "HEALTHY" },
    });
    pass(DEFAULT_HEALTH_POLICY.unhealthyAfterMs + 1_000);
    expect(node.health).toMatchObject({ state: "UNHEALTHY", reason: "HEARTBEATS_MISSED" });
  });

  it("should leave a node without a stream whose agent is gone before the Welcome", () => {
    const { session, greet, welcome, link, replica } = setUp();
    greet();
    session.gone("it broke");
    const node = welcome();
    expect(link.sent).toEqual([]);
    expect(node).toMatchObject({ stream: null, connection: { state: "DISCONNECTED" } });
    expect([session.openEpoch, replica.nodes.sessions]).toEqual([null, 0]);
  });
});

describe("AgentSession, in time", () => {
  it("should end a stream without a Hello in time, and wait for the store after the Hello", () => {
    const silent = setUp(10_000);
    silent.pass(9_900);
    expect(silent.link.ends).toEqual([]);
    silent.pass(200);
    expect(silent.link.reason).toBe("DEADLINE_EXCEEDED");
    const greeted = setUp(10_000);
    greeted.greet();
    greeted.pass(30_000);
    expect(greeted.link.ends).toEqual([]);
  });

  it("should end a session whose node is not healthy and sends no heartbeat, and no other", () => {
    const ill = { detectedHealth: recordedHealth("UNHEALTHY") };
    const mute = setUp();
    mute.greet();
    mute.welcome(ill);
    mute.pass(60_100);
    expect(mute.link.reason).toBe("STREAM_STALE");
    const well = setUp();
    well.greet();
    const node = well.welcome(ill);
    well.pass(50_000);
    well.beat(1);
    well.pass(50_000);
    expect([well.link.ends, node.health.state]).toEqual([[], "HEALTHY"]);
  });
});
