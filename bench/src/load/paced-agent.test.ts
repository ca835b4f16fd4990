import { ServerCredentials } from "@grpc/grpc-js";
import { describe, expect, it } from "@jest/globals";
import { createBareServer } from "../servers/bare-grpcjs-server.ts";
import { BeatFrames } from "./beat-frames.ts";
import { agentIdentity } from "./live-agent.ts";
import { PacedAgent, type PacedWork } from "./paced-agent.ts";

describe("PacedAgent", () => {
  it("should start its session before it handles frames that arrive with the Welcome", async () => {
    const server = createBareServer({ told: [{ case: "executions", value: { logId: "log-1", whole: true } }] });
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    const heard: string[] = [];
    let whenTold = (): void => {};
    const told = new Promise<void>((resolve) => {
      whenTold = resolve;
    });
    const work: PacedWork = {
      toldDigest: 0n,
      opened: () => heard.push("opened"),
      receive: (frame) => {
        heard.push(String(frame.case));
        whenTold();
      },
      seen: () => {},
      closed: () => {},
    };
    const terms = { ports: [port], isSpread: false, intervalMs: 60_000, patienceMs: 60_000 };
    const agent = new PacedAgent(agentIdentity(0), new BeatFrames(), terms, { retryAtMs: 0, work });
    agent.open(performance.now());
    await told;
    expect(heard).toEqual(["opened", "executions"]);
    agent.kill();
    server.forceShutdown();
  });
});
