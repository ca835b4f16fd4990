import { randomBytes, randomUUID } from "node:crypto";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { createMetrics, type MetricsRegistry, silentLogger, systemClock } from "@rollcall/process";
import { createRpcServer, type RpcServerOptions } from "@rollcall/rpc";
import {
  accessTokenHash,
  CallLogReader,
  createAuthenticator,
  createRefusalRecorder,
  EventFeed,
  ensureAccessToken,
  type Store,
} from "@rollcall/store";
import type { AdminProcess } from "../admin-process.ts";
import { ADMIN_KEYS, type AdminConfig } from "../config.ts";
import { createApp } from "../index.ts";

/** The store of a rig. The testkit's TestDatabase satisfies this type. */
export interface RigRecord {
  readonly store: Store;
  /** Called when the rig is closed. */
  drop?(): Promise<void>;
}

/** An access token: its text, and its name as an actor. */
export interface TestToken {
  readonly text: string;
  readonly actor: string;
}

/** The server options that a test can override. */
export type RigOptions = Partial<Pick<RpcServerOptions, "authenticate" | "failures">>;

/** An admin on its own port, and a client with an operator's token. */
export interface Rig {
  readonly store: Store;
  /** For example "http://127.0.0.1:41234". */
  readonly baseUrl: string;
  readonly metrics: MetricsRegistry;
  readonly operator: TestToken;
  readonly admin: Client<typeof AdminService>;
  /** Create another client, by default without a token. */
  client(token?: string): Client<typeof AdminService>;
  /** Create a client of another service, by default without a token. */
  clientOf<S extends DescService>(service: S, token?: string): Client<S>;
  close(): Promise<void>;
}

/** Every key at its default. */
export const DEFAULT_CONFIG = Object.fromEntries(
  Object.entries(ADMIN_KEYS).map(([path, key]) => [path, key.default]),
) as AdminConfig;

/** Start an admin like a separate process, on a real port with a real store. */
export async function startRig(
  record: RigRecord,
  options: RigOptions = {},
  changes: Partial<AdminProcess> = {},
): Promise<Rig> {
  const { store } = record;
  const [clock, log, metrics] = [systemClock, silentLogger, createMetrics({ defaults: false })];
  const refusals = createRefusalRecorder({ store, clock, log, metrics });
  const feed = new EventFeed({ store: store.reserved, clock, log });
  const app = createApp({ store, feed, clock, log, metrics, instance: "admin-1", config: DEFAULT_CONFIG, ...changes });
  const server = await createRpcServer({
    host: "127.0.0.1",
    port: 0,
    routes: app.routes,
    services: app.services,
    policies: app.policies,
    authenticate: createAuthenticator({ store, clock }),
    recordRefusal: refusals.record,
    logReader: new CallLogReader({ store, feed, clock }),
    ...options,
    log,
    metrics,
  });
  const baseUrl = `http://127.0.0.1:${server.port}`;
  const sessionManager = new Http2SessionManager(baseUrl);
  const clientOf = <S extends DescService>(service: S, token?: string) => {
    const interceptors = token === undefined ? [] : [withToken(token)];
    return createClient(service, createGrpcTransport({ baseUrl, sessionManager, interceptors }));
  };
  const client = (token?: string) => clientOf(AdminService, token);
  const operator = await createToken(store, "operator");
  return {
    store,
    baseUrl,
    metrics,
    operator,
    admin: client(operator.text),
    client,
    clientOf,
    close: async () => {
      sessionManager.abort();
      await server.close();
      await app.close();
      await feed.close();
      await refusals.close();
      await record.drop?.();
    },
  };
}

/** Store a new access token with a role. */
export async function createToken(store: Store, role: string): Promise<TestToken> {
  const text = `test-${randomBytes(24).toString("base64url")}`;
  const id = randomUUID();
  await ensureAccessToken(store.db, { id, name: role, role, hash: accessTokenHash(text) });
  return { text, actor: `token:${id}` };
}

function withToken(token: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
}
