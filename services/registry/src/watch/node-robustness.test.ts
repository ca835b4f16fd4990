import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { MembershipState, type Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { NodeStatus } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { silentLogger } from "@rollcall/process";
import {
  currentRevision,
  type EventRow,
  getNode,
  openStore,
  readEvents,
  type Store,
  type Node as StoredNode,
} from "@rollcall/store";
import { eventually, seededRandom, startTestPostgres, type TestPostgres } from "@rollcall/testkit";
import { applyEvent, type NodeFacts, nodesText } from "../testing/node-facts.ts";
import { label, observe, operate } from "../testing/operator.ts";
import * as changes from "../testing/record-changes.ts";
import { type NodeBehaviour, ResumingNodeWatcher, wholeNodes } from "../testing/resuming-node-watcher.ts";
import { holdUp } from "../testing/resuming-stream.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { seed } from "../testing/seed.ts";
import { INFO, TestNode } from "../testing/test-node.ts";

// Clients watch through many failures of Postgres and of connections.
jest.setTimeout(300_000);

// In the style of etcd's robustness tests, like robustness.test.ts: clients watch nodes while writers change them and
// everything fails around them. Whenever a message names a revision, the client must have exactly the nodes that the
// log gives for that revision.

const WRITERS = 4;
const NODES = 24;
const LIMITS = { windowEvents: 200, windowNodes: 20, batchNodes: 5, bookmarkMs: 40 };

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startTestPostgres();
});
afterAll(() => postgres.drop());

const open = (applicationName: string): Promise<Store> =>
  openStore({ url: postgres.url, log: silentLogger, applicationName, poolSize: 8 });

/** Pauses all writers between two changes. */
class Pause {
  #passable: Promise<void> = Promise.resolve();
  #release: () => void = () => {};
  #waiting = 0;

  /** Number of paused writers. */
  get waiting(): number {
    return this.#waiting;
  }

  begin(): void {
    this.#passable = new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  end(): void {
    this.#release();
  }

  async pass(): Promise<void> {
    this.#waiting += 1;
    await this.#passable;
    this.#waiting -= 1;
  }
}

/**
 * Machines with long random reports. With shorter ones, the buffers in between would hold everything that a slow
 * reader leaves unread.
 */
function makeMachines() {
  return Array.from({ length: NODES }, (_, index) => {
    const labels = Object.fromEntries(
      Array.from({ length: 60 }, (_, at) => [`label-${at}`, randomBytes(30).toString("hex")]),
    );
    return { node: new TestNode(`n${index}`), info: { ...INFO, labels } };
  });
}

