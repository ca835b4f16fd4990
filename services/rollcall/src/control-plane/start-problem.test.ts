import { once } from "node:events";
import net from "node:net";
import { describe, expect, it } from "@jest/globals";
import { EmbeddedPostgresError } from "@rollcall/postgres-embedded";
import { StartError } from "@rollcall/process";
import { ListeningError } from "@rollcall/rpc";
import { explainingStart, type StartFacts } from "./start-problem.ts";

const FACTS: StartFacts = {
  portFlags: new Map([[7700, "--port"]]),
  databaseUrl: "postgres://rollcall:se%40cret@db.example:5433/rollcall",
  dataDirectory: "/var/lib/rollcall",
};

async function problemOf(error: unknown, facts: Partial<StartFacts> = {}): Promise<unknown> {
  return explainingStart({ ...FACTS, ...facts }, () => Promise.reject(error)).catch((it: unknown) => it);
}

const withCode = (code: string, message: string, more: object = {}) =>
  Object.assign(new Error(message), { code, ...more });

describe("explainingStart()", () => {
  it("should return what was started", async () => {
    expect(await explainingStart(FACTS, async () => 7)).toBe(7);
  });

  it.each([
    [
      "a port that is taken",
      new ListeningError("port 7700 of 127.0.0.1 is in use by another process", {
        code: "EADDRINUSE",
        port: 7700,
        cause: null,
      }),
      /choose another port with --port$/,
    ],
    [
      "a port of the system",
      new ListeningError("this user has no permission to listen on port 80", { code: "EACCES", port: 80, cause: null }),
      /above 1023$/,
    ],
    [
      "an address of another machine",
      new ListeningError("9.9.9.9 is not an address", { code: "EADDRNOTAVAIL", port: 1, cause: null }),
      /--listen$/,
    ],
    [
      "a wrong password",
      withCode("28P01", 'password authentication failed for user "x"'),
      /^Postgres at db\.example:5433: password.*%40$/,
    ],
    ["a database that is missing", withCode("3D000", 'database "x" does not exist'), /create the database/],
    [
      "a user who may not create tables",
      withCode("42501", "permission denied for schema public"),
      /must be able to create tables/,
    ],
    ["a server that asks for TLS", withCode("28000", "no pg_hba.conf entry"), /sslmode=require/],
    ["a full disk of Postgres", withCode("53100", "could not extend file"), /disk of Postgres is full/],
    ["an unknown authority", new Error("self-signed certificate in certificate chain"), /sslrootcert=FILE/],
    ["a full disk", withCode("ENOSPC", "no space left on device", { syscall: "write" }), /^the disk is full/],
    [
      "a directory of others",
      withCode("EACCES", "permission denied, mkdir '/var/lib/rollcall'", { syscall: "mkdir", path: "/var/lib" }),
      /^the data directory \/var\/lib\/rollcall cannot be used: .*--data-dir$/,
    ],
    ["a missing package", new EmbeddedPostgresError("no package for this system"), /^no package for this system$/],
    [
      "a directory in use",
      new EmbeddedPostgresError("supervised by another process", { failure: "supervised-elsewhere" }),
      /or use another --data-dir$/,
    ],
  ])("should say in one line what is wrong and what to do: %s", async (_, error, expected) => {
    const problem = await problemOf(error);
    expect(problem).toBeInstanceOf(StartError);
    expect(String(Object(problem).message)).toMatch(expected);
    expect(String(Object(problem).message)).not.toMatch(/\n|cret/);
  });

  it("should name the process that uses the port, if the system reveals it", async () => {
    const server = net.createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as net.AddressInfo;
    const taken = { code: "EADDRINUSE", port, cause: null };
    const problem = await problemOf(new ListeningError("port is taken", taken));
    const holder = process.platform === "linux" ? `(pid ${process.pid})` : "stop the process that uses it";
    expect(String(Object(problem).message)).toContain(holder);
    server.close();
  });

  it("should leave a defect as it is", async () => {
    const defect = new TypeError("x is undefined");
    expect(await problemOf(defect)).toBe(defect);
  });
});
