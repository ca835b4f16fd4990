import { useCallback, useDeferredValue, useMemo, useRef, useState } from "react";
import { ask } from "../../actions/asked.tsx";
import { VERBS } from "../../actions/verbs.ts";
import { goTo, useSearch, useSetSearch } from "../../app/address.ts";
import { nodePath } from "../../app/link.tsx";
import { usePageKeys } from "../../app/shell-keys.ts";
import { fleet, useLook } from "../../live/fleet.ts";
import { useObservable } from "../../live/observable.ts";
import { useRights } from "../../session/session.ts";
import { listCommand, type NodeVerb } from "../../state/cli-command.ts";
import { filterFromSearch, isFiltered, NO_FILTER, type NodeFilter, nodeTest } from "../../state/nodes/node-filter.ts";
import type { NodeRow } from "../../state/nodes/node-row.ts";
import { isListed } from "../../state/nodes/node-scope.ts";
import { isOrder, type OrderBy } from "../../state/nodes/sorted-view.ts";
import { formatCount } from "../../state/units.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommandButton } from "../../ui/copy.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Empty, Loading } from "../../ui/notices.tsx";
import { PageHead } from "../../ui/panel.tsx";
import { COLUMNS, columnsOf, DEFAULT_COLUMNS } from "./columns.tsx";
import { exportCsv, exportJson } from "./export.ts";
import { FilterBar } from "./filter-bar.tsx";
import { NodesTable } from "./nodes-table.tsx";
import { useNodesView } from "./use-nodes-view.ts";
import { Views } from "./views.tsx";

const NONE: ReadonlySet<string> = new Set();
const BULK: readonly NodeVerb[] = ["approve", "reject", "cordon", "uncordon", "drain"];
const MORE_BULK: readonly NodeVerb[] = [
  "undrain",
  "mark-unhealthy",
  "clear-mark",
  "accept-hardware",
  "rotate-key",
  "ban",
  "delete",
];

const showMore = () => fleet.more();
const isAnyOrder = () => true;

/** The last filter that could be asked: a selector that is being typed is wrong half of the time. */
function useRight(filter: NodeFilter): NodeFilter {
  const last = useRef(filter);
  if (nodeTest(filter).ok) last.current = filter;
  return nodeTest(last.current).ok ? last.current : NO_FILTER;
}

