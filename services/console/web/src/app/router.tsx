import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { Failure, Loading } from "../ui/notices.tsx";
import { history } from "./address.ts";
import { NotFound, Shell } from "./shell.tsx";

/** The search parameters of an address as strings; each page parses its own. */
export type Search = Readonly<Record<string, string | undefined>>;

const root = createRootRoute({
  component: Shell,
  notFoundComponent: NotFound,
  validateSearch: (search: Record<string, unknown>): Search =>
    Object.fromEntries(
      Object.entries(search).flatMap(([key, value]) =>
        value === undefined || value === null || typeof value === "object" ? [] : [[key, String(value)]],
      ),
    ),
});

const page = (path: string, load: () => Promise<Record<string, unknown>>, name: string) =>
  createRoute({
    getParentRoute: () => root,
    path,
    component: lazyRouteComponent(load as () => Promise<Record<string, never>>, name as never),
  });

const routeTree = root.addChildren([
  page("/", () => import("../pages/overview/overview-page.tsx"), "OverviewPage"),
  page("/nodes", () => import("../pages/nodes/nodes-page.tsx"), "NodesPage"),
  page("/nodes/$id", () => import("../pages/node/node-page.tsx"), "NodePage"),
  page("/approvals", () => import("../pages/approvals/approvals-page.tsx"), "ApprovalsPage"),
  page("/join", () => import("../pages/join/join-page.tsx"), "JoinPage"),
  page("/events", () => import("../pages/events/events-page.tsx"), "EventsPage"),
  page("/jobs", () => import("../pages/jobs/jobs-page.tsx"), "JobsPage"),
  page("/jobs/$name", () => import("../pages/jobs/job-page.tsx"), "JobPage"),
  page("/executions/$id", () => import("../pages/jobs/execution-page.tsx"), "ExecutionPage"),
  page("/drains", () => import("../pages/drains/drains-page.tsx"), "DrainsPage"),
  page("/policies", () => import("../pages/policies/policies-page.tsx"), "PoliciesPage"),
  page("/brake", () => import("../pages/brake/brake-page.tsx"), "BrakePage"),
  page("/audit", () => import("../pages/audit/audit-page.tsx"), "AuditPage"),
  page("/access", () => import("../pages/access/access-page.tsx"), "AccessPage"),
  page("/webhooks", () => import("../pages/webhooks/webhooks-page.tsx"), "WebhooksPage"),
  page("/control-plane", () => import("../pages/control-plane/control-plane-page.tsx"), "ControlPlanePage"),
  createRoute({
    getParentRoute: () => root,
    path: "/sign-in",
    beforeLoad: () => {
      throw redirect({ to: "/" });
    },
  }),
]);

/** The routes. Each page is loaded when it is first shown. */
export const router = createRouter({
  routeTree,
  history,
  defaultPreload: "intent",
  defaultPendingComponent: () => <Loading />,
  defaultErrorComponent: ({ error }) => <Failure cause={error} />,
  // Do not parse strings further, so that "?q=10" is not a number, and addresses stay readable.
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const entries = Object.entries(search).filter((entry): entry is [string, string] => typeof entry[1] === "string");
    const text = new URLSearchParams(entries).toString();
    return text === "" ? "" : `?${text}`;
  },
});
