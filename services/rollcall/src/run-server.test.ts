import { EventEmitter } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { runServer } from "./run-server.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rollcall-notify-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/**
 * Run a server that exits as soon as it has started. Returns the environment that it started with, and the exit
 * code.
 */
async function start(env: Record<string, string | undefined>) {
  const process = Object.assign(new EventEmitter(), { exit: () => {}, env });
  let seen: string | undefined;
  const code = await runServer({
    process,
    log: silentLogger,
    start: async () => {
      seen = env.NOTIFY_SOCKET;
      return { close: async () => {}, done: Promise.resolve() };
    },
  });
  return { seen, code };
}

/** Create a replacement for systemd-notify that records its arguments. */
function fakeSystemdNotify(code: number): string {
  const file = join(folder, "systemd-notify");
  writeFileSync(file, `#!/bin/sh\necho "$NOTIFY_SOCKET $*" >> '${folder}/told'\nexit ${code}\n`);
  chmodSync(file, 0o755);
  return `${folder}:/usr/bin:/bin`;
}

describe("runServer()", () => {
  it("should notify systemd once it has started, and hide the socket from children", async () => {
    const env = { PATH: fakeSystemdNotify(0), NOTIFY_SOCKET: "/run/notify" };
    expect(await start(env)).toEqual({ seen: undefined, code: 0 });
    expect(readFileSync(join(folder, "told"), "utf8")).toBe("/run/notify --ready\n");
    expect(env).not.toHaveProperty("NOTIFY_SOCKET");
  });

  it("should continue when systemd cannot be notified", async () => {
    expect(await start({ PATH: fakeSystemdNotify(1), NOTIFY_SOCKET: "/run/notify" })).toMatchObject({ code: 0 });
  });

  it("should notify no one without systemd", async () => {
    expect(await start({ PATH: fakeSystemdNotify(0) })).toEqual({ seen: undefined, code: 0 });
    expect(() => readFileSync(join(folder, "told"))).toThrow("ENOENT");
  });
});
