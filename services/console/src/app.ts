import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { bearerOf } from "@rollcall/identity";
import type { Task } from "@rollcall/process";
import type { HttpHandler, PassOn, PolicyTable, ReadyReport } from "@rollcall/rpc";
import { createRecordCheck, type Store } from "@rollcall/store";
import type { ConsoleServices } from "./console-services.ts";
import { createOidcSignIn } from "./oidc/oidc-sign-in.ts";
import type { PageFiles } from "./pages/page-files.ts";
import { servePages } from "./pages/serve-pages.ts";
import { createRoutes, POLICIES, SERVICES } from "./routes.ts";
import { sessionCookie } from "./sign-in/session-cookie.ts";
import { createUpstream, type UpstreamOptions } from "./upstream/upstream.ts";

/** What the process gives to the console. */
export interface ConsoleProcess extends ConsoleServices {
  readonly store: Store;
  /** The pages; null when they are not built. */
  readonly pages: PageFiles | null;
  /** Where calls go that this process does not answer itself; null when it answers all. */
  readonly upstream: UpstreamOptions | null;
}

/** The console, ready to be put behind a port. */
export interface ConsoleApp {
  routes(router: ConnectRouter): void;
  readonly services: readonly DescService[];
  readonly policies: PolicyTable;
  readonly tasks: readonly Task[];
  /** Answers what is no call. */
  readonly serve: HttpHandler;
  /** Passes calls on that this process does not answer itself; null when it answers all. */
  readonly passOn: PassOn | null;
  /** Whether the record can be reached. */
  ready(): Promise<ReadyReport>;
  close(): Promise<void>;
}

/** Create the console: pages, and the browser's way in. */
export function createApp(services: ConsoleProcess): ConsoleApp {
  const { store, log, pages } = services;
  const cookie = sessionCookie(store.clusterId());
  const oidc = createOidcSignIn({ ...services, clusterSecret: store.clusterSecret() });
  const upstream = services.upstream === null ? null : createUpstream(services.upstream);
  const checkRecord = createRecordCheck(store.reserved, log, services.clock);
  if (pages === null) log.warn({}, "the console's pages are not built");
  return {
    routes: createRoutes({ ...services, cookie, oidc }),
    services: SERVICES,
    policies: POLICIES,
    tasks: [],
    serve: servePages(pages),
    passOn: upstream === null ? null : countingCallers(upstream.passOn, services),
    ready: async () => ({ store: await checkRecord() }),
    close: async () => upstream?.close(),
  };
}

/**
 * Count calls that are passed on for who makes them, as calls that are served here are: pages of one network would
 * share the few places of a stranger. The service at which a call arrives judges it; here a caller who is not found, or
 * not in time, stays a stranger.
 */
function countingCallers(passOn: PassOn, { authenticate, log }: Pick<ConsoleProcess, "authenticate" | "log">): PassOn {
  return (call) => {
    if (!passOn(call)) return false;
    const bearer = bearerOf(call.request.headers.authorization ?? null);
    if (bearer === null) return true;
    authenticate(bearer)
      .then((caller) => {
        if (caller !== null && caller.kind !== "anonymous") call.known(caller);
      })
      .catch((error: unknown) => log.debug({ err: error }, "a call that is passed on stays that of a stranger"));
    return true;
  };
}
