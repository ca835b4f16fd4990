import { randomBytes, randomUUID } from "node:crypto";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { JobService } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { createMetrics, type MetricsRegistry, silentLogger, startTasks, systemClock } from "@rollcall/process";
import { createRpcServer } from "@rollcall/rpc";
import {
  accessTokenHash,
  CallLogReader,
  createAuthenticator,
  EventFeed,
  ensureAccessToken,
  type ReservedStore,
  type Store,
  WorkSignals,
} from "@rollcall/store";
import { createApp } from "../app.ts";
import type { SchedulerProcess } from "../scheduler-process.ts";

/** What a test may change of a scheduler. */
export interface RigOptions extends Partial<Pick<SchedulerProcess, "timing" | "afterStep" | "quota">> {
  /** By which the log is read; that of the store when absent. */
  readonly logStore?: ReservedStore;
  /** See RpcServerOptions. */
  readonly readWithinMs?: number;
}

/** A scheduler on a port of its own, with its tasks running, and clients of it. */
export interface Rig {
  readonly store: Store;
  readonly instance: string;
  readonly metrics: MetricsRegistry;
  /** Up to where its leader has heard of the log. */
  readonly position: bigint;
  /** With a submitter's token. */
  readonly jobs: Client<typeof JobService>;
  /** A further client; without a token unless one of a role is wanted. */
  client(role?: string): Promise<Client<typeof JobService>>;
  /** A further client with a token. */
  clientWith(token: string): Client<typeof JobService>;
  /** Whether it leads. */
  leads(): Promise<boolean>;
  /** End it as a process that ends does. The store stays open. */
  close(): Promise<void>;
}

/** Start a scheduler as a process of its own would, on a real port and the real store. */
export async function startRig(
  store: Store,
  { logStore = store.reserved, readWithinMs, ...options }: RigOptions = {},
): Promise<Rig> {
  const [clock, log, metrics] = [systemClock, silentLogger, createMetrics({ defaults: false })];
  const instance = randomUUID();
  const feed = new EventFeed({ store: logStore, clock, log });
  const signals = new WorkSignals(feed);
  const app = createApp({ ...options, store, feed, signals, instance, clock, log, metrics });
  const tasks = startTasks(app.tasks, { log, clock, retry: { baseMs: 10, maxMs: 50 } });
  const server = await createRpcServer({
    ...{ host: "127.0.0.1", port: 0, clock, log, metrics },
    ...{ routes: app.routes, services: app.services, policies: app.policies },
    authenticate: createAuthenticator({ store, clock }),
    logReader: new CallLogReader({ store, feed, clock }),
    ...(readWithinMs === undefined ? {} : { readWithinMs }),
  });
  const baseUrl = `http://127.0.0.1:${server.port}`;
  const sessionManager = new Http2SessionManager(baseUrl);
  const clientOf = (interceptors: Interceptor[]) =>
    createClient(JobService, createGrpcTransport({ baseUrl, sessionManager, interceptors }));
  const clientWith = (token: string) => clientOf([withToken(token)]);
  const client = async (role?: string) =>
    role === undefined ? clientOf([]) : clientWith(await createToken(store, role));
  return {
    ...{ store, instance, metrics, client, clientWith },
    get position() {
      return feed.position;
    },
    jobs: await client("submitter"),
    leads: async () => (await app.ready()).scheduler?.message === "leads",
    close: async () => {
      sessionManager.abort();
      await server.close();
      await tasks.close();
      await app.close();
      await feed.close();
    },
  };
}

/** Make a token of a role. */
export async function createToken(store: Store, role: string): Promise<string> {
  const text = `test-${randomBytes(24).toString("base64url")}`;
  await ensureAccessToken(store.db, { id: randomUUID(), name: role, role, hash: accessTokenHash(text) });
  return text;
}

function withToken(token: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
}
