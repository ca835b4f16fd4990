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

/** Run a server that ends once it has started. Answers what its start saw in the environment, and its exit code. */
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

/** A program in place of systemd's that writes down what it was called with. */
function fakeSystemdNotify(code: number): string {
  const file = join(folder, "systemd-notify");
  writeFileSync(file, `#!/bin/sh\necho "$NOTIFY_SOCKET $*" >> '${folder}/told'\nexit ${code}\n`);
  chmodSync(file, 0o755);
  return `${folder}:/usr/bin:/bin`;
}

describe("runServer()", () => {
  it("should tell systemd once it has started, and hide the socket from children", async () => {
    const env = { PATH: fakeSystemdNotify(0), NOTIFY_SOCKET: "/run/notify" };
    expect(await start(env)).toEqual({ seen: undefined, code: 0 });
    expect(readFileSync(join(folder, "told"), "utf8")).toBe("/run/notify --ready\n");
    expect(env).not.toHaveProperty("NOTIFY_SOCKET");
  });

  it("should work on when systemd cannot be told", async () => {
    expect(await start({ PATH: fakeSystemdNotify(1), NOTIFY_SOCKET: "/run/notify" })).toMatchObject({ code: 0 });
  });

  it("should tell nothing without systemd", async () => {
    expect(await start({ PATH: fakeSystemdNotify(0) })).toEqual({ seen: undefined, code: 0 });
    expect(() => readFileSync(join(folder, "told"))).toThrow("ENOENT");
  });
});
