import type { Rights } from "../state/roles.ts";

/** A page of the navigation. */
export interface NavPage {
  readonly path: string;
  readonly title: string;
  /** The key to press after "g". */
  readonly key: string;
  readonly group: "Fleet" | "Work" | "Rules" | "Control plane";
  /** The right that a user needs to see the page; everyone sees it when absent. */
  readonly needs?: keyof Rights;
  /** The description in the palette. */
  readonly about: string;
}

/** The pages of the navigation, in order. */
export const NAV_PAGES: readonly NavPage[] = [
  { path: "/", title: "Overview", key: "o", group: "Fleet", about: "the fleet at a glance" },
  { path: "/nodes", title: "Nodes", key: "n", group: "Fleet", about: "every machine, with filters" },
  { path: "/approvals", title: "Approvals", key: "a", group: "Fleet", about: "machines that wait for a decision" },
  { path: "/join", title: "Join", key: "i", group: "Fleet", about: "join tokens, and the command for a machine" },
  { path: "/events", title: "Events", key: "e", group: "Fleet", about: "changes as they happen" },
  { path: "/jobs", title: "Jobs", key: "j", group: "Work", about: "jobs and their executions" },
  { path: "/drains", title: "Drains", key: "d", group: "Work", about: "nodes that are draining" },
  { path: "/policies", title: "Health policies", key: "p", group: "Rules", about: "thresholds and intervals" },
  { path: "/brake", title: "Brake", key: "b", group: "Rules", about: "delays reactions to many losses" },
  {
    path: "/access",
    title: "Access",
    key: "t",
    group: "Control plane",
    needs: "administer",
    about: "tokens and sessions",
  },
  { path: "/audit", title: "Audit", key: "u", group: "Control plane", needs: "administer", about: "who did what" },
  {
    path: "/webhooks",
    title: "Webhooks",
    key: "w",
    group: "Control plane",
    needs: "administer",
    about: "events delivered over HTTPS",
  },
  {
    path: "/control-plane",
    title: "Processes",
    key: "c",
    group: "Control plane",
    about: "processes, log, relay, upkeep",
  },
];

/** Whether a path belongs to a page of the navigation. */
export function isOn(page: NavPage, path: string): boolean {
  return page.path === "/" ? path === "/" : path === page.path || path.startsWith(`${page.path}/`);
}
