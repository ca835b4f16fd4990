import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { DescService } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { SERVICES as ADMIN } from "../services/admin/src/routes.ts";
import { createUpstream, type Upstream } from "../services/console/src/upstream/upstream.ts";
import { SERVICES as HEALTH } from "../services/health/src/routes.ts";
import { SERVICES as REGISTRY } from "../services/registry/src/routes.ts";
import type { ControlPlaneConfig } from "../services/rollcall/src/config/control-plane-config.ts";
import { upstreamUrls } from "../services/rollcall/src/control-plane/console-parts.ts";
import { SERVICES as SCHEDULER } from "../services/scheduler/src/routes.ts";

/**
 * The gRPC services that each separately deployed service of a cluster serves, keyed by the configuration
 * key of its address.
 */
const SERVED: [string, readonly DescService[]][] = [
  ["Console.RegistryUpstream", REGISTRY],
  ["Console.HealthUpstream", HEALTH],
  ["Console.AdminUpstream", ADMIN],
  ["Console.SchedulerUpstream", SCHEDULER],
];

const servers: Server[] = [];
let upstream: Upstream;
let origin: string;

async function listen(server: Server): Promise<string> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

beforeAll(async () => {
  const config: Record<string, string> = {};
  for (const [key] of SERVED) config[key] = await listen(createServer((_, response) => response.end(key)));
  upstream = createUpstream({ urls: upstreamUrls(config as Partial<ControlPlaneConfig>), tls: null });
  const front = createServer((request, response) => {
    const call = { request, response, path: request.url ?? "", peer: "192.0.2.1:5", known: () => {} };
    if (!upstream.passOn(call)) response.writeHead(404).end();
  });
  origin = await listen(front);
});
afterAll(() => {
  upstream.close();
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
});

describe("a console of a cluster with separate services", () => {
  const places = SERVED.flatMap(([key, services]) => services.map(({ typeName }) => [typeName, key]));

  it.each(places)("should forward calls of %s to %s", async (typeName, key) => {
    const answer = await fetch(`${origin}/${typeName}/Any`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect(await answer.text()).toBe(key);
  });
});
