import { ServerCredentials } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createBareServer } from "../servers/bare-grpcjs-server.ts";
import { BeatFrames } from "./beat-frames.ts";
import { agentIdentity, LiveAgent } from "./live-agent.ts";

describe("LiveAgent", () => {
  const server = createBareServer();
  let port = 0;

  beforeEach(async () => {
    port = await new Promise<number>((resolve, reject) => {
      server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
  });

  afterEach(() => {
    server.forceShutdown();
  });

  it("should be accepted by grpc-js, get an Ack for each Beat, and report the end of its stream", async () => {
    const beats = 200;
    let acks = 0;
    let whenAcknowledged = (): void => {};
    let whenEnded = (): void => {};
    const agent = new LiveAgent(agentIdentity(0), { port }, new BeatFrames(), {
      onAck: () => {
        acks += 1;
        if (acks === beats) whenAcknowledged();
        else agent.beat();
      },
      onEnd: () => whenEnded(),
    });
    await agent.open();
    await agent.welcome;
    await new Promise<void>((resolve) => {
      whenAcknowledged = resolve;
      agent.beat();
    });
    expect(agent.beats).toBe(beats);

    await new Promise<void>((resolve) => {
      whenEnded = resolve;
      server.forceShutdown();
    });
  });
});
