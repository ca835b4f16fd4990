import { idle, leaving } from "./connection-scenarios.ts";
import { chunkOf } from "./frames.ts";
import { CREATE_CHALLENGE } from "./paths.ts";
import type { Scenario } from "./scenario.ts";

const EMPTY = Buffer.alloc(0);
const MEBIBYTE = 1_048_576;
const CALLS_A_ROUND = 100;

/** HTTP/1.1 requests, as browsers, curl and scanners send them. */
export function plainHttp(): readonly Scenario[] {
  const post = (path: string, more: string): Buffer =>
    Buffer.from(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${more}`);
  const get = Buffer.from("GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const gets = chunkOf(() => get, CALLS_A_ROUND);
  const deep = `${"[".repeat(100_000)}`;
  return [
    idle("http1-slow-headers-api", "api", Buffer.from("GET / HTTP/1.1\r\nHost: local")),
    idle("http1-slow-headers-probes", "probes", Buffer.from("GET / HTTP/1.1\r\nHost: local")),
    idle("http1-slow-body", "api", post(CREATE_CHALLENGE, "Content-Length: 1000\r\n\r\n{")),
    leaving(
      "http1-huge-headers",
      "api",
      Buffer.concat([Buffer.from("GET / HTTP/1.1\r\nX: "), Buffer.alloc(MEBIBYTE, 0x61)]),
      "closes",
    ),
    leaving("http1-deep-json", "api", post(CREATE_CHALLENGE, `Content-Length: ${deep.length}\r\n\r\n${deep}`), "stays"),
    { name: "http1-pipelined", port: "api", connections: 8, open: EMPTY, flood: () => gets },
    {
      name: "http1-pipelined-unread",
      port: "api",
      connections: 8,
      open: EMPTY,
      flood: () => gets,
      reads: false,
    },
    {
      name: "http1-pipelined-probes",
      port: "probes",
      connections: 8,
      open: EMPTY,
      flood: () => chunkOf(() => Buffer.from("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"), 20),
    },
  ];
}
