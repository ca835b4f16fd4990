import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { LogRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { faultsAtLimit, type Use } from "@rollcall/testkit/limits";
import { ManualClock, settle } from "@rollcall/testkit/time";
import type { OutputPiece } from "./output-source.ts";
import type { OutputCall } from "./send-output.ts";
import { SessionWork, type WorkFeed } from "./session-work.ts";

const READINGS = 16;
const PIECE: OutputPiece = { offset: 0n, data: new Uint8Array(), isEnd: false, isCut: false, times: [] };

/** The keeper's response to a request for output: a piece, nothing, or an error. */
type Said = OutputPiece | null | Error;

/** A session whose readings follow outputs. An output grows only when a test adds to it. */
class FollowedOutputs {
  readonly clock = new ManualClock();
  readonly #said = new Map<string, Said>();
  readonly work: SessionWork;
  #asked = 0;

  constructor() {
    const read = async (id: string) => {
      const said = this.#said.get(id);
      if (said === undefined) return PIECE;
      if (said instanceof Error) throw said;
      return said;
    };
    this.work = new SessionWork({ output: { read } } as unknown as WorkFeed, this.clock);
  }

  async begin(): Promise<Use> {
    this.#asked += 1;
    const executionId = `e${this.#asked}`;
    const failures: string[] = [];
    let isOpen = true;
    const call: OutputCall = {
      send: async ({ failure = "" }) => {
        if (failure !== "") failures.push(failure);
        return isOpen;
      },
      end: () => {},
    };
    const request = create(LogRequestSchema, { token: Buffer.from(executionId), executionId, stream: 1, follow: true });
    this.work.hear({ kind: "log-request", request }, () => call);
    await settle();
    if (failures[0] !== undefined) throw new Error(failures[0]);
    const say = async (said: Said) => {
      this.#said.set(executionId, said);
      await this.clock.pass(1_000);
    };
    const more = { ...PIECE, data: Buffer.from("x") };
    return {
      endings: {
        "the end of the output": () => say({ ...PIECE, isEnd: true }),
        "output that is gone": () => say(null),
        "an error of the keeper": () => say(new Error("the keeper is away")),
        "a server that has ended the call": () => {
          isOpen = false;
          return say(more);
        },
      },
    };
  }
}

describe("outputs that an agent sends", () => {
  it("should be limited, whichever way they end", async () => {
    const outputs = new FollowedOutputs();
    const faults = await faultsAtLimit({
      ...{ limit: READINGS, reason: "TOO_MANY_STREAMS" },
      begin: () => outputs.begin(),
      held: () => outputs.clock.sleepers,
    });
    expect(faults).toEqual([]);
  });

  it("should not count those whose call cannot be opened", async () => {
    const outputs = new FollowedOutputs();
    for (let count = 0; count < 3 * READINGS; count += 1) {
      const request = create(LogRequestSchema, { executionId: "e", stream: 1, follow: true });
      const news = { kind: "log-request", request } as const;
      const hear = () =>
        outputs.work.hear(news, () => {
          throw new Error("the connection has just ended");
        });
      expect(hear).toThrow("the connection has just ended");
    }
    for (let count = 0; count < READINGS; count += 1) await outputs.begin();
    expect(outputs.clock.sleepers).toBe(READINGS);
    outputs.work.end();
  });

  it("should all end with their session", async () => {
    const outputs = new FollowedOutputs();
    for (let count = 0; count < READINGS; count += 1) await outputs.begin();
    expect(outputs.clock.sleepers).toBe(READINGS);
    outputs.work.end();
    await settle();
    expect(outputs.clock.sleepers).toBe(0);
  });
});
