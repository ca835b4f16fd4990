import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "@jest/globals";
import { captureLog } from "@rollcall/testkit/log-capture";
import { createLogger, silentLogger } from "./logging.ts";
import { inSpan } from "./tracing/span.ts";

/**
 * Writes 24 MiB while nothing reads, and reports that. Exits when the test requests that and everything has been
 * written.
 */
const WRITER = `
  const { createLogger } = await import(${JSON.stringify(new URL("./logging.ts", import.meta.url).href)});
  const log = createLogger({ level: "info" });
  const text = "x".repeat(1_000);
  for (let n = 0; n < 24_576; n += 1) log.info({ n, text }, "line");
  process.once("message", () => process.disconnect());
  process.send("written");
`;

describe("createLogger()", () => {
  it("should write one JSON line with time, level, message, fields and an error's causes", () => {
    const { log, lines } = captureLog();
    const cause = new Error("socket closed");
    log.child({ task: "feed" }).warn({ err: new Error("read failed", { cause }), n: 1 }, "task failed");
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      level: "warn",
      msg: "task failed",
      task: "feed",
      n: 1,
      err: { message: "read failed", cause: { message: "socket closed" } },
    });
  });

  it("should drop a line that cannot be written and continue", () => {
    const written: string[] = [];
    let isFull = true;
    const write = (line: string): void => {
      if (isFull) throw new Error("ENOSPC: no space left on device, write");
      written.push(line);
    };
    const log = createLogger({ level: "info", destination: { write } });
    log.error({}, "disk is full");
    isFull = false;
    log.info({}, "disk has room");
    expect(written).toHaveLength(1);
  });

  it("should omit secrets and lines below its level", () => {
    const written: string[] = [];
    const log = createLogger({
      level: "info",
      destination: { write: (line) => written.push(line) },
    });
    log.debug({}, "too detailed");
    log.info({ token: "s3cret", headers: { authorization: "Bearer s3cret" } }, "call");
    expect(written).toHaveLength(1);
    expect(written[0]).not.toContain("s3cret");
  });

  it("should write readable lines on request", () => {
    const written: string[] = [];
    const destination = { write: (line: string) => written.push(line) };
    const log = createLogger({
      level: "info",
      pretty: true,
      destination,
      fields: { process: "up", service: "registry" },
    });
    log.info({ port: 7700, note: "two words" }, "listening");
    log.error({ err: new Error("no disk") }, "write failed");
    expect(written[0]).toMatch(
      /^\d\d:\d\d:\d\d INFO {2}up {5}listening service=registry port=7700 note="two words"\n$/,
    );
    expect(written[1]).toMatch(/ERROR up {5}write failed service=registry\n {4}Error: no disk\n {4} +at /);
  });

  it("should show only the messages of errors that are to be expected", () => {
    const written: string[] = [];
    const log = createLogger({ level: "info", pretty: true, destination: { write: (line) => written.push(line) } });
    const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    log.error({ err: refused }, "no connection");
    log.warn({ err: new Error("read failed", { cause: refused }) }, "trying again");
    expect(written[0]).toMatch(/ERROR no connection: connect ECONNREFUSED\n$/);
    expect(written[1]).toMatch(/WARN {2}trying again: read failed: connect ECONNREFUSED\n$/);
  });

  it("should colour levels on request", () => {
    const written: string[] = [];
    const destination = { write: (line: string) => written.push(line) };
    const log = createLogger({ level: "info", pretty: true, colours: true, destination });
    log.warn({ port: 1 }, "busy");
    expect(written[0]).toContain("\u001b[33mWARN \u001b[0m busy\u001b[2m port=1\u001b[0m\n");
  });

  it("should buffer 16 MiB for a slow reader of standard output and drop whole lines above that", async () => {
    const args = ["--conditions=source", "--input-type=module", "--eval", WRITER];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit", "ipc"] });
    // The test does not read standard output until everything has been written.
    expect(await once(child, "message")).toContain("written");
    const chunks: Buffer[] = [];
    child.stdout?.on("data", (chunk: Buffer) => chunks.push(chunk));
    child.send("end");
    await once(child, "close");
    const output = Buffer.concat(chunks);
    expect(output.length).toBeLessThanOrEqual(16 * 2 ** 20);
    expect(output.length).toBeGreaterThan(16 * 2 ** 20 - 2_000);
    const lines = output.toString().trimEnd().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { n: number }).n)).toEqual([...lines.keys()]);
  });

  it("should write nothing when silent", () => {
    expect(silentLogger.child({})).toBe(silentLogger);
    silentLogger.fatal({}, "unheard");
  });
});

describe("createLogger() with repeated lines", () => {
  it("should limit repeated warnings and errors of one cause", () => {
    let nowMs = 0;
    const lines: Record<string, unknown>[] = [];
    const destination = { write: (line: string) => lines.push(JSON.parse(line)) };
    const log = createLogger({ level: "info", destination, clock: { nowMs: () => nowMs } });
    const task = log.child({ part: "feed" });
    for (let n = 0; n < 25; n += 1) {
      task.warn({ task: "relay", err: new Error(`connect to 10.0.0.${n}:4222 failed`) }, "task failed");
      task.info({ n }, "call finished");
    }
    task.warn({ task: "upkeep", err: new Error("connect to 10.0.0.1:4222 failed") }, "task failed");
    log.fatal({}, "failed");
    const count = (level: string) => lines.filter((line) => line.level === level).length;
    expect([count("warn"), count("info"), count("fatal")]).toEqual([11, 25, 1]);
    nowMs = 60_000;
    lines.length = 0;
    log.info({}, "call finished");
    log.warn({ task: "relay", err: new Error("connect to 10.0.0.1:4222 failed") }, "task failed");
    expect(lines.map(({ msg }) => msg)).toEqual(["repeated lines omitted", "call finished", "task failed"]);
    expect(lines[0]).toMatchObject({ level: "info", of: "task failed", lines: 15 });
    expect(lines[0]?.cause).toMatch(/^relay Error: connect to /);
  });

  it("should start a new count each minute, also for a cause that had few lines", () => {
    let nowMs = 0;
    const messages: string[] = [];
    const destination = { write: (line: string) => messages.push(JSON.parse(line).msg) };
    const log = createLogger({ level: "info", destination, clock: { nowMs: () => nowMs } });
    for (let minute = 0; minute < 4; minute += 1) {
      nowMs = minute * 60_000;
      for (let n = 0; n < 6; n += 1) log.warn({ task: "relay" }, "task failed");
    }
    expect(messages).toEqual(Array.from({ length: 24 }, () => "task failed"));
  });

  it("should add the call's trace id to lines", () => {
    const lines: Record<string, unknown>[] = [];
    const log = createLogger({ level: "info", destination: { write: (line: string) => lines.push(JSON.parse(line)) } });
    const ids = { trace_id: "a".repeat(32), span_id: "b".repeat(16) };
    const span = { ids, traceparent: "", set: () => {}, note: () => {}, end: () => {} };
    inSpan(span, () => log.info({}, "within"));
    log.info({}, "outside");
    expect(lines[0]).toMatchObject({ msg: "within", ...ids });
    expect(lines[1]).not.toHaveProperty("trace_id");
  });
});