/** Every node, with filters, in any order, and what can be done with many of them. */
export function NodesPage() {
  const search = useSearch();
  const setSearch = useSetSearch();
  const rights = useRights();
  const complete = useObservable(fleet.complete);
  // What was typed or chosen is shown at once, and the nodes as soon as they are found.
  const listed = useDeferredValue(search);
  const filter = useMemo(() => filterFromSearch(listed), [listed]);
  const order = useMemo(() => {
    const by: OrderBy = isOrder(listed.sort ?? "") ? (listed.sort as OrderBy) : "id";
    return { by, reversed: listed.desc === "1" };
  }, [listed.sort, listed.desc]);
  const typed = useMemo(() => filterFromSearch(search), [search]);
  const large = useLook({ filter: useRight(filter), ...order });
  const by = large && !isListed(order.by) ? "id" : order.by;
  const { rows, version, wrong } = useNodesView(filter, by, order.reversed);
  const { machines } = useObservable(fleet.summary);
  const columns = useMemo(() => columnsOf(listed.show), [listed.show]);
  const [cursor, setCursor] = useState<string | null>(null);
  const [picked, setPicked] = useState(NONE);
  const scroller = useRef<HTMLDivElement>(null);
  const pick = useCallback((ids: readonly string[], on: boolean) => {
    setPicked((before) => {
      const next = new Set(before);
      for (const id of ids) {
        if (on) next.add(id);
        else next.delete(id);
      }
      return next;
    });
  }, []);
  // Nodes that are gone meanwhile, or that the filter hides, are not chosen: nothing is done with what is not shown.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version stands for the rows, which change in place.
  const chosen = useMemo(() => {
    const filtered = nodeTest(filter);
    const isShown = (row: NodeRow | undefined) => row !== undefined && (!filtered.ok || filtered.test(row));
    return [...picked].filter((id) => isShown(fleet.rows.get(id)));
  }, [picked, filter, version]);
  const chosenIds = useMemo(() => new Set(chosen), [chosen]);
  const keys = useMemo(() => {
    const move = (by: number) =>
      setCursor((before) => {
        const at = rows.findIndex(({ id }) => id === before);
        return rows[Math.max(0, Math.min(rows.length - 1, at + by))]?.id ?? null;
      });
    const current = () => rows.find(({ id }) => id === cursor)?.id;
    const focusSearch = () => document.getElementById("node-search")?.focus();
    return {
      j: { does: "Next node", run: () => move(1) },
      k: { does: "Node before", run: () => move(-1) },
      Enter: { does: "Open the node", run: () => current() !== undefined && goTo(nodePath(current() ?? "")) },
      "/": { does: "Search", run: focusSearch },
      ...(rights.operate
        ? {
            x: {
              does: "Choose the node",
              run: () => pick([current() ?? ""].filter(Boolean), !picked.has(current() ?? "")),
            },
            Escape: { does: "Choose none", run: () => setPicked(NONE) },
          }
        : {}),
    };
  }, [rows, cursor, rights.operate, picked, pick]);
  usePageKeys(keys);
  const setOrder = useCallback(
    (next: OrderBy) => {
      const reversed = next === order.by && !order.reversed;
      setSearch({ sort: next === "id" ? undefined : next, desc: reversed ? "1" : undefined });
    },
    [order, setSearch],
  );
  const shownOrder = useMemo(() => ({ by, reversed: order.reversed }), [by, order.reversed]);
  const marked = useMemo(() => ({ id: cursor, picked: chosenIds }), [cursor, chosenIds]);
  const toggleColumn = (name: string) => {
    const shown = columns.map((column) => column.name);
    const next = shown.includes(name) ? shown.filter((one) => one !== name) : [...shown, name];
    setSearch({ show: next.join(",") });
  };
  const exported = () => (chosen.length > 0 ? chosen.flatMap((id) => fleet.rows.get(id) ?? []) : rows);
  return (
    <>
      <PageHead title="Nodes">
        <Views search={search} />
        <Menu
          items={COLUMNS.slice(1).map(({ name, title }) => ({
            label: title,
            checked: columns.some((column) => column.name === name),
            onSelect: () => toggleColumn(name),
          }))}
        >
          Columns
        </Menu>
        <Menu
          items={[
            { label: "CSV", hint: "columns shown", onSelect: () => exportCsv(exported(), columns) },
            { label: "JSON", hint: "all columns", onSelect: () => exportJson(exported()) },
          ]}
        >
          Export
        </Menu>
        <CopyCommandButton text={listCommand(filter, order)} />
      </PageHead>
      <div className="page-body">
        <FilterBar filter={typed} wrong={wrong} />
        <div className="nodes">
          {chosen.length > 0 && (
            <div className="bulk" role="toolbar" aria-label="With the chosen nodes">
              <strong className="small">{formatCount(chosen.length)} chosen</strong>
              {BULK.map((verb) => (
                <Button
                  key={verb}
                  small
                  look={VERBS[verb].danger ? "danger" : undefined}
                  onClick={() => ask(verb, chosen)}
                >
                  {VERBS[verb].label}
                </Button>
              ))}
              <Button small onClick={() => ask("label", chosen)}>
                Label
              </Button>
              <Menu
                look="small"
                items={MORE_BULK.map((verb) => ({
                  label: VERBS[verb].label,
                  danger: VERBS[verb].danger ?? false,
                  onSelect: () => ask(verb, chosen),
                }))}
              >
                More
              </Menu>
              <Button small look="plain" onClick={() => setPicked(NONE)}>
                Choose none
              </Button>
            </div>
          )}
          {rows.length === 0 && !complete ? (
            <Loading lines={8} />
          ) : rows.length === 0 ? (
            <Empty title={isFiltered(filter) ? "No node matches" : "No machine has joined yet"}>
              <p>{isFiltered(filter) ? "Clear a filter to see more." : "Make a join token on the page Join."}</p>
            </Empty>
          ) : (
            <NodesTable
              rows={rows}
              version={version}
              columns={columns}
              order={shownOrder}
              canOrder={large ? isListed : isAnyOrder}
              onEnd={showMore}
              cursor={marked}
              canPick={rights.operate}
              onOrder={setOrder}
              onCursor={setCursor}
              onPick={pick}
              scroller={scroller}
            />
          )}
          <div className="nodes-foot">
            <span role="status" data-testid="node-count">
              {large
                ? `${formatCount(rows.length)} read of a fleet of ${formatCount(machines)}; scrolling reads more`
                : `${formatCount(rows.length)} of ${formatCount(fleet.rows.size)} nodes`}
              {complete ? "" : ", more are coming"}
            </span>
            {search.show !== undefined && search.show !== DEFAULT_COLUMNS.join(",") && (
              <Button small look="plain" onClick={() => setSearch({ show: undefined })}>
                Usual columns
              </Button>
            )}
          </div>
        </div>
      </div>
    </>
  );
}
