import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { faultsAtLimit, type Use } from "@rollcall/testkit/limits";
import { settle, until } from "@rollcall/testkit/time";
import type { Executor, Launch, Program } from "./execution/executor.ts";
import { machineClock } from "./execution/keeper-services.ts";
import { Journal } from "./journal/journal.ts";
import { Keeper } from "./keeper.ts";
import { LaunchQueue } from "./launch-queue.ts";
import { SeenStamp } from "./seen-stamp.ts";
import { identityOf } from "./testing/keeper-fixture.ts";

const BOOT = "boot";

/** Programs that start one after the other, each when the test allows it. */
class SlowStarts {
  readonly begun: string[] = [];
  readonly #let = new Map<string, (launch: Launch) => void>();

  readonly executor: Executor = {
    mostLaunching: 1,
    programOf: ({ identity: { id } }) => this.#programOf(id),
    survey: async () => () => false,
    end: async () => {},
    tidy: async () => {},
  };

  fail(id: string): void {
    this.#let.get(id)?.({ ok: false, problem: "it was not to start" });
  }

  #programOf(id: string): Program {
    const nothing = async () => {};
    return {
      launch: () => {
        this.begun.push(id);
        return new Promise((resolve) => this.#let.set(id, resolve));
      },
      abandon: () => {},
      look: async () => ({ kind: "wait" }),
      release: async () => true,
      check: async () => ({ passed: null, message: "" }),
      ...{ signal: nothing, kill: nothing, checkAfterEnd: nothing, remove: nothing },
      close: () => {},
    };
  }
}

describe("an execution that is queued to start", () => {
  let directory: string;
  let keeper: Keeper;
  const starts = new SlowStarts();

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "rollcall-launches-"));
    keeper = await Keeper.open({
      journal: await Journal.open(directory),
      executors: { process: starts.executor, docker: starts.executor },
      seen: await SeenStamp.open(directory, BOOT, machineClock),
      ...{ clock: machineClock, bootId: BOOT, log: silentLogger },
    });
  });

  afterEach(async () => {
    await keeper.close();
    await rm(directory, { recursive: true });
  });

  it("should end at once when it is stopped, and never start", async () => {
    const [first, second, third] = [0, 1, 2].map(() => {
      return identityOf({ task: { case: "process", value: { command: ["true"] } } }, {});
    }) as [Identity, Identity, Identity];
    for (const one of [first, second, third]) await keeper.start(one, "log");
    await until("the first start", () => starts.begun.length === 1);
    expect(keeper.waiting).toBe(2);
    await keeper.stop(second, "log");
    // The second execution has ended, although the first one is still being started.
    expect(phaseOf(keeper, second.id)).toMatchObject({ kind: "ended", cause: "STOPPED" });
    expect(phaseOf(keeper, first.id)).toMatchObject({ kind: "starting" });
    // The queue no longer refers to the second execution, although the first start hangs.
    expect(keeper.waiting).toBe(1);
    starts.fail(first.id);
    await until("the third start", () => starts.begun.length === 2);
    expect(starts.begun).toEqual([first.id, third.id]);
  });
});

type Identity = ReturnType<typeof identityOf>;

function phaseOf(keeper: Keeper, id: string) {
  return keeper.records().find(({ identity }) => identity.id === id)?.state.phase;
}

describe("LaunchQueue", () => {
  it("should launch a limited number at a time, and the next one however a launch ends", async () => {
    const limit = 3;
    const queue = new LaunchQueue(limit, silentLogger);
    let launching = 0;
    const begin = async (): Promise<Use> => {
      let [start, fail] = [() => {}, (_: Error) => {}];
      const ended = new Promise<void>((resolve, reject) => {
        [start, fail] = [resolve, reject];
      });
      let isLaunching = false;
      const remove = queue.add({
        launch: async () => {
          isLaunching = true;
          launching += 1;
          await ended.finally(() => {
            launching -= 1;
          });
        },
      });
      if (!isLaunching) {
        remove();
        throw new Error("it waits");
      }
      const settled = (end: () => void) => async () => {
        end();
        await settle();
      };
      return {
        endings: {
          "its start": settled(() => start()),
          "an error": settled(() => fail(new Error("it cannot be launched"))),
          "its removal while it is launched": settled(() => {
            remove();
            start();
          }),
        },
      };
    };
    const held = () => launching + queue.waiting;
    expect(await faultsAtLimit({ limit, reason: "it waits", begin, held })).toEqual([]);
  });

  it("should start the next launch after one that failed", async () => {
    const queue = new LaunchQueue(1, silentLogger);
    const begun: number[] = [];
    const launch = async (n: number) => {
      begun.push(n);
      throw new Error("it cannot be launched");
    };
    for (const n of [1, 2, 3]) queue.add({ launch: () => launch(n) });
    await until("all launches", () => begun.length === 3);
    expect(queue.waiting).toBe(0);
  });
});
