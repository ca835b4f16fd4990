import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { ServerCredentials } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { HeartbeatResponseSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { createBareServer } from "../servers/bare-grpcjs-server.ts";
import { BeatFrames } from "./beat-frames.ts";
import { agentIdentity, HeldAgent } from "./held-agent.ts";
import { FRAME_HEADER_BYTES, messageFrame } from "./http2-frames.ts";

describe("HeldAgent", () => {
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

  it("should be taken in by grpc-js, have each Beat acknowledged, and tell that its stream ended", async () => {
    const beats = 200;
    let acks = 0;
    let whenAcknowledged = (): void => {};
    let whenEnded = (): void => {};
    const agent = new HeldAgent(agentIdentity(0), { port }, new BeatFrames(), {
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

describe("HeldAgent, frames in one packet", () => {
  it("should tell of its Welcome before what comes with it", async () => {
    const server = createServer().on("stream", (stream) => {
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: false });
      stream.write(message({ case: "challenge", value: {} }));
      stream.once("data", () => {
        stream.write(
          Buffer.concat([message({ case: "welcome", value: {} }), message({ case: "executions", value: {} })]),
        );
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const told: string[] = [];
    await new Promise<void>((resolve) => {
      const { port } = server.address() as AddressInfo;
      const agent = new HeldAgent(agentIdentity(0), { port }, new BeatFrames(), {
        onAck: () => {},
        onEnd: () => resolve(),
        onWelcome: () => told.push("welcome"),
        onWork: (_, { case: kind }) => {
          told.push(kind ?? "");
          agent.close();
        },
      });
      agent.open().catch(() => resolve());
    });
    server.close();
    expect(told).toEqual(["welcome", "executions"]);
  });
});

function message(frame: MessageInitShape<typeof HeartbeatResponseSchema>["frame"]): Buffer {
  const bytes = toBinary(HeartbeatResponseSchema, create(HeartbeatResponseSchema, { frame }));
  return messageFrame(1, bytes).subarray(FRAME_HEADER_BYTES);
}
