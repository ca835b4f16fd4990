import { describe, expect, it } from "@jest/globals";
import { parsePostgresUrl, postgresPlace } from "./postgres-url.ts";

function read(url: string) {
  const result = parsePostgresUrl(url);
  if (!result.ok) throw new Error(result.problem);
  return result.url;
}

describe("parsePostgresUrl()", () => {
  it.each([
    ["postgres://h", [["h", 5432]]],
    ["postgresql://u:p@h:6543/db", [["h", 6543]]],
    ["  postgres://h/db\n", [["h", 5432]]],
    [
      "postgres://u@one,two:5433/db",
      [
        ["one", 5432],
        ["two", 5433],
      ],
    ],
    [
      "postgres://[::1]:5432,[fe80::1%25eth0]:5433/db",
      [
        ["::1", 5432],
        ["fe80::1%eth0", 5433],
      ],
    ],
    ["postgres://db.example.:5432/x", [["db.example.", 5432]]],
    [
      "postgres:///db?host=one,two&port=5433",
      [
        ["one", 5433],
        ["two", 5433],
      ],
    ],
    [
      "postgres://ignored/db?host=one,two&port=1,2",
      [
        ["one", 1],
        ["two", 2],
      ],
    ],
    ["postgres://%2Fvar%2Frun%2Fpostgresql/db", [["/var/run/postgresql", 5432]]],
    ["postgres:///db?host=/var/run/postgresql", [["/var/run/postgresql", 5432]]],
    ["postgres:///db", [["", 5432]]],
  ])("should read the servers of %s", (url, hosts) => {
    expect(read(url).hosts).toEqual(hosts.map(([host, port]) => ({ host, port })));
  });

  it("should decode user, password and database, and take a plus sign as one", () => {
    const { user, password, database } = read("postgres://a%40b:p%3A%2F%23+%25@h/d%20b");
    expect({ user, password, database }).toEqual({ user: "a@b", password: "p:/#+%", database: "d b" });
    expect(read("postgres://h/x?user=u&password=p&dbname=d")).toMatchObject({
      user: "u",
      password: "p",
      database: "d",
    });
    expect(read("postgres://u@h")).toMatchObject({ user: "u", password: undefined, database: undefined });
  });

  it.each([
    ["target_session_attrs=read-write", { mustBeWritable: true }],
    ["target_session_attrs=primary", { mustBeWritable: true }],
    ["target_session_attrs=any", { mustBeWritable: false }],
    ["load_balance_hosts=random", { isShuffled: true }],
    ["connect_timeout=10", { connectTimeoutMs: 10_000 }],
    ["connect_timeout=1", { connectTimeoutMs: 2_000 }],
    ["connect_timeout=0", { connectTimeoutMs: undefined }],
    ["connect_timeout=-1", { connectTimeoutMs: undefined }],
    ["keepalives=0", { keepAlive: false }],
    ["keepalives_idle=30", { keepAliveIdleMs: 30_000 }],
    ["application_name=x&options=-c%20search_path%3Da", { applicationName: "x", options: "-c search_path=a" }],
    ["client_encoding=UTF8&gssencmode=disable&fallback_application_name=y", { keepAlive: true }],
    ["", { tls: expect.objectContaining({ mode: undefined }) }],
    ["ssl=true", { tls: expect.objectContaining({ mode: "require" }) }],
    ["sslmode=verify-full&sslrootcert=/ca.pem", { tls: expect.objectContaining({ rootCert: "/ca.pem" }) }],
    ["sslrootcert=system", { tls: expect.objectContaining({ mode: "verify-full", rootCert: "system" }) }],
    ["sslmode=require&sslnegotiation=direct", { tls: expect.objectContaining({ isDirect: true }) }],
    ["sslmode=require&sslcert=c&sslkey=k&sslpassword=p", { tls: expect.objectContaining({ cert: "c", key: "k" }) }],
    ["ssl_min_protocol_version=TLSv1.3", { tls: expect.objectContaining({ minVersion: "TLSv1.3" }) }],
  ])("should read %s", (parameters, expected) => {
    expect(read(`postgres://h/d?${parameters}`)).toMatchObject(expected);
  });

  it.each([
    ["", "should be an address such as postgres://"],
    ["mysql://h/d", "should be an address"],
    ["Postgres://h/d", "should be an address"],
    ["host=h dbname=d", "should be an address"],
    [`postgres://h/${"d".repeat(5_000)}`, "should be an address"],
    ["postgres://u:p@ss@h/d", "percent-encode characters such as @"],
    ["postgres://u:100%@h/d", "the password contains a % without two hexadecimal digits"],
    ["postgres://h/d%00", "NUL byte"],
    ["postgres://h:0/d", "a port should be a number from 1 to 65535"],
    ["postgres://h:70000/d", "a port should be"],
    ["postgres://h:/d?port=x", "a port should be"],
    ["postgres://one,/d", "one of its hosts is empty"],
    ["postgres://one,two/d?port=1,2,3", "it names 2 hosts and 3 ports"],
    ["postgres://::1/d", "percent-encode"],
    ["postgres://[x]/d", "[ ] is for an IPv6 address"],
    ["postgres://h/d?sslmode=always", 'sslmode is "always", and should be disable, allow, prefer, require'],
    ["postgres://h/d?sslmode=require&sslrootcert=system", "sslrootcert=system needs sslmode=verify-full"],
    ["postgres://h/d?sslnegotiation=direct", "sslnegotiation=direct needs sslmode"],
    ["postgres://h/d?sslcert=c", "sslcert and sslkey must be set together"],
    ["postgres://h/d?target_session_attrs=standby", "cannot be written"],
    ["postgres://h/d?hostaddr=10.0.0.1", "hostaddr is not supported: use the address as the host"],
    ["postgres://h/d?service=x", "service is not supported: "],
    ["postgres://h/d?channel_binding=require", "channel_binding is"],
    ["postgres://h/d?gssencmode=require", "gssencmode is"],
    ["postgres://h/d?schema=x", '"schema" is not a parameter of a Postgres URL'],
    ["postgres://h/d?sslmode", 'the parameter "sslmode" has no value'],
    ["postgres://h/d?connect_timeout=1s", "connect_timeout should be a whole number of seconds"],
  ])("should refuse %s, and say why", (url, problem) => {
    const result = parsePostgresUrl(url);
    expect(result).toMatchObject({ ok: false, problem: expect.stringContaining(problem) });
  });

  it("should never repeat a password", () => {
    for (const url of ["postgres://u:s3cret%@h/d", "postgres://u:s3cret@x@h/d", "postgres://u:s3cret@h:x/d"]) {
      const result = parsePostgresUrl(url);
      expect(result.ok).toBe(false);
      expect(JSON.stringify(result)).not.toContain("s3cret");
    }
  });
});

describe("postgresPlace()", () => {
  it.each([
    ["postgres://u:p@one,two:5433/db", "one:5432, two:5433"],
    ["postgres://[::1]/db", "[::1]:5432"],
    ["postgres:///db?host=/tmp", "a local socket:5432"],
    ["nonsense", "a URL that cannot be read"],
  ])("should name the servers of %s", (url, place) => {
    expect(postgresPlace(url)).toBe(place);
  });
});
