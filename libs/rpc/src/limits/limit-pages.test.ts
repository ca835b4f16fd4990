import { afterEach, describe, expect, it } from "@jest/globals";
import { describeError } from "@rollcall/errors";
import { ManualClock, until } from "@rollcall/testkit/time";
import { failureOf, RpcFixture } from "../../test/rpc-fixture.ts";

let fixture: RpcFixture;
afterEach(async () => await fixture.stop());

const OVERLOADED = { reason: "OVERLOADED", retryAfterMs: 1_000 };

/** A registry whose listings do not end until the test ends them. */
class BlockedListings {
  readonly clock = new ManualClock();
  readonly #ends: (() => void)[] = [];
  started = 0;

  async start(turns: { readonly atATime: number; readonly waiting: number }): Promise<void> {
    const list = () => {
      this.started += 1;
      return new Promise<object>((resolve) => this.#ends.push(() => resolve({})));
    };
    fixture = await RpcFixture.start({
      registry: { listDeletedNodes: list, deregisterNode: () => ({}) },
      clock: this.clock,
      pageTurns: turns,
    });
  }

  endOne(): void {
    this.#ends.shift()?.();
  }
}

const list = () => fixture.registry().listDeletedNodes({});

describe("methods that read pages", () => {
  it("should be served up to a limit at a time, and refused when too many wait", async () => {
    const held = new BlockedListings();
    await held.start({ atATime: 2, waiting: 1 });
    const first = [list(), list()];
    await until("two to be served", () => held.started === 2);
    const third = list();
    // Wait until the third call waits. The only sleeper is then its time limit.
    await until("one to wait", () => held.clock.sleepers === 1);
    expect(describeError(await failureOf(list()))).toMatchObject(OVERLOADED);
    expect(held.started).toBe(2);
    held.endOne();
    await until("the third to be served", () => held.started === 3);
    held.endOne();
    held.endOne();
    await Promise.all([...first, third]);
  });

  it("should stop waiting after a time, or when their caller does", async () => {
    const held = new BlockedListings();
    await held.start({ atATime: 1, waiting: 2 });
    const first = list();
    await until("one to be served", () => held.started === 1);
    const leaving = new AbortController();
    const left = fixture.registry().listDeletedNodes({}, { signal: leaving.signal });
    const patient = list();
    await until("two to wait", () => held.clock.sleepers === 2);
    leaving.abort();
    await failureOf(left);
    await until("one to wait", () => held.clock.sleepers === 1);
    held.clock.advance(5_000);
    expect(describeError(await failureOf(patient))).toMatchObject(OVERLOADED);
    held.endOne();
    await first;
    // Check that the calls that stopped waiting have not used up a slot.
    const last = list();
    await until("the last to be served", () => held.started === 2);
    held.endOne();
    await last;
  });

  it("should not delay other callers", async () => {
    const held = new BlockedListings();
    await held.start({ atATime: 1, waiting: 0 });
    const first = list();
    await until("one to be served", () => held.started === 1);
    expect(describeError(await failureOf(list()))).toMatchObject(OVERLOADED);
    const registry = fixture.registry();
    expect((await registry.getNode({ node: "n1" })).node?.id).toBe("n1");
    const proof = { nonce: new Uint8Array(16), signature: new Uint8Array(64) };
    await registry.deregisterNode({ nodeId: "n1", proof });
    held.endOne();
    await first;
  });
});
