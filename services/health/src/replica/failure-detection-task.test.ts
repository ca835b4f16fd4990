import { once } from "node:events";
import { createConnection, createServer } from "node:net";
import { describe, expect, it } from "@jest/globals";
import { type Clock, systemClock } from "@rollcall/process";
import { ManualClock } from "@rollcall/testkit/time";
import { failureDetectionTask } from "./failure-detection-task.ts";

describe("failureDetectionTask()", () => {
  it("should read waiting frames before it declares nodes, however long the process was paused", async () => {
    const heard: string[] = [];
    const server = createServer((socket) => socket.on("data", () => heard.push("heartbeat")));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const client = createConnection({ port, host: "127.0.0.1" });
    await once(client, "connect");

    const ending = new AbortController();
    const isSent = new Promise<void>((resolve) => client.write("now", () => resolve()));
    let sleeps = 0;
    const clock: Clock = {
      ...systemClock,
      sleep: async (ms, signal) => {
        sleeps += 1;
        if (sleeps === 1) {
          await isSent;
          // Block the process until the timer has expired, because Node.js runs expired timers before it
          // reads sockets.
          const until = performance.now() + 400;
          while (performance.now() < until);
          return;
        }
        await systemClock.sleep(ms, signal);
      },
    };
    const replica = { evaluate: () => heard.push("evaluation") };
    const task = failureDetectionTask({ replica, clock, tickMs: 10 });
    const running = task.run(ending.signal, () => {});
    while (!heard.includes("evaluation")) await new Promise(setImmediate);
    ending.abort(new Error("the end"));
    await running.catch(() => {});
    expect(heard.slice(0, 2)).toEqual(["heartbeat", "evaluation"]);
    client.destroy();
    server.close();
  });

  it("should read the sockets once before a punctual evaluation, and often after a pause", async () => {
    const clock = new ManualClock();
    const turns: number[] = [];
    let turn = 0;
    const evaluate = () => {
      turns.push(turn);
      turn = 0;
    };
    const nextLoopTick = async () => {
      turn += 1;
    };
    const ending = new AbortController();
    const task = failureDetectionTask({ replica: { evaluate }, clock, tickMs: 100, nextLoopTick });
    const running = task.run(ending.signal, () => {});
    await clock.pass(200);
    clock.advance(301);
    await clock.pass(200);
    ending.abort(new Error("the end"));
    await running.catch(() => {});
    expect(turns).toEqual([1, 1, 10, 1, 1]);
  });
});
