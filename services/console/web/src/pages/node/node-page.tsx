import { useParams } from "@tanstack/react-router";
import { useMemo } from "react";
import { ask } from "../../actions/asked.tsx";
import { VERBS } from "../../actions/verbs.ts";
import { useSearch, useSetSearch } from "../../app/address.ts";
import { PageLink } from "../../app/link.tsx";
import { usePageKeys } from "../../app/shell-keys.ts";
import { registry } from "../../live/clients.ts";
import { useFleet } from "../../live/fleet.ts";
import { useRead } from "../../live/queries.ts";
import { useRights } from "../../session/session.ts";
import { command, type NodeVerb } from "../../state/cli-command.ts";
import { type NodeRow, toRow } from "../../state/nodes/node-row.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommandButton } from "../../ui/copy.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Failure, Loading, Notice } from "../../ui/notices.tsx";
import { PageHead } from "../../ui/panel.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { HardwareTab } from "./hardware-tab.tsx";
import { IdentityTab } from "./identity-tab.tsx";
import { StatesPanel } from "./states-panel.tsx";
import { TimelineTab } from "./timeline-tab.tsx";
import { UsageTab } from "./usage-tab.tsx";
import { WorkTab } from "./work-tab.tsx";

const WITHIN = <PageLink to="/nodes">Nodes</PageLink>;
const TABS = [
  ["why", "Why"],
  ["usage", "Usage"],
  ["hardware", "Hardware"],
  ["work", "Executions"],
  ["identity", "Labels and identity"],
] as const;

/** One node: its states with their causes, its usage and hardware, and its verbs. */
export function NodePage() {
  const { id = "" } = useParams({ strict: false }) as { readonly id?: string };
  const search = useSearch();
  const setSearch = useSetSearch();
  const rights = useRights();
  const { rows, complete, large } = useFleet();
  const read = useRead(["node", id], (signal) => registry.getNode({ node: id }, { signal }), {
    on: ["node."],
    subject: id,
  });
  const node = read.data?.node;
  const row = rows.get(id) ?? (node === undefined ? undefined : toRow(node));
  const keys = useMemo(
    () => ({
      ...(rights.operate && row !== undefined
        ? {
            c: {
              does: "Cordon or uncordon",
              run: () => ask(row.holds.includes("OPERATOR") ? "uncordon" : "cordon", [id]),
            },
            l: { does: "Label", run: () => ask("label", [id]) },
          }
        : {}),
    }),
    [rights.operate, row, id],
  );
  usePageKeys(keys);
  if (row === undefined) {
    return (
      <>
        <PageHead title={id} within={WITHIN} />
        {read.error !== null ? <Failure cause={read.error} onRetry={() => read.refetch()} /> : <Loading lines={6} />}
      </>
    );
  }
  const tab = TABS.find(([name]) => name === search.tab)?.[0] ?? "why";
  const isGone = large ? read.error !== null : complete && !rows.has(id);
  return (
    <>
      <PageHead title={row.id} within={WITHIN}>
        {rights.operate && <Actions row={row} />}
        <CopyCommandButton text={commandOf(tab, row.id)} />
      </PageHead>
      <div className="page-body">
        {isGone && <Notice tone="warn">This node was removed. Its last state is shown.</Notice>}
        <StatesPanel row={row} />
        <Tabs tabs={TABS} chosen={tab} onChoose={(name) => setSearch({ tab: name === "why" ? undefined : name })} />
        {tab === "why" && <TimelineTab id={row.id} />}
        {tab === "usage" && <UsageTab id={row.id} node={node} isConnected={row.connection.word === "CONNECTED"} />}
        {tab === "hardware" && <HardwareTab node={node} />}
        {tab === "work" && <WorkTab id={row.id} node={node} />}
        {tab === "identity" && <IdentityTab id={row.id} node={node} />}
      </div>
    </>
  );
}

/** The command that prints the content of a tab. */
function commandOf(tab: (typeof TABS)[number][0], id: string): string {
  if (tab === "why") return command("node", "why", id);
  if (tab === "usage") return command("top", id);
  if (tab === "work") return command("job", "executions", "--node", id);
  return command("node", "describe", id);
}

/**
 * The verbs that fit the node's state, most likely first. Destructive ones are in the menu, except while the node
 * waits for a decision.
 */
function Actions({ row }: { readonly row: NodeRow }) {
  const verbs = (Object.keys(VERBS) as readonly NodeVerb[]).filter((verb) => VERBS[verb].fits(row));
  const isOpen = row.membership.word === "PENDING";
  const first = verbs.filter((verb) => isOpen || !VERBS[verb].danger).slice(0, 2);
  const rest = verbs.filter((verb) => !first.includes(verb));
  if (row.type !== "compute") return null;
  return (
    <>
      {first.map((verb) => (
        <Button
          key={verb}
          look={verb === "approve" ? "primary" : VERBS[verb].danger ? "danger" : undefined}
          onClick={() => ask(verb, [row.id])}
        >
          {VERBS[verb].label}
        </Button>
      ))}
      <Menu
        items={[
          { label: "Label", onSelect: () => ask("label", [row.id]) },
          null,
          ...rest.map((verb) => ({
            label: VERBS[verb].label,
            danger: VERBS[verb].danger ?? false,
            onSelect: () => ask(verb, [row.id]),
          })),
        ]}
      >
        More
      </Menu>
    </>
  );
}
