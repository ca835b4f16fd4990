import { once } from "node:events";
import { createConnection, createServer } from "node:net";
import { describe, expect, it } from "@jest/globals";
import { type Clock, systemClock } from "@rollcall/process";
import { ManualClock } from "@rollcall/testkit/time";
import { judgeSilenceTask } from "./judge-silence.ts";

describe("judgeSilenceTask()", () => {
  it("should read what waits in the sockets before it judges, however long the process stood still", async () => {
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
          // The process stands still while its timer runs out: timers come before sockets.
          const until = performance.now() + 400;
          while (performance.now() < until);
          return;
        }
        await systemClock.sleep(ms, signal);
      },
    };
    const replica = { judge: () => heard.push("judgement") };
    const task = judgeSilenceTask({ replica, clock, tickMs: 10 });
    const running = task.run(ending.signal, () => {});
    while (!heard.includes("judgement")) await new Promise(setImmediate);
    ending.abort(new Error("the end"));
    await running.catch(() => {});
    expect(heard.slice(0, 2)).toEqual(["heartbeat", "judgement"]);
    client.destroy();
    server.close();
  });

  it("should read the sockets once before a judgement in time, and often after it stood still", async () => {
    const clock = new ManualClock();
    const turns: number[] = [];
    let turn = 0;
    const judge = () => {
      turns.push(turn);
      turn = 0;
    };
    const nextTurn = async () => {
      turn += 1;
    };
    const ending = new AbortController();
    const task = judgeSilenceTask({ replica: { judge }, clock, tickMs: 100, nextTurn });
    const running = task.run(ending.signal, () => {});
    await clock.pass(200);
    clock.advance(301);
    await clock.pass(200);
    ending.abort(new Error("the end"));
    await running.catch(() => {});
    expect(turns).toEqual([1, 1, 10, 1, 1]);
  });
});