/** Change nodes until the signal aborts, whatever happens to the server. */
async function write(
  store: Store,
  writer: number,
  machines: ReturnType<typeof makeMachines>,
  { ending, pause }: { readonly ending: AbortSignal; readonly pause: Pause },
): Promise<void> {
  const healths = ["HEALTHY", "UNHEALTHY", "UNKNOWN"] as const;
  const random = seededRandom(writer + 1);
  const below = (limit: number) => Math.floor(random() * limit);
  while (!ending.aborted) {
    await pause.pass();
    const machine = machines[below(NODES)];
    if (machine === undefined) return;
    const { node, info } = machine;
    const { id } = node;
    const variant = below(1_000);
    const state = healths[variant % 3] ?? "HEALTHY";
    const infoOf = () => ({ ...info, hostname: `machine-${variant % 3}` });
    const known = async (change: (node: StoredNode) => Promise<void>) => {
      const record = await getNode(store.db, id);
      if (record !== null) await change(record);
    };
    const steps: readonly (() => Promise<unknown>)[] = [
      () => seed(store, [node], { infoOf, manualApproval: variant % 2 === 0 }),
      () => operate(store, id, "approve"),
      () => operate(store, id, "approve"),
      () => observe(store, [id], state),
      () => operate(store, id, variant % 3 === 0 ? "reject" : "approve"),
      () => label(store, id, "zone", variant % 3 === 0 ? "a" : "b"),
      () => label(store, id, "zone", null),
      () => operate(store, id, variant % 5 === 0 ? "delete" : "approve"),
      () => changes.connect(store, id, variant),
      () => changes.connect(store, id, variant),
      () => changes.connect(store, id, variant),
      () => changes.connect(store, id, variant),
      () => known((it) => changes.evaluate(store, it, state, variant)),
      () => known((it) => changes.evaluate(store, it, state, variant)),
      () => known((it) => changes.disconnect(store, it, variant)),
      () => known((it) => changes.settle(store, it, variant)),
      () => changes.ageReboot(store, id),
      () => changes.adopt(store),
      () => changes.cordon(store, id, variant % 2 === 0),
      () => changes.mark(store, id, variant % 3 === 0),
      () => changes.offerKey(store, id),
      () => changes.askForKey(store, id),
      () => changes.runOrchestrator(store, variant),
    ];
    // Ignore refusals and lost responses, because the log shows what has happened.
    await steps[below(steps.length)]?.().catch(() => {});
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const behaviours = (steady: () => bigint): readonly NodeBehaviour[] => [
  { name: "steady" },
  {
    name: "one membership",
    filter: { memberships: [MembershipState.REJECTED] },
    isWanted: ({ membership }) => membership === "REJECTED",
  },
  {
    name: "one status",
    filter: { statuses: [NodeStatus.HEALTHY] },
    isWanted: ({ health }) => health === "HEALTHY",
  },
  {
    name: "one label, leaves",
    filter: { labelSelector: "zone=a" },
    isWanted: ({ zone }) => zone === "a",
    onMessage: (it, messages) => (messages % 7 === 0 ? it.stream.leave() : undefined),
  },
  {
    name: "without a label, loses its connection",
    filter: { labelSelector: "!zone", memberships: [MembershipState.APPROVED] },
    isWanted: ({ zone, membership }) => zone === "" && membership === "APPROVED",
    onMessage: (it, messages) => (messages % 11 === 0 ? it.stream.breakConnection() : undefined),
  },
  { name: "nothing", filter: { labelSelector: "zone=nowhere" }, isWanted: () => false },
  { name: "slow", onMessage: holdUp(steady, 120n) },
];

/** Check that revisions never decrease, and that the client had exactly the matching nodes at each of them. */
function validate({ behaviour, marks }: ResumingNodeWatcher, log: readonly EventRow[]): void {
  const nodes = new Map<string, NodeFacts>();
  let applied = 0;
  let reached = 0n;
  for (const mark of marks) {
    expect(mark.revision).toBeGreaterThanOrEqual(reached);
    reached = mark.revision;
    for (let next = log[applied]; next !== undefined && next.revision <= reached; ) {
      applyEvent(nodes, next);
      applied += 1;
      next = log[applied];
    }
    const expected = nodesText(nodes, behaviour.isWanted);
    expect({ revision: reached, nodes: mark.nodes }).toEqual({
      revision: reached,
      nodes: expected,
    });
  }
}

/** List nodes page by page, and return the revision of the list. */
async function list({ registry }: Rig, filter: NodeBehaviour["filter"] = {}) {
  const nodes: Node[] = [];
  let [pageToken, revision] = ["", 0n];
  do {
    const page = await registry.listNodes({ ...filter, pageSize: 7, pageToken });
    if (pageToken !== "") expect(page.revision).toBe(revision);
    nodes.push(...page.nodes);
    ({ nextPageToken: pageToken, revision } = page);
  } while (pageToken !== "");
  return { nodes: wholeNodes(nodes), revision };
}

describe("watches of nodes under faults", () => {
  it("should give every client exactly the nodes of each revision despite failures and restarts", async () => {
    const [reading, writing] = await Promise.all([open("registry"), open("writers")]);
    let rig: Rig = await startRig({ store: reading }, { watchLimits: LIMITS });
    let last: bigint | null = null;
    const steady = (): bigint => watchers[0]?.revision ?? 0n;
    const watchers: readonly ResumingNodeWatcher[] = behaviours(steady).map(
      (behaviour) =>
        new ResumingNodeWatcher(
          () => rig,
          behaviour,
          () => last,
        ),
    );
    const named = (name: string) => watchers.find((it) => it.behaviour.name === name);
    const watching = watchers.map(({ stream }) => stream.run());
    const machines = makeMachines();
    const ending = new AbortController();
    const pause = new Pause();
    const writers = Array.from({ length: WRITERS }, (_, writer) =>
      write(writing, writer, machines, { ending: ending.signal, pause }),
    );
    // While nothing is written, each client must have exactly the nodes that a list returns, with all fields. A change
    // without an event would make them differ.
    const compareWithLists = async (names: readonly string[]) => {
      pause.begin();
      try {
        await eventually(() => expect(pause.waiting).toBe(WRITERS));
        for (const watcher of watchers.filter(({ behaviour }) => names.includes(behaviour.name))) {
          const { nodes, revision } = await list(rig, watcher.behaviour.filter);
          await eventually(() => expect(watcher.revision).toBeGreaterThanOrEqual(revision));
          expect(watcher.whole).toEqual(nodes);
        }
      } finally {
        pause.end();
      }
    };
    const progressAndCompare = async (rounds: number) => {
      for (let round = 0; round < rounds; round++) {
        await progress(10n);
        await compareWithLists(["steady"]);
      }
      // Leave out the delayed client, because nothing shows when it has caught up.
      const others = watchers.map(({ behaviour }) => behaviour.name);
      await compareWithLists(others.filter((name) => name !== "slow"));
    };
    const progress = async (revisions: bigint) => {
      const from = steady();
      await eventually(() => expect(steady()).toBeGreaterThan(from + revisions));
    };
    try {
      await progress(80n);
      await progressAndCompare(4);
      await postgres.stop();
      await postgres.start();
      await progress(40n);
      const killed = postgres.server.pid;
      postgres.kill();
      await eventually(() => expect(postgres.server.pid).not.toBe(killed));
      await progress(40n);
      // On a busy machine, the server may just have disconnected the watcher as too slow. In that case, the watcher
      // misses the restart, so restart again.
      const isTold = () => named("steady")?.ends.includes("SERVER_SHUTTING_DOWN");
      for (let restarts = 0; restarts < 10 && !isTold(); restarts += 1) {
        await progress(10n);
        const before = rig;
        await before.shutDown();
        rig = await startRig({ store: reading }, { watchLimits: LIMITS });
        await before.close();
      }
      await progress(80n);
      await progressAndCompare(3);
      await eventually(() => expect(named("slow")?.ends).toContain("WATCHER_TOO_SLOW"));
      ending.abort();
      await Promise.all(writers);
      last = await currentRevision(writing.db);
      await Promise.all(watching);

      const { events: log } = await readEvents(writing.db, { after: 0n, limit: 1_000_000 });
      for (const watcher of watchers) validate(watcher, log);
      expect(named("steady")?.ends).toContain("SERVER_SHUTTING_DOWN");
      // No node matches this client's filter, so it has received revisions only in bookmarks.
      expect(named("nothing")?.marks.length).toBeGreaterThan(5);
    } finally {
      ending.abort();
      for (const { stream } of watchers) stream.close();
      await Promise.all(writers);
      await rig.close();
      await Promise.all([reading.close(), writing.close()]);
    }
  });
});
