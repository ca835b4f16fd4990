import { describe, expect, it } from "@jest/globals";
import type { Transition } from "@rollcall/store";
import { ManualClock, settle } from "@rollcall/testkit/time";
import { BareStream, bareReplica, HELLO, NO_METRICS, opening } from "../testing/bare-replica.ts";
import { callToWrite, TransitionWriter, writeTransitionsTask } from "./transition-writer.ts";

const LOST = new Error("the answer is lost");

/** Create a replica that holds n1, healthy and connected, and a writer of its transitions. */
function setUp() {
  const bare = bareReplica();
  const stream = new BareStream();
  const node = bare.replica.take(stream, opening(1), HELLO);
  const written: Transition[][] = [];
  const followed: bigint[] = [];
  const openingNow = new Set<string>();
  /** The results of the next writes. By default, the replica still owns all nodes. */
  const answers: (() => ReadonlySet<string>)[] = [];
  const writer = new TransitionWriter({
    record: {
      writeTransitions: async (transitions) => {
        written.push([...transitions]);
        return answers.shift()?.() ?? new Set(transitions.map(({ nodeId }) => nodeId));
      },
      currentRevision: async () => 42n,
      caughtUpTo: async (revision) => {
        followed.push(revision);
      },
    },
    replica: bare.replica,
    metrics: NO_METRICS,
    isOpening: (nodeId) => openingNow.has(nodeId),
    groupOf: () => "zone=a",
  });
  const lose = () => {
    bare.replica.broken(node, stream);
    writer.add(node);
  };
  const states = () =>
    written.map((batch) => batch.map(({ connection, health }) => [connection?.state, health?.state]));
  return { ...bare, node, writer, written, followed, openingNow, answers, lose, states };
}

const noneHeld = () => new Set<string>();

describe("TransitionWriter.flush()", () => {
  it("should write changes with the epoch and the group, and nothing the second time", async () => {
    const { writer, written, node, lose } = setUp();
    lose();
    await writer.flush();
    writer.add(node);
    await writer.flush();
    expect(written).toHaveLength(1);
    expect(written[0]).toMatchObject([
      { nodeId: "n1", epoch: 1, group: "zone=a", connection: { state: "DISCONNECTED", reason: "STREAM_BROKEN" } },
    ]);
    expect(written[0]?.[0]?.health).toBeUndefined();
    expect(writer.queued).toBe(0);
  });

  it("should write both states again after a lost response: either may be in the store", async () => {
    const { writer, answers, lose, states } = setUp();
    answers.push(() => {
      throw LOST;
    });
    lose();
    await expect(writer.flush()).rejects.toBe(LOST);
    expect(writer.queued).toBe(1);
    await writer.flush();
    expect(states()).toEqual([[["DISCONNECTED", undefined]], [["DISCONNECTED", "HEALTHY"]]]);
    await writer.flush();
    expect(states()).toHaveLength(2);
  });

  it("should write changes that happen during a write", async () => {
    const { writer, answers, lose, pass, states } = setUp();
    answers.push(() => {
      pass(60_100);
      return new Set(["n1"]);
    });
    lose();
    await writer.flush();
    expect(states()).toEqual([[["DISCONNECTED", undefined]], [[undefined, "UNHEALTHY"]]]);
  });

  it("should not overwrite the stored state of a newer session", async () => {
    const { writer, answers, lose, replica, node, written } = setUp();
    answers.push(() => {
      replica.take(new BareStream(), opening(2), HELLO);
      return new Set(["n1"]);
    });
    lose();
    await writer.flush();
    expect(node.writtenConnection.state).toBe("CONNECTED");
    expect(written).toHaveLength(1);
  });

  it("should release a node of another owner after reading the log, which may say why", async () => {
    const { writer, answers, lose, replica, followed } = setUp();
    answers.push(noneHeld);
    lose();
    await writer.flush();
    expect(followed).toEqual([42n]);
    expect(replica.nodes.size).toBe(0);
  });

  it("should not release a node with a newer session that is open or opening", async () => {
    const being = setUp();
    being.answers.push(noneHeld);
    being.openingNow.add("n1");
    being.lose();
    await being.writer.flush();
    expect(being.replica.nodes.size).toBe(1);
    const opened = setUp();
    opened.answers.push(() => {
      opened.replica.take(new BareStream(), opening(2), HELLO);
      return noneHeld();
    });
    opened.lose();
    await opened.writer.flush();
    expect(opened.replica.nodes.sessions).toBe(1);
  });

  it("should write 500 nodes at a time", async () => {
    const { writer, replica, written } = setUp();
    for (let index = 0; index < 501; index += 1) {
      const stream = new BareStream();
      const node = replica.take(stream, opening(1, { nodeId: `m${index}` }), HELLO);
      replica.broken(node, stream);
      writer.add(node);
    }
    await writer.flush();
    expect(written.map(({ length }) => length)).toEqual([500, 1]);
  });
});

describe("callToWrite()", () => {
  /** Start the task, and record its writes. */
  async function running() {
    const clock = new ManualClock();
    const { writer, written, node, lose } = setUp();
    const task = writeTransitionsTask(writer, { clock, gatherMs: 100 });
    const ending = new AbortController();
    const done = task.run(ending.signal, () => {}).catch(() => {});
    // The first tick runs immediately; wait until the pause after it has ended.
    await clock.pass(150);
    const stop = async () => {
      ending.abort();
      await done;
    };
    return { clock, written, node, lose, task, stop };
  }

  it("should let a return wait for others, for a limited time", async () => {
    const { clock, written, node, lose, task, stop } = await running();
    lose();
    callToWrite(task, { connection: { ...node.connection, state: "CONNECTED" }, health: node.health });
    await clock.pass(99);
    expect(written).toHaveLength(0);
    await clock.pass(1);
    expect(written).toHaveLength(1);
    await stop();
  });

  it("should not let a loss wait, nor changes that waited before it", async () => {
    const { clock, written, node, lose, task, stop } = await running();
    callToWrite(task, node);
    await clock.pass(10);
    lose();
    callToWrite(task, node);
    await settle();
    expect(written).toHaveLength(1);
    await stop();
  });
});
