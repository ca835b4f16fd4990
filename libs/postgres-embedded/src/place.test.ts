import { describe, expect, it } from "@jest/globals";
import pg from "pg";
import { databaseUrl, describePlace, listenArguments, loopback, socketIn } from "./place.ts";

const ACCOUNT = { user: "u", password: "p-_1", database: "d" };

describe("databaseUrl()", () => {
  it.each([
    ["loopback", loopback(5432), "postgres://u:p-_1@127.0.0.1:5432/d"],
    ["a socket", socketIn("/run/x"), "postgres://u:p-_1@localhost/d?host=%2Frun%2Fx&port=5432"],
  ])("should name %s", (_, place, url) => {
    expect(databaseUrl({ ...ACCOUNT, ...place })).toBe(url);
  });

  it.each([socketIn("/run/x"), socketIn(`/a b/c%20d/+"'ü#?&=@:,`), loopback(21_000)])(
    "should be read by the driver as it was meant, with another database too: $host",
    (place) => {
      const url = new URL(databaseUrl({ ...ACCOUNT, ...place }));
      url.pathname = "/other";
      const { host, port, user, password, database } = new pg.Client(url.href);
      expect({ host, port, user, password, database }).toEqual({
        ...ACCOUNT,
        ...place,
        database: "other",
      });
    },
  );
});

describe("listenArguments()", () => {
  it("should open either a socket or a port", () => {
    expect(listenArguments(socketIn(`/a,b"c`)).filter((word) => word !== "-c")).toEqual([
      "-p",
      "5432",
      "listen_addresses=",
      `unix_socket_directories="/a,b""c"`,
      "unix_socket_permissions=0700",
    ]);
    expect(listenArguments(loopback(7)).filter((word) => word !== "-c")).toEqual([
      "-p",
      "7",
      "listen_addresses=127.0.0.1",
      "unix_socket_directories=",
    ]);
  });
});

describe("describePlace()", () => {
  it("should say where it is", () => {
    expect(describePlace(socketIn("/x"))).toBe("the socket in /x");
    expect(describePlace(loopback(7))).toBe("port 7 on 127.0.0.1");
  });
});
