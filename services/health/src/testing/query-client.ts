import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { HealthQueryService } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { Role } from "@rollcall/identity";
import { silentLogger } from "@rollcall/process";
import { createRpcServer, type RunningServer } from "@rollcall/rpc";
import { sendBearer } from "@rollcall/testkit";
import type { TestReplica } from "./test-replica.ts";

/** The query side of a replica on a real port, with a client. */
export interface QueryClient {
  readonly client: Client<typeof HealthQueryService>;
  /** HOST:PORT, for callers with their own client. */
  readonly address: string;
  close(): Promise<void>;
}

/** Serve the query side of a replica to callers whose token has this role. */
export async function serveQueries(replica: TestReplica, role: Role = "viewer"): Promise<QueryClient> {
  const server: RunningServer = await createRpcServer({
    host: "127.0.0.1",
    port: 0,
    routes: replica.app.routes,
    services: replica.app.services,
    policies: replica.app.policies,
    authenticate: async () => ({ kind: "token", id: "t", role }),
    log: silentLogger,
    metrics: replica.metrics,
    closeGraceMs: 500,
  });
  const baseUrl = `http://127.0.0.1:${server.port}`;
  const sessionManager = new Http2SessionManager(baseUrl);
  const interceptors = [sendBearer("some-token-of-a-test")];
  const transport = createGrpcTransport({ baseUrl, sessionManager, interceptors });
  return {
    client: createClient(HealthQueryService, transport),
    address: `127.0.0.1:${server.port}`,
    close: async () => {
      sessionManager.abort();
      await server.close();
    },
  };
}
