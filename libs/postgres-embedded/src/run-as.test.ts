import { describe, expect, it } from "@jest/globals";
import type { Binaries } from "./programs.ts";
import { checkRunnable, chooseRunAs, commandAs, unprivilegedAccount } from "./run-as.ts";

const unprivileged = { uid: 65_534, gid: 65_534 };

describe("chooseRunAs()", () => {
  it.each([
    { uid: 1000, namespacesWork: true, dataOwnerUid: null, expected: { kind: "self" } },
    { uid: 1000, namespacesWork: false, dataOwnerUid: 1000, expected: { kind: "self" } },
    { uid: undefined, namespacesWork: false, dataOwnerUid: null, expected: { kind: "self" } },
    { uid: 0, namespacesWork: true, dataOwnerUid: null, expected: { kind: "namespace" } },
    { uid: 0, namespacesWork: true, dataOwnerUid: 0, expected: { kind: "namespace" } },
    {
      uid: 0,
      namespacesWork: false,
      dataOwnerUid: null,
      expected: { kind: "user", ...unprivileged },
    },
    {
      uid: 0,
      namespacesWork: true,
      dataOwnerUid: 101,
      expected: { kind: "user", uid: 101, gid: 65_534 },
    },
  ])(
    "should choose $expected.kind for user $uid, namespaces $namespacesWork, data of $dataOwnerUid",
    ({ expected, ...facts }) => {
      expect(chooseRunAs({ ...facts, unprivileged })).toEqual(expected);
    },
  );
});

describe("commandAs()", () => {
  it("should wrap a program only when necessary", () => {
    expect(commandAs({ kind: "self" }, "/pg", ["-D", "x"])).toEqual({
      command: "/pg",
      args: ["-D", "x"],
      options: {},
    });
    expect(commandAs({ kind: "namespace" }, "/pg", ["-D", "x"])).toEqual({
      command: "unshare",
      args: ["-U", "--", "/pg", "-D", "x"],
      options: {},
    });
    expect(commandAs({ kind: "user", uid: 7, gid: 8 }, "/pg", [])).toEqual({
      command: "/pg",
      args: [],
      options: { uid: 7, gid: 8 },
    });
  });
});

describe("unprivilegedAccount()", () => {
  it("should fall back to the usual id of the user nobody", () => {
    expect(unprivilegedAccount("/no/such/file")).toEqual(unprivileged);
  });
});

describe("checkRunnable()", () => {
  it("should say what to do when the binary does not run here", () => {
    const binaries: Binaries = { initdb: "/no/initdb", postgres: "/no/postgres" };
    expect(() => checkRunnable(binaries, { kind: "self" })).toThrow(
      /does not run on this machine \(.*ENOENT\): set DATABASE_URL to a Postgres server/,
    );
  });
});
