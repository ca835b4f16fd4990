import { randomBytes, randomUUID } from "node:crypto";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { EventService } from "@rollcall/api/rollcall/events/v1/events_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import {
  type Clock,
  createMetrics,
  type Logger,
  type MetricsRegistry,
  silentLogger,
  systemClock,
} from "@rollcall/process";
import { createRpcServer } from "@rollcall/rpc";
import {
  accessTokenHash,
  CallLogReader,
  createAuthenticator,
  EventFeed,
  ensureAccessToken,
  type Store,
} from "@rollcall/store";
import { createApp, type RegistryConfig, type RegistryProcess } from "../index.ts";
import { DEFAULT_CONFIG } from "./seed.ts";

/** The store of a rig. The testkit's TestDatabase satisfies this type. */
export interface RigRecord {
  readonly store: Store;
  /** Called when the rig is closed. */
  drop?(): Promise<void>;
}

export interface RigOptions {
  readonly config?: Partial<RegistryConfig>;
  readonly clock?: Clock;
  readonly log?: Logger;
  readonly watchLimits?: RegistryProcess["watchLimits"];
}

/** A registry on its own port, and a client with a token. */
export interface Rig {
  readonly store: Store;
  /** For example "http://127.0.0.1:41234". */
  readonly baseUrl: string;
  /** A viewer's access token. */
  readonly token: string;
  readonly registry: Client<typeof RegistryService>;
  readonly events: Client<typeof EventService>;
  readonly metrics: MetricsRegistry;
  /** Create another client, by default without a token. */
  client<S extends DescService>(service: S, token?: string): Client<S>;
  /** Stop only the server, like a process that ends; clients stay. */
  shutDown(): Promise<void>;
  close(): Promise<void>;
}

/** Start a registry like a separate process, on a real port with a real store. */
export async function startRig(record: RigRecord, options: RigOptions = {}): Promise<Rig> {
  const { store } = record;
  const { clock = systemClock, log = silentLogger } = options;
  const metrics = createMetrics({ defaults: false });
  const config = { ...DEFAULT_CONFIG, ...options.config };
  const { watchLimits = {} } = options;
  const instance = randomUUID();
  const feed = new EventFeed({ store: store.reserved, clock, log });
  const app = createApp({ store, feed, instance, clock, log, metrics, config, watchLimits });
  const server = await createRpcServer({
    host: "127.0.0.1",
    port: 0,
    routes: app.routes,
    services: app.services,
    policies: app.policies,
    pages: app.pages,
    authenticate: createAuthenticator({ store, clock }),
    logReader: new CallLogReader({ store, feed, clock }),
    log,
    metrics,
    clock,
  });
  const baseUrl = `http://127.0.0.1:${server.port}`;
  const sessions = new Http2SessionManager(baseUrl);
  const client = <S extends DescService>(service: S, token?: string) =>
    createClient(
      service,
      createGrpcTransport({
        baseUrl,
        sessionManager: sessions,
        interceptors: token === undefined ? [] : [withToken(token)],
      }),
    );
  const token = await createToken(store, "viewer");
  let ending: Promise<void> | null = null;
  const shutDown = () => {
    ending ??= server.close();
    return ending;
  };
  return {
    store,
    baseUrl,
    token,
    registry: client(RegistryService, token),
    events: client(EventService, token),
    metrics,
    client,
    shutDown,
    close: async () => {
      sessions.abort();
      await shutDown();
      await app.close();
      await feed.close();
      await record.drop?.();
    },
  };
}

/** Store a new access token with a role; returns its text. */
export async function createToken(store: Store, role: "viewer" | "operator" | "admin"): Promise<string> {
  const token = `test-${randomBytes(24).toString("base64url")}`;
  const hash = accessTokenHash(token);
  await ensureAccessToken(store.db, { id: randomUUID(), name: role, role, hash });
  return token;
}

function withToken(token: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
}
