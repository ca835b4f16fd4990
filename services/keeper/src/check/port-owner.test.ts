import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { ownerOfPort } from "./port-owner.ts";

describe("ownerOfPort() on this machine", () => {
  let server: Server;
  let child: ChildProcess | null = null;
  beforeEach(() => {
    server = createServer();
  });
  afterEach(() => {
    server.close();
    child?.kill("SIGKILL");
  });

  it.each(["127.0.0.1", "0.0.0.0", "::", "::ffff:127.0.0.1"])("should find the owner of %s", async (host) => {
    server.listen(0, host);
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    expect(await ownerOfPort(port, [process.pid])).toEqual({ kind: "own" });
    expect(await ownerOfPort(port, [process.ppid])).not.toEqual({ kind: "own" });
    expect(await ownerOfPort(port, [])).toEqual({ kind: "other" });
  });

  it("should find a socket of one of many processes", async () => {
    const script = "const s=require('net').createServer().listen(0,()=>console.log(s.address().port))";
    child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
    const [line] = (await once(child.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
    const port = Number(line.toString());
    expect(await ownerOfPort(port, [process.pid, child.pid ?? 0])).toEqual({ kind: "own" });
    expect(await ownerOfPort(port, [process.pid])).toEqual({ kind: "other" });
  });

  it("should return unknown for a port without a listener", async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    server.close();
    await once(server, "close");
    expect(await ownerOfPort(port, [process.pid])).toMatchObject({ kind: "unknown" });
  });
});

describe("ownerOfPort() on other machines", () => {
  let proc: string;
  beforeEach(() => {
    proc = mkdtempSync(join(tmpdir(), "rollcall-proc-"));
    mkdirSync(join(proc, "self", "net"), { recursive: true });
  });
  afterEach(() => rmSync(proc, { recursive: true, force: true }));

  const HEADING = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
  const PORT = 20_000;
  const tcp = (file: string, ...sockets: readonly (readonly [address: string, state: string, inode: number])[]) =>
    writeFileSync(
      join(proc, "self", "net", file),
      [
        HEADING,
        ...sockets.map(
          ([address, state, inode], at) =>
            `   ${at}: ${address}:4E20 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 ` +
            `${inode} 1 0000000000000000 100 0 0 10 0`,
        ),
        "",
      ].join("\n"),
    );
  const hold = (pid: number, ...inodes: readonly number[]) => {
    mkdirSync(join(proc, String(pid), "fd"), { recursive: true });
    for (const inode of inodes) symlinkSync(`socket:[${inode}]`, join(proc, String(pid), "fd", String(inode)));
  };
  const owner = (...pids: readonly number[]) => ownerOfPort(PORT, pids, { proc });

  it("should check the socket that accepts the connection: a specific address before the wildcard", async () => {
    tcp("tcp", ["00000000", "0A", 1], ["0100007F", "0A", 2]);
    hold(7, 1);
    hold(8, 2);
    expect(await owner(7)).toEqual({ kind: "other" });
    expect(await owner(8)).toEqual({ kind: "own" });
  });

  it("should require all sockets that share the port", async () => {
    tcp("tcp", ["00000000", "0A", 1], ["00000000", "0A", 2]);
    hold(7, 1);
    hold(8, 2);
    expect(await owner(7)).toEqual({ kind: "other" });
    expect(await owner(7, 8)).toEqual({ kind: "own" });
  });

  it("should not mistake a connection for a listening socket", async () => {
    tcp("tcp", ["0100007F", "01", 1], ["0100007F", "0A", 2]);
    hold(7, 1);
    expect(await owner(7)).toEqual({ kind: "other" });
  });

  it.each<[string, () => void]>([
    ["the list of sockets is missing", () => {}],
    ["no socket is shown", () => tcp("tcp")],
    [
      "a process hides its files",
      () => {
        tcp("tcp", ["00000000", "0A", 1]);
        mkdirSync(join(proc, "7"));
        writeFileSync(join(proc, "7", "fd"), "");
      },
    ],
  ])("should return unknown if %s", async (_, arrange) => {
    arrange();
    expect(await owner(7)).toEqual({ kind: "unknown", why: expect.any(String) });
  });

  it("should ignore an ended process", async () => {
    tcp("tcp", ["00000000", "0A", 1]);
    hold(8, 1);
    expect(await owner(7, 8)).toEqual({ kind: "own" });
    expect(await owner(7)).toEqual({ kind: "other" });
  });
});
