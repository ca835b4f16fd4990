import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { bearerOf } from "@rollcall/identity";
import type { Task } from "@rollcall/process";
import type { HttpHandler, PassOn, PolicyTable, ReadyReport } from "@rollcall/rpc";
import { createStoreCheck, type Store } from "@rollcall/store";
import type { ConsoleServices } from "./console-services.ts";
import { createOidcSignIn } from "./oidc/oidc-sign-in.ts";
import type { PageFiles } from "./pages/page-files.ts";
import { servePages } from "./pages/serve-pages.ts";
import { createRoutes, POLICIES, SERVICES } from "./routes.ts";
import { sessionCookie } from "./sign-in/session-cookie.ts";
import { createUpstream, type UpstreamOptions } from "./upstream/upstream.ts";

/** The objects that the console needs from its process. */
export interface ConsoleProcess extends ConsoleServices {
  readonly store: Store;
  /** The pages; null when they are not built. */
  readonly pages: PageFiles | null;
  /** Where to forward calls of other services; null when this process serves all of them. */
  readonly upstream: UpstreamOptions | null;
}

/** The console, ready to be served on a port. */
export interface ConsoleApp {
  routes(router: ConnectRouter): void;
  readonly services: readonly DescService[];
  readonly policies: PolicyTable;
  readonly tasks: readonly Task[];
  /** Serves requests that are not calls. */
  readonly serve: HttpHandler;
  /** Forwards calls to other services; null when this process serves all of them. */
  readonly passOn: PassOn | null;
  /** Whether the store can be reached. */
  ready(): Promise<ReadyReport>;
  close(): Promise<void>;
}

/** Create the console: the pages, and sign-in for browsers. */
export function createApp(services: ConsoleProcess): ConsoleApp {
  const { store, log, pages } = services;
  const cookie = sessionCookie(store.clusterId());
  const oidc = createOidcSignIn({ ...services, clusterSecret: store.clusterSecret() });
  const upstream = services.upstream === null ? null : createUpstream(services.upstream);
  const checkRecord = createStoreCheck(store.reserved, log, services.clock);
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
 * Count forwarded calls against their caller, like calls that this process serves. Otherwise all pages of one network
 * would share the small limit of an anonymous client. The service that receives the call authenticates the caller; this
 * process counts a caller that cannot be identified in time as anonymous.
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
      .catch((error: unknown) => log.debug({ err: error }, "a forwarded call counts as anonymous"));
    return true;
  };
}
