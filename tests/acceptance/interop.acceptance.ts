import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { INTEROP_SERVICE, interopServer } from "../../libs/rpc/test/suites/interop-service.ts";
import type { SuiteServer } from "../../libs/rpc/test/suites/suite-server.ts";
import { TestAuthority } from "../../libs/testkit/src/certificates.ts";
import { needs } from "../../libs/testkit/src/jest/needs.ts";
import { workspaceRoot } from "../support/workspace.ts";

const PROGRAM = "grpc-interop-client";
const LIMIT_MS = 120_000;
const run = promisify(execFile);
const { describe: describeEquipped } = needs(PROGRAM, spawnSync(PROGRAM, ["--help"]).error === undefined);

/** The cases of doc/interop-test-descriptions.md of gRPC that need neither compression nor an account of a cloud. */
const CASES = [
  "empty_unary",
  "large_unary",
  "client_streaming",
  "server_streaming",
  "ping_pong",
  "empty_stream",
  "timeout_on_sleeping_server",
  "cancel_after_begin",
  "cancel_after_first_response",
  "status_code_and_message",
  "special_status_message",
  "custom_metadata",
  "unimplemented_method",
  "unimplemented_service",
];

/** The cases that a port fails on purpose, with the text of the failure. */
const DIFFERENCES: readonly { readonly port: string; readonly name: string; readonly failure: RegExp }[] = [
  // A request of this case has 271,828 bytes. Methods that require no token accept less, because their requests are
  // decoded before the caller is identified.
  {
    port: "api",
    name: "large_unary",
    failure: /ResourceExhausted desc = the message is larger than the limit of 262144/,
  },
];

// Calls the server libraries of both ports with the client of gRPC's own interoperability tests.
describeEquipped(INTEROP_SERVICE, () => {
  const authority = new TestAuthority();
  const folder = mkdtempSync(join(tmpdir(), "rollcall-interop-"));
  const descriptors = join(folder, "interop.binpb");
  const servers = new Map<string, SuiteServer>();

  beforeAll(async () => {
    const schema = join(workspaceRoot, "libs/rpc/test/suites");
    await run(join(workspaceRoot, "node_modules/.bin/buf"), ["build", schema, "-o", descriptors]);
    const files = { ...authority.write("interop", { usage: "server", names: ["localhost"] }), clientCaFile: undefined };
    for (const port of ["api", "agents"] as const) {
      servers.set(`${port} clear`, await interopServer(descriptors, port, null));
      servers.set(`${port} TLS`, await interopServer(descriptors, port, files));
    }
  }, LIMIT_MS);
  afterAll(async () => {
    for (const server of servers.values()) await server.close();
    rmSync(folder, { recursive: true, force: true });
    rmSync(authority.dir, { recursive: true, force: true });
  });

  it.each(["api clear", "api TLS", "agents clear", "agents TLS"])(
    "should be called by gRPC's client: %s",
    async (name) => {
      const tls = ["-use_tls", "-use_test_ca", "-ca_file", authority.caFile, "-server_host_override", "localhost"];
      const words = ["-server_port", String(servers.get(name)?.port), ...(name.endsWith("TLS") ? tls : [])];
      for (const one of CASES) {
        const ran = run(PROGRAM, ["-server_host", "127.0.0.1", "-test_case", one, ...words], { timeout: 60_000 });
        const failure = await ran.then(
          () => "",
          ({ stderr }: { stderr: string }) => stderr,
        );
        const allowed = DIFFERENCES.find(({ port, name: of }) => name.startsWith(port) && of === one)?.failure ?? /^$/;
        expect([one, failure]).toEqual([one, expect.stringMatching(allowed)]);
      }
    },
    LIMIT_MS,
  );
});
