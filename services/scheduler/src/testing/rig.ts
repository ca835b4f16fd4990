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

/** Options of a test's scheduler. */
export interface RigOptions extends Partial<Pick<SchedulerProcess, "timing" | "afterStep" | "quota">> {
  /** The store that the log is read from. Default: the store of the rig. */
  readonly logStore?: ReservedStore;
  /** See RpcServerOptions. */
  readonly readWithinMs?: number;
}

/** A scheduler on its own port, with running tasks, and clients that are connected to it. */
export interface Rig {
  readonly store: Store;
  readonly instance: string;
  readonly metrics: MetricsRegistry;
  /** The revision of the last event that its leader has received. */
  readonly position: bigint;
  /** A client with a submitter's token. */
  readonly jobs: Client<typeof JobService>;
  /** Create another client; without a role, it has no token. */
  client(role?: string): Promise<Client<typeof JobService>>;
  /** Create another client with a token. */
  clientWith(token: string): Client<typeof JobService>;
  /** Whether the scheduler leads. */
  leads(): Promise<boolean>;
  /** Shut the scheduler down as a process would. The store stays open. */
  close(): Promise<void>;
}

/** Start a scheduler like a separate process, on a real port and a real store. */
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
